#include "parallel/tasks.h"

#include "core/clock.h"
#include "core/memory.h"
#include "core/shell.h"
#include "parallel/adaptive.h"
#include "parallel/commit.h"
#include "parallel/counter.h"
#include "parallel/finished.h"
#include "parallel/isolate.h"
#include "parallel/queue.h"
#include "parallel/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds that a running task may go on after a stop was asked for: schedulers kill 10 s (PBS) or 30 s
 * (Slurm) after their first signal. */
static const double GRACE = 7;

typedef struct {
  const Study *study;
  const char *directory;
  const TasksOptions *options;
  Queue *queue; /* of the wave */
  Commit *commit;
  Finished finished; /* as of the beginning, or the end of the last wave */
  Progress progress;
  signed char *state; /* [task_count], RunStatus; of the wave's tasks what this rank knows */
  double *cost; /* [task_count] */
  int *list; /* [count], tasks of the wave that are to be run */
  int count;
  int64_t failed_before; /* in earlier waves */
  double stopped_at, polled_at; /* seconds; 0: not yet */
} Runner;

/* Which tasks. */

/* What a run costs is the same in all blocks of a cell. */
static Status rate_tasks(const Study *study, double **cost) {
  double a_run = 0;
  NEW(*cost, study->task_count);
  for (int i = 0; i < study->task_count; i++) {
    Task task = study_task(study, i);
    if (i % study->runs.blocks == 0) a_run = study->ops->cost(study, &task) / task.runs;
    (*cost)[i] = a_run * task.runs;
  }
  return STATUS_OK;
}

/* Whether the wave of the setting has this task: from the blocks seen to those wanted. Large settings have
 * run before. */
static bool in_wave(const Runner *runner, const Adaptive *adaptive, int index) {
  const Task task = study_task(runner->study, index);
  const AdaptiveSetting *at = &adaptive->settings[task.setting];
  int block = index % runner->study->runs.blocks;
  if (study_task_is_large(runner->study, &task)) return false;
  return index % runner->options->shards == runner->options->shard && block >= at->seen && block < at->wanted;
}

/* Tasks of the wave that are not done. */
static Status list_wave(Runner *runner, const Adaptive *adaptive) {
  int size = 0;
  runner->count = 0;
  for (int i = 0; i < runner->study->task_count; i++) size += in_wave(runner, adaptive, i);
  free(runner->list);
  NEW(runner->list, size);
  for (int i = 0; i < runner->study->task_count; i++) {
    if (runner->state[i] == RUN_NOT_RUN && in_wave(runner, adaptive, i)) runner->list[runner->count++] = i;
  }
  return STATUS_OK;
}

/* Stopping and progress. */

static void stop_all(Runner *runner) {
  queue_stop(runner->queue);
  queue_look(runner->queue);
}

static bool stop_asked(Runner *runner) {
  if (runner->stopped_at != 0) return true;
  const bool here = runner->options->stop();
  if (here) stop_all(runner);
  if (here || queue_is_stopped(runner->queue)) runner->stopped_at = clock_wall();
  return runner->stopped_at != 0;
}

/* The time limit is over, or the grace after a stop. */
static bool time_is_over(Runner *runner) {
  return runner->options->time_left() <= 0 ||
         (stop_asked(runner) && clock_wall() - runner->stopped_at >= GRACE);
}

static void show_progress(Runner *runner) {
  if (!progress_is_due(&runner->progress)) return;
  const long done = (long)queue_look(runner->queue).done;
  progress_update(&runner->progress, done, runner->count, queue_share(runner->queue));
}

/* Between rounds of a task: serve the other ranks, report, and drop the task when its time is over. */
static bool tick(void *context, double fraction) {
  (void)fraction;
  Runner *runner = context;
  if (clock_wall() - runner->polled_at < 0.05) return true;
  counter_progress();
  show_progress(runner);
  runner->polled_at = clock_wall(); /* where many compete for the cores, MPI's yielding alone takes longer */
  return !time_is_over(runner);
}

/* Running. */

/* In one piece: several ranks may write at once. */
void tasks_report_failure(const Study *study, const char *directory, const Task *task,
                          const TaskResult *result) {
  const StudyFile *file = study->file;
  char path[4200], *line;
  size_t size;
  FILE *out = open_memstream(&line, &size);
  if (!out) return;
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  fprintf(
      out,
      "task %d failed (setting %s, policy %s, runs %u to %u, seed %llu): %s; to try it again: thompson run ",
      task->index, file->setting_labels[task->setting], file->policies[task->policy].label, task->first_run,
      task->first_run + (unsigned)task->runs - 1, (unsigned long long)study->seed, result->message);
  shell_print(out, path);
  fputs(" -o ", out);
  shell_print(out, directory);
  fputs(" --resume\n", out);
  if (fclose(out) == 0) fputs(line, stderr);
  free(line);
}

static Status simulate(Runner *runner, const Task *task, TaskResult *result) {
  Tick ticker = {tick, runner};
  double timeout = runner->options->task_timeout;
  if (timeout > 0) return isolate_run_task(runner->study, task, runner->directory, timeout, ticker, result);
  return study_run_task(runner->study, task, runner->directory, ticker, result);
}

/* A task that is on disk is done. */
static void saved(void *context, const Task *task, const TaskResult *result, double seconds) {
  Runner *runner = context;
  const bool failed = result->status == RUN_FAILED;
  if (failed) tasks_report_failure(runner->study, runner->directory, task, result);
  runner->state[task->index] = (signed char)result->status;
  queue_finish(runner->queue, task->index, failed, seconds);
}

