/* Runs the tasks of a study on all ranks. Tasks are taken from a shared queue (parallel/tasks/queue.h), and
 * each is kept durably in a journal (parallel/tasks/journal.h) before it counts as done. With an adaptive
 * number of runs this happens once for each wave. */
#pragma once

#include "parallel/progress.h"
#include "parallel/tasks/finished.h"
#include "study/study.h"

typedef struct {
  ProgressMode progress;
  int64_t max_failures; /* stop when more tasks than this have failed */
  int shard, shards; /* which part of the study (study_shard) is run, and of how many */
  const bool *only; /* [task_count], run these alone, in any wave; NULL: all that are unfinished */
  double task_timeout; /* seconds; > 0: every task runs in its own process, which is killed after this time */
  bool (*stop)(void); /* whether a stop is requested */
  double (*time_left)(void); /* seconds left for the work; INFINITY without a limit */
} TasksOptions;

typedef struct {
  /* Tasks of this shard, over all ranks. With an adaptive number of runs, `left` counts those of the wave
   * that was stopped. */
  int64_t failed, left;
  int64_t here; /* tasks that this job brought to an end */
} TasksOutcome;

/* Runs the unfinished tasks. Settings whose matrices are spread over ranks are run by groups of ranks
 * (tasks_spread.c), while the other ranks, and in the end all, take single tasks from the queue. A stop on
 * one rank ends the work of all: no more tasks begin, and those that run have a few seconds left. A task that
 * needs more than the time left is not begun. Fills in `outcome`, which says whether tasks failed or the work
 * was stopped. Any status but STATUS_OK means that results could not be kept. Collective. */
Status tasks_run(Finished *finished, const TasksOptions *options, TasksOutcome *outcome);
