/* The finished tasks of a study's folder: which there are, and where each is: in a file of its own or in a
 * bundle (parallel/bundle.h).
 *
 * A task may be in two places: a rank writes a bundle of bundles before it removes them. Then it is taken
 * from the larger bundle. */
#ifndef PARALLEL_FINISHED_H
#define PARALLEL_FINISHED_H

#include "parallel/bundle.h"
#include "parallel/parallel.h"

enum { FINISHED_OPEN = 256 /* systems allow 1 024 open files, and MPI needs some */ };

typedef struct {
  const char *directory; /* not copied */
  const Study *study;
  signed char *state; /* [task_count], RunStatus, by the names of files and the lists in bundles */
  int *bundle; /* [task_count], in which it is; -1: it has a file of its own, or is not there */
  int bundles;
  char (*name)[FOLDER_NAME]; /* [bundles], of a bundle */
  int *size; /* [bundles], tasks in it; 0: its list cannot be read */
  double scanned_at, scan_seconds; /* by the wall clock: when the folder was read, and how long that took */
  double first, last; /* when tasks in bundles were finished, in seconds since 1970; +-INFINITY: none */
  Bundle *open[FINISHED_OPEN]; /* some that were read from */
  int opened[FINISHED_OPEN]; /* which they are */
} Finished;

/* See what is there. The caller ends with finished_destroy, after a failure too. */
Status finished_scan(const char *directory, const Study *study, Finished *out);
void finished_destroy(Finished *finished);
/* What rank 0 has seen, to all; on the other ranks `finished` is what finished_scan or {0} gave. Collective.
 */
Status finished_broadcast(const Parallel *parallel, const char *directory, const Study *study,
                          Finished *finished);
/* Rank 0 scans, all know. Collective. */
Status finished_scan_all(const Parallel *parallel, const char *directory, const Study *study, Finished *out);

/* Returns STATUS_RESUME, and names the first such file, when all finished tasks are of another study. */
Status finished_check_study(const Finished *finished);

/* Read a finished task into `result`, which has room. STATUS_INPUT when its file is damaged, gone, or of
 * another study. Where its bundle was merged into another one meanwhile, the folder is scanned again. */
Status finished_load(Finished *finished, const Task *task, bool failed, TaskResult *result);
/* Take the curves that all policies share from a finished task of the same setting and runs, if there is one
 * that can be used. What other ranks have put into bundles meanwhile is seen about a second later: the folder
 * is scanned again, at most for a fiftieth of the time. */
Status finished_share(Finished *finished, const Task *task, TaskResult *result);

/* Put the file of a task that cannot be used out of the way (000042.nc.bad, replacing nothing), so that it
 * counts as not run; what else is whole in its bundle goes into another one. Of a bundle the folder is
 * scanned again. */
Status finished_set_aside(Finished *finished, const Task *task, bool failed);

/* Report bundles that cannot be opened, on stderr, and with `set_aside` put them out of the way, all but
 * those of their tasks that are whole; adds how many to *damaged. What is known of the folder stays as it
 * was. */
Status finished_report_unreadable(const Finished *finished, bool set_aside, int *damaged);
/* Remove bundles all of whose tasks are also in larger ones that are whole. Nobody else may write. */
Status finished_remove_superseded(const Finished *finished);

#endif