static Status run_one(Runner *runner, int index) {
  const Task listed = study_task(runner->study, index), *task = &listed;
  double start = clock_wall();
  TaskResult result;
  TRY(task_result_create(runner->study, task, &result));
  Status status = finished_share(&runner->finished, task, &result);
  if (status == STATUS_OK) status = simulate(runner, task, &result);
  if (status == STATUS_OK) return commit_add(runner->commit, task, &result, clock_wall() - start);
  task_result_destroy(&result);
  return status;
}

/* Save before the next task, where that would keep others waiting too long: one of unknown length would. */
static Status save_if_due(Runner *runner, double expected) {
  return commit_is_due(runner->commit, expected > 0 ? expected : INFINITY) ? commit_save(runner->commit)
                                                                           : STATUS_OK;
}

static bool too_many_failed(const Runner *runner) {
  const int64_t most = runner->options->max_failures;
  return most >= 0 && runner->failed_before + queue_seen(runner->queue).failed > most;
}

static Status take_tasks(Runner *runner) {
  while (!stop_asked(runner)) {
    const int index = queue_take(runner->queue);
    if (too_many_failed(runner)) queue_stop(runner->queue);
    if (index < 0 || too_many_failed(runner) || queue_seen(runner->queue).stopped) return STATUS_OK;
    const double expected = queue_expect(runner->queue, index);
    if (expected > runner->options->time_left()) continue; /* a shorter may fit */
    Status status = save_if_due(runner, expected);
    if (status == STATUS_OK) status = run_one(runner, index);
    if (status == STATUS_STOPPED) return STATUS_OK;
    if (status != STATUS_OK) {
      queue_stop(runner->queue); /* results cannot be kept: nobody should begin more */
      return status;
    }
    show_progress(runner);
  }
  return STATUS_OK;
}

/* However the work ends, what is done is kept. */
static Status run_all(Runner *runner) {
  Status status = take_tasks(runner), kept = commit_save(runner->commit);
  queue_look(runner->queue);
  return status == STATUS_OK ? kept : status;
}

/* Run the tasks of one wave. Collective. */
static Status run_wave(const Parallel *parallel, Runner *runner, TasksOutcome *outcome) {
  TRY(queue_create(parallel, runner->study, schedule_groups(parallel->size), runner->count, runner->list,
                   runner->cost, &runner->queue));
  runner->progress = progress_begin(runner->options->progress, parallel->rank == 0, "running tasks");
  Status status = parallel_agree(parallel, run_all(runner));
  const QueueState state = queue_look(runner->queue);
  const int64_t done = state.done, failed = state.failed;
  outcome->failed += failed;
  outcome->here += done + failed;
  outcome->left = runner->count - done - failed;
  runner->failed_before += failed;
  if (state.stopped && runner->stopped_at == 0) runner->stopped_at = clock_wall(); /* no wave comes after */
  if (runner->count > 0) progress_end(&runner->progress, (long)(done + failed), runner->count);
  parallel_barrier();
  queue_destroy(runner->queue);
  runner->queue = NULL;
  return status;
}

/* What each rank knows of the wave's tasks, to all. Collective. */
static Status share_state(const Parallel *parallel, const Runner *runner) {
  TRY(parallel_collect(parallel, 0, runner->state, (size_t)runner->study->task_count));
  parallel_broadcast(runner->state, (size_t)runner->study->task_count);
  return STATUS_OK;
}

/* Wave after wave until every setting has its runs, or the work was stopped; what a wave lacks because a file
 * of it was damaged runs again before the next one. Collective. */
static Status run_waves(const Parallel *parallel, Runner *runner, Adaptive *adaptive, TasksOutcome *outcome) {
  for (bool open = true; open;) {
    TRY(parallel_agree(parallel, list_wave(runner, adaptive)));
    TRY(run_wave(parallel, runner, outcome));
    if (!runner->study->runs.adaptive || outcome->left > 0) return STATUS_OK;
    TRY(share_state(parallel, runner));
    finished_destroy(&runner->finished);
    TRY(finished_scan_all(parallel, runner->directory, runner->study, &runner->finished));
    TRY(adaptive_look(parallel, runner->state, adaptive, &open));
  }
  return STATUS_OK;
}

static Status begin(Runner *runner, Adaptive *adaptive) {
  const Study *study = runner->study;
  NEW(runner->state, study->task_count);
  for (int i = 0; i < study->task_count; i++) /* what failed is tried again */
    runner->state[i] = runner->finished.state[i] == RUN_OK ? RUN_OK : RUN_NOT_RUN;
  TRY(rate_tasks(study, &runner->cost));
  TRY(commit_create(runner->directory, study, (CommitNotice){saved, runner}, &runner->commit));
  return adaptive_create(&runner->finished, adaptive);
}

Status tasks_run(const Parallel *parallel, const Study *study, const char *directory,
                 const TasksOptions *options, TasksOutcome *outcome) {
  Runner runner = {
      .study = study, .directory = directory, .options = options, .failed_before = options->failed_before};
  Adaptive adaptive = {0};
  *outcome = (TasksOutcome){0};
  Status status = finished_scan_all(parallel, directory, study, &runner.finished);
  if (status == STATUS_OK) status = parallel_agree(parallel, begin(&runner, &adaptive));
  if (status == STATUS_OK) status = run_waves(parallel, &runner, &adaptive, outcome);
  if (status == STATUS_OK) status = parallel_agree(parallel, commit_merge(runner.commit));
  adaptive_destroy(&adaptive);
  queue_destroy(runner.queue);
  commit_destroy(runner.commit);
  finished_destroy(&runner.finished);
  free(runner.list);
  free(runner.cost);
  free(runner.state);
  return status;
}
