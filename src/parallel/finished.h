/* The finished tasks of a study's folder: which there are, and in which journal (parallel/journal.h) each is.
 * Journals only grow, so a second look reads on where the first one ended. */
#pragma once

#include "parallel/folder.h"
#include "parallel/journal.h"
#include "parallel/parallel.h"

enum { FINISHED_OPEN = 256 /* systems allow 1 024 open files, and MPI needs some */ };

typedef struct {
  char name[FOLDER_NAME];
  int64_t end; /* bytes that were looked at */
  int64_t rest; /* bytes behind them that are no whole record */
  int damaged; /* stretches before them that are none */
  bool gone;
} FinishedJournal;

/* Where a record is. */
typedef struct {
  int task, journal;
  int64_t at;
} FinishedPlace;

typedef struct {
  const char *directory; /* not copied */
  const Study *study;
  Arena *memory; /* not owned */
  signed char *state; /* [task_count], RunStatus, by the headers */
  FinishedPlace *place; /* [task_count], where the state is RUN_OK or RUN_FAILED */
  FinishedPlace *copy; /* [copies], further records of tasks that succeeded */
  int copies;
  FinishedJournal *journal; /* [journals] */
  int journals;
  double looked_at, look_seconds; /* by the wall clock: when the folder was read, and how long that took */
  double first, last; /* when tasks were finished, in seconds since 1970; +-INFINITY: none */
  int open[FINISHED_OPEN], file[FINISHED_OPEN]; /* journals that were read from, by number; -1: none */
} Finished;

/* Sees what is there; with `repair`, which nobody else who writes may meet, what is torn or damaged is
 * dropped, reported, and not seen again. STATUS_RESUME when something there is of another study, or of a
 * version of this program that kept a file for each task. The caller ends with finished_close, after a
 * failure too. */
Status finished_open(Arena *memory, const char *directory, const Study *study, bool repair, Finished *out);
void finished_close(Finished *finished);
/* Does the same on rank 0, and lets all ranks know. Collective. */
Status finished_open_all(Arena *memory, const Parallel *parallel, const char *directory, const Study *study,
                         Finished *out);

/* Sees what was added. */
Status finished_look(Finished *finished);
/* Does the same on rank 0, and lets all ranks know. Collective. */
Status finished_look_all(const Parallel *parallel, Finished *finished);

/* Reports on stderr each stretch of a journal that is no record, torn ends too; returns how many there
 * are. */
int finished_report_damage(const Finished *finished);

/* Reads the records of all tasks of a shard, each rank a part. Those that are damaged are reported and count
 * as not run. Collective. */
Status finished_check(const Parallel *parallel, int shard, int shards, Finished *finished);

/* Reads a finished task into `result`, which has room: from the first of its records that is whole.
 * STATUS_INPUT when none is. */
Status finished_load(Finished *finished, const Task *task, TaskResult *result);
/* Takes the curves that all policies share from a finished task of the same setting and runs, if there is one
 * that can be used. What other ranks have finished meanwhile is seen, at the price of a fiftieth of the
 * time. */
Status finished_share(Finished *finished, const Task *task, TaskResult *result);
