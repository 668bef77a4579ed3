#include "parallel/tasks.h"

#include "core/clock.h"
#include "core/memory.h"
#include "parallel/checkpoint.h"
#include "parallel/counter.h"

#include <stdio.h>
#include <stdlib.h>

/* The shared counters of a run. COST is finished work, all of it being COST_UNITS. */
enum { NEXT, DONE, FAILED, STOP, COST, COUNTERS };
static const double COST_UNITS = 1e12;

/* Seconds that a running task may go on after a stop was asked for. */
static const double GRACE = 10;

typedef struct {
  const Study *study;
  const char *directory;
  const TasksOptions *options;
  Counters *counters;
  Progress progress;
  int *order; /* [count], tasks to run, longest first */
  double *cost; /* [task_count] */
  int count;
  double total_cost;
  double stopped_at, polled_at; /* seconds; 0: not yet */
} Runner;

/* Which tasks, in which order. */

typedef struct {
  double cost;
  int index;
} Ranked;

static int longest_first(const void *a, const void *b) {
  const Ranked *first = a, *second = b;
  if (first->cost != second->cost) return first->cost < second->cost ? 1 : -1;
  return first->index - second->index;
}

/* Tasks of the shard that are not done, longest first. A task that failed is tried again. */
static Status list_tasks(Runner *runner, const signed char *state, TasksOutcome *outcome) {
  const Study *study = runner->study;
  Ranked *ranked;
  NEW(runner->order, study->task_count);
  NEW(runner->cost, study->task_count);
  NEW(ranked, study->task_count);
  for (int i = 0; i < study->task_count; i++) {
    runner->cost[i] = study->ops->cost(study, &study->tasks[i]);
    if (i % runner->options->shards != runner->options->shard) continue;
    if (state[i] == RUN_OK) {
      outcome->done++;
      continue;
    }
    runner->total_cost += runner->cost[i];
    ranked[runner->count++] = (Ranked){runner->cost[i], i};
  }
  qsort(ranked, (size_t)runner->count, sizeof *ranked, longest_first);
  for (int i = 0; i < runner->count; i++) runner->order[i] = ranked[i].index;
  free(ranked);
  return STATUS_OK;
}

/* Stopping and progress. */

static bool stop_asked(Runner *runner) {
  if (runner->stopped_at == 0 && runner->options->stop()) {
    runner->stopped_at = clock_wall();
    counter_add(runner->counters, STOP, 1);
  }
  return runner->stopped_at != 0;
}

static void show_progress(Runner *runner) {
  if (!runner->progress.shown) return;
  int64_t done = counter_add(runner->counters, DONE, 0), cost = counter_add(runner->counters, COST, 0);
  progress_update(&runner->progress, (long)done, runner->count, (double)cost / COST_UNITS);
}

/* Between rounds of a task: serve the other ranks, report, and drop the task when a stop was asked for and
 * the grace time is over. */
static bool tick(void *context, double fraction) {
  (void)fraction;
  Runner *runner = context;
  double now = clock_wall();
  if (now - runner->polled_at < 0.05) return true;
  runner->polled_at = now;
  counter_progress();
  show_progress(runner);
  return !stop_asked(runner) || now - runner->stopped_at < GRACE;
}

/* Running. */

static void report_failure(const Runner *runner, const Task *task, const TaskResult *result) {
  const StudyFile *file = runner->study->file;
  fprintf(stderr,
          "task %d failed (setting %s, policy %s, runs %u to %u, seed %llu): %s; to try it again: thompson "
          "run %s/study.yaml -o %s --resume\n",
          task->index, file->setting_labels[task->setting], file->policies[task->policy].label,
          task->first_run, task->first_run + (unsigned)task->runs - 1,
          (unsigned long long)runner->study->seed, result->message, runner->directory, runner->directory);
}

static Status run_one(Runner *runner, int index) {
  const Task *task = &runner->study->tasks[index];
  TaskResult result;
  TRY(task_result_create(runner->study, task, &result));
  Status status = study_run_task(runner->study, task, runner->directory, (StudyTick){tick, runner}, &result);
  if (status == STATUS_OK) status = checkpoint_save(runner->directory, runner->study, task, &result);
  if (status == STATUS_OK) {
    bool failed = result.status == RUN_FAILED;
    if (failed) report_failure(runner, task, &result);
    counter_add(runner->counters, failed ? FAILED : DONE, 1);
    counter_add(runner->counters, COST, (int64_t)(COST_UNITS * runner->cost[index] / runner->total_cost));
  }
  task_result_destroy(&result);
  return status;
}

static Status run_all(Runner *runner) {
  for (;;) {
    int64_t failures = counter_add(runner->counters, FAILED, 0);
    if (runner->options->max_failures >= 0 && failures > runner->options->max_failures) return STATUS_OK;
    if (stop_asked(runner) || counter_add(runner->counters, STOP, 0) > 0) return STATUS_OK;
    int64_t next = counter_add(runner->counters, NEXT, 1);
    if (next >= runner->count) return STATUS_OK;
    Status status = run_one(runner, runner->order[next]);
    if (status == STATUS_STOPPED) return STATUS_OK;
    if (status != STATUS_OK) {
      counter_add(runner->counters, STOP, 1); /* results cannot be kept: nobody should begin more */
      return status;
    }
    show_progress(runner);
  }
}

static Status scan(const Parallel *parallel, const Study *study, const char *directory, signed char **state) {
  NEW(*state, study->task_count);
  Status status = parallel->rank == 0 ? checkpoint_scan(directory, study, *state) : STATUS_OK;
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(*state, (size_t)study->task_count);
  return STATUS_OK;
}

Status tasks_run(const Parallel *parallel, const Study *study, const char *directory,
                 const TasksOptions *options, TasksOutcome *outcome) {
  Runner runner = {.study = study, .directory = directory, .options = options};
  signed char *state = NULL;
  *outcome = (TasksOutcome){0};
  Status status = scan(parallel, study, directory, &state);
  if (status == STATUS_OK) status = parallel_agree(parallel, list_tasks(&runner, state, outcome));
  if (status == STATUS_OK) status = counter_create(COUNTERS, &runner.counters);
  if (status == STATUS_OK) {
    runner.progress = progress_begin(options->progress, parallel->rank == 0, "running tasks");
    status = parallel_agree(parallel, run_all(&runner));
    int64_t done = counter_add(runner.counters, DONE, 0);
    outcome->failed = counter_add(runner.counters, FAILED, 0);
    outcome->done += done;
    outcome->left = runner.count - done - outcome->failed;
    if (runner.count > 0) progress_end(&runner.progress, (long)(done + outcome->failed), runner.count);
    parallel_barrier();
  }
  counter_destroy(runner.counters);
  free(runner.order);
  free(runner.cost);
  free(state);
  return status;
}
