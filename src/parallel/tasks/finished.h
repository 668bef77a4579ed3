/* The finished tasks in a study's folder, and the journal (parallel/tasks/journal.h) that holds each of them.
 * Journals only grow, so each look reads on from the end of the last one. */
#pragma once

#include "parallel/parallel.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/journal.h"

enum { FINISHED_OPEN = 256 /* systems allow 1 024 open files, and MPI needs some */ };

typedef struct {
  char name[FOLDER_NAME];
  int64_t end; /* bytes scanned so far */
  int64_t rest; /* bytes after them that are not a whole record */
  int damaged; /* stretches before `end` that are not records */
  bool gone;
} FinishedJournal;

/* Where a record is. */
typedef struct {
  int task, journal;
  int64_t at;
  double finished; /* seconds since 1970 */
} FinishedPlace;

typedef struct {
  const char *directory; /* not copied */
  const Study *study;
  Arena *memory; /* not owned */
  int64_t unused, unused_bytes; /* records of tasks that the study does not have */
  signed char *state; /* [task_count], RunStatus, according to the headers */
  FinishedPlace *place; /* [task_count], where the state is RUN_OK or RUN_FAILED */
  FinishedPlace *copy; /* [copies], further records of tasks that succeeded */
  int copies;
  FinishedJournal *journal; /* [journals] */
  int journals;
  double looked_at, look_seconds; /* by the wall clock: when the folder was read, and how long that took */
  double first, last; /* when the first and last task finished, in seconds since 1970; +-INFINITY: none */
  int open[FINISHED_OPEN],
      file[FINISHED_OPEN]; /* open journals, by number, -1: none; and their file descriptors */
} Finished;

/* Scans the journals in the folder of a study whose tasks have names. With `repair`, allowed only while
 * nobody else writes, torn and damaged records are dropped, reported, and not seen again. STATUS_RESUME when
 * something there belongs to an earlier version of this program, also one of this program that kept a file
 * for each task. The caller must call finished_close, after a failure too. */
Status finished_open(Arena *memory, const char *directory, const Study *study, bool repair, Finished *out);
void finished_close(Finished *finished);
/* Does what finished_open does, without repair, on rank 0, and sends the result to all ranks. Collective. */
Status finished_open_all(Arena *memory, const char *directory, const Study *study, Finished *out);

/* Reads what was added since the last look. */
Status finished_look(Finished *finished);
/* Does the same on rank 0, and sends the result to all ranks. Collective. */
Status finished_look_all(Finished *finished);

/* Reports on stderr each journal that is damaged or torn; returns the number of stretches that are not
 * records, torn ends included. */
int finished_report_damage(const Finished *finished);

/* Reads the records of all tasks of a shard, a share on each rank. Damaged ones are reported and count as not
 * run. Collective. */
Status finished_check(int shard, int shards, Finished *finished);

/* Reads a finished task into `result`, which is allocated, from the first of its records that is whole.
 * STATUS_INPUT when none is. */
Status finished_load(Finished *finished, const Task *task, TaskResult *result);
/* Reads a task, finished or failed, only to find whether it can be read; if not, status_message() says why.
 */
Status finished_try(Finished *finished, const Task *task, bool *usable);
/* Copies the curves that all policies share from a finished task of the same setting and runs, if one can be
 * used. Also looks for what other ranks have finished meanwhile, in at most about a fiftieth of the time. */
Status finished_share(Finished *finished, const Task *task, TaskResult *result);
