/* Running the tasks of a study on all ranks: taken from a shared queue (parallel/queue.h), each kept
 * durably in a journal (parallel/journal.h) before it counts as done. With an adaptive number of runs this
 * happens once for each wave. */
#pragma once

#include "parallel/finished.h"
#include "parallel/progress.h"
#include "study/study.h"

typedef struct {
  ProgressMode progress;
  int64_t max_failures; /* stop when more tasks than this have failed; < 0: never */
  int64_t failed_before; /* of other kinds of tasks in this job (parallel/large.h), which count too */
  int shard, shards; /* run the tasks with index % shards == shard */
  double task_timeout; /* seconds; > 0: every task in a process of its own, killed after this time */
  bool (*stop)(void); /* whether an early end is asked for */
  double (*time_left)(void); /* seconds that remain for the work; INFINITY without a limit */
} TasksOptions;

typedef struct {
  /* Tasks of this shard, over all ranks. With an adaptive number of runs, `left` is of the wave that was
   * stopped. */
  int64_t failed, left;
  int64_t here; /* those that this job brought to an end */
} TasksOutcome;

/* Reports on stderr, with what to do. */
void tasks_report_failure(const Study *study, const char *directory, const Task *task,
                          const TaskResult *result);

/* Runs what is not finished yet, but for large settings (parallel/large.h). A stop on one rank ends the work
 * of all: no task is begun, those that run have a few seconds more. A task that the time left will not do for
 * is not begun. STATUS_OK also when tasks failed or the work was stopped: `outcome` says. Any other status
 * means that results could not be kept. Collective. */
Status tasks_run(const Parallel *parallel, Finished *finished, const TasksOptions *options,
                 TasksOutcome *outcome);
