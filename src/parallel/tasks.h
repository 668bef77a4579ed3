/* Running the tasks of a study on all ranks: longest first, taken from a shared counter, each kept as a
 * durable file when it is done. */
#ifndef PARALLEL_TASKS_H
#define PARALLEL_TASKS_H

#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study.h"

typedef struct {
  ProgressMode progress;
  int64_t max_failures; /* stop when more tasks than this have failed; < 0: never */
  int shard, shards; /* run the tasks with index % shards == shard */
  /* A signal or the time limit asks for an early end. */
  bool (*stop)(void);
} TasksOptions;

typedef struct {
  int64_t done, failed, left; /* tasks of this shard, over all ranks and earlier jobs */
} TasksOutcome;

/* Run what is not done yet. STATUS_OK also when tasks failed or the work was stopped: `outcome` says. Any
 * other status means that results could not be kept. Collective. */
Status tasks_run(const Parallel *parallel, const Study *study, const char *directory,
                 const TasksOptions *options, TasksOutcome *outcome);

#endif
