/* What running single tasks (tasks.c) and running tasks together (tasks_spread.c) share. */
#pragma once

#include "parallel/tasks/queue.h"
#include "parallel/tasks/tasks.h"

enum { MOST_WAITING = 1024 }; /* tasks that are made durable together */

/* A task that is in the journal and may not be on disk yet. */
typedef struct {
  int task;
  bool failed;
  double seconds; /* time that it took */
} Waiting;

/* What a group of ranks runs together: the tasks of one block, of all policies, in a setting whose matrices
 * are spread over ranks. */
typedef struct {
  int setting, block;
} SpreadPart;

/* A rank that runs tasks. */
typedef struct {
  const Study *study;
  const char *directory;
  TaskPriors priors; /* in that folder */
  const TasksOptions *options;
  Queue *queue; /* of the wave */
  Journal *journal;
  Waiting waiting[MOST_WAITING]; /* [waiting_count] */
  int waiting_count;
  double waiting_since; /* when the first of them was begun, by the wall clock */
  Finished *finished; /* as of the beginning, or the end of the last wave */
  Progress progress;
  signed char *state; /* [task_count], RunStatus; for the wave's tasks, what this rank knows */
  double *size; /* [task_count] */
  int *list; /* [task_count], of which `count` are used: tasks of the wave that are to be run */
  int count;
  SpreadPart *part; /* [parts], largest first */
  int parts, spread_count; /* and the tasks in all of them */
  Task *together; /* [policies], scratch: the tasks of a part ... */
  TaskResult *results; /* ... and their results */
  TasksOutcome *outcome; /* of earlier waves */
  double stopped_at, polled_at; /* seconds; 0: not yet */
} TasksRunner;

/* Returns whether a rank asked to stop, and tells the others if this one did. */
bool tasks_stop_is_asked(TasksRunner *runner);
/* Returns whether more tasks have failed than may fail, as of the last trip to the counters. */
bool tasks_too_many_failed(const TasksRunner *runner);
void tasks_show_progress(TasksRunner *runner);

/* Returns whether a task belongs to this shard and is to be run: it has not succeeded, and no equal task of
 * the shard runs. */
bool tasks_has_to_run(const TasksRunner *runner, int index);
/* Appends the result of a task to the journal, and reports a failure. Other ranks learn of it before this
 * rank begins another task. */
Status tasks_keep_result(TasksRunner *runner, const Task *task, const TaskResult *result, double seconds);
/* Makes durable what is in the journal, and only then counts it as done. */
Status tasks_sync_journal(TasksRunner *runner);

/* Lists the parts that are to be run together. */
Status tasks_spread_list(Arena *memory, TasksRunner *runner);
/* Runs all parts, on groups of ranks side by side; returns at once on a rank that is in no group, and without
 * parts. A stop drops the parts that are running. Collective. */
Status tasks_spread_run(TasksRunner *runner);
