#include "parallel/tasks.h"

#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/isolate.h"
#include "parallel/parallel_adaptive.h"
#include "parallel/parallel_counter.h"
#include "parallel/queue.h"
#include "parallel/worklist.h"

#include <math.h>
#include <string.h>

/* Seconds that a running task may continue after a stop was requested: schedulers kill 10 s (PBS) or 30 s
 * (Slurm) after their first signal. */
static const double GRACE = 7;

/* Tasks are made durable together, like group commits in databases (DeWitt et al., SIGMOD 1984): at most
 * about a second's work waits. */
enum { MOST_WAITING = 1024 };
static const double GROUP_SECONDS = 1;

/* A task that is in the journal and may not be on disk yet. */
typedef struct {
  int task;
  bool failed;
  double seconds; /* time that it took */
} Waiting;

typedef struct {
  const Study *study;
  const char *directory;
  const TasksOptions *options;
  Queue *queue; /* of the wave */
  Journal *journal;
  Waiting waiting[MOST_WAITING]; /* [waiting_count] */
  int waiting_count;
  double waiting_since; /* when the first of them was begun, by the wall clock */
  Finished *finished; /* as of the beginning, or the end of the last wave */
  Progress progress;
  signed char *state; /* [task_count], RunStatus; for the wave's tasks, what this rank knows */
  double *cost; /* [task_count] */
  int *list; /* [task_count], of which `count` are used: tasks of the wave that are to be run */
  int count;
  TasksOutcome *outcome; /* of earlier waves and large settings */
  double stopped_at, polled_at; /* seconds; 0: not yet */
} Runner;

/* Choosing tasks. */

/* Rates tasks by cost: the cost per run is the same in all blocks of a cell. */
static Status tasks_rate_by_cost(Arena *memory, const Study *study, double **cost) {
  double a_run = 0;
  ALLOCATE(memory, *cost, study->task_count);
  for (int i = 0; i < study->task_count; i++) {
    Task task = study_task(study, i);
    if (i % study->runs.blocks == 0) a_run = study->ops->cost(study, &task) / task.runs;
    (*cost)[i] = a_run * task.runs;
  }
  return STATUS_OK;
}

/* Returns whether a task of this shard is in the wave of its setting: from the blocks seen to those wanted.
 * Large settings have already run. */
static bool tasks_wave_has_task(const Runner *runner, const Adaptive *adaptive, int index) {
  const Task task = study_task(runner->study, index);
  const AdaptiveSetting *at = &adaptive->settings[task.setting];
  int block = index % runner->study->runs.blocks;
  if (study_task_is_large(runner->study, &task)) return false;
  return index % runner->options->shards == runner->options->shard && block >= at->seen && block < at->wanted;
}

/* Lists the tasks of the wave that are not done. */
static void tasks_list_wave(Runner *runner, const Adaptive *adaptive) {
  runner->count = 0;
  for (int i = 0; i < runner->study->task_count; i++)
    if (runner->state[i] == RUN_NOT_RUN && tasks_wave_has_task(runner, adaptive, i))
      runner->list[runner->count++] = i;
}

/* Stopping and progress. */

static void tasks_stop_all_ranks(Runner *runner) {
  queue_stop(runner->queue);
  queue_look(runner->queue);
}

static bool tasks_stop_is_asked(Runner *runner) {
  if (runner->stopped_at != 0) return true;
  const bool here = runner->options->stop();
  if (here) tasks_stop_all_ranks(runner);
  if (here || queue_is_stopped(runner->queue)) runner->stopped_at = clock_wall();
  return runner->stopped_at != 0;
}

/* Returns whether the time limit, or the grace period after a stop, is over. */
static bool tasks_time_is_over(Runner *runner) {
  return runner->options->time_left() <= 0 ||
         (tasks_stop_is_asked(runner) && clock_wall() - runner->stopped_at >= GRACE);
}

static void tasks_show_progress(Runner *runner) {
  if (!progress_is_due(&runner->progress)) return;
  const long done = (long)queue_look(runner->queue).done;
  progress_update(&runner->progress, done, runner->count, queue_share(runner->queue));
}

/* Makes durable what is in the journal, and only then counts it as done. */
static Status tasks_sync_journal(Runner *runner) {
  TRY(journal_sync(runner->journal));
  for (int i = 0; i < runner->waiting_count; i++) {
    const Waiting *done = &runner->waiting[i];
    runner->state[done->task] = done->failed ? RUN_FAILED : RUN_OK;
    queue_finish(runner->queue, done->task, done->failed, done->seconds);
  }
  runner->waiting_count = 0;
  return STATUS_OK;
}

/* Returns whether the waiting tasks would wait too long if `ahead` more seconds were spent first. */
static bool tasks_sync_is_due(const Runner *runner, double ahead) {
  return runner->waiting_count > 0 && clock_wall() + ahead - runner->waiting_since >= GROUP_SECONDS;
}

/* Serves the other ranks between rounds of a task and shows progress; returns false, to drop the task, when
 * its time is over. */
static bool tasks_tick(void *context, double fraction) {
  (void)fraction;
  Runner *runner = context;
  if (clock_wall() - runner->polled_at < 0.05) return true;
  if (tasks_sync_is_due(runner, 0) && tasks_sync_journal(runner) != STATUS_OK) return false;
  parallel_counter_progress();
  tasks_show_progress(runner);
  runner->polled_at =
      clock_wall(); /* where many processes compete for the cores, MPI's yielding alone takes longer */
  return !tasks_time_is_over(runner);
}

/* Running. */

/* Prints in one piece, since several ranks may print at once. */
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
  io_shell_print(out, path);
  fputs(" -o ", out);
  io_shell_print(out, directory);
  fputs(" --resume\n", out);
  if (fclose(out) == 0) fputs(line, stderr);
  free(line);
}

static Status tasks_simulate_task(Runner *runner, const Task *task, TaskResult *result) {
  Tick ticker = {tasks_tick, runner};
  double timeout = runner->options->task_timeout;
  if (timeout > 0) return isolate_run_task(runner->study, task, runner->directory, timeout, ticker, result);
  return study_run_task(runner->study, task, runner->directory, ticker, result);
}

/* Appends a result to the journal. Other ranks learn of a failure before this rank begins another task. */
static Status tasks_journal_result(Runner *runner, const Task *task, const TaskResult *result,
                                   double seconds) {
  const bool failed = result->status == RUN_FAILED;
  if (runner->waiting_count == MOST_WAITING) TRY(tasks_sync_journal(runner));
  TRY(journal_append(runner->journal, task, result));
  if (runner->waiting_count == 0) runner->waiting_since = clock_wall() - seconds;
  runner->waiting[runner->waiting_count++] = (Waiting){task->index, failed, seconds};
  if (!failed) return STATUS_OK;
  TRY(tasks_sync_journal(runner));
  tasks_report_failure(runner->study, runner->directory, task, result);
  return STATUS_OK;
}

static Status tasks_run_one(Runner *runner, int index) {
  const Task listed = study_task(runner->study, index), *task = &listed;
  double start = clock_wall();
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(runner->study, task, &result));
  TRY(finished_share(runner->finished, task, &result));
  TRY(tasks_simulate_task(runner, task, &result));
  return tasks_journal_result(runner, task, &result, clock_wall() - start);
}

static bool tasks_too_many_failed(const Runner *runner) {
  return runner->outcome->failed + queue_seen(runner->queue).failed > runner->options->max_failures;
}

static Status tasks_take_from_queue(Runner *runner) {
  while (!tasks_stop_is_asked(runner)) {
    const int index = queue_take(runner->queue);
    if (tasks_too_many_failed(runner)) queue_stop(runner->queue);
    if (index < 0 || tasks_too_many_failed(runner) || queue_seen(runner->queue).stopped) return STATUS_OK;
    const double expected = queue_expect(runner->queue, index);
    if (expected > runner->options->time_left()) continue; /* a shorter one may fit */
    /* A task of unknown length may be a long one. */
    Status status = tasks_sync_is_due(runner, expected > 0 ? expected : INFINITY) ? tasks_sync_journal(runner)
                                                                                  : STATUS_OK;
    if (status == STATUS_OK) status = tasks_run_one(runner, index);
    if (status == STATUS_STOPPED) return STATUS_OK;
    if (status != STATUS_OK) {
      queue_stop(runner->queue); /* results cannot be kept, so no rank should begin more */
      return status;
    }
    tasks_show_progress(runner);
  }
  return STATUS_OK;
}

/* Takes and runs tasks until the work ends, in whatever way, and keeps what is done. */
static Status tasks_run_until_empty(Runner *runner) {
  Status status = tasks_take_from_queue(runner), kept = tasks_sync_journal(runner);
  queue_look(runner->queue);
  return status == STATUS_OK ? kept : status;
}

/* Runs the tasks of one wave. Collective. */
static Status tasks_run_wave(const Parallel *parallel, Runner *runner) {
  TasksOutcome *outcome = runner->outcome;
  TRY(queue_create(parallel, runner->study, worklist_groups(parallel->size), runner->count, runner->list,
                   runner->cost, &runner->queue));
  runner->progress = progress_begin(runner->options->progress, parallel->rank == 0, "running tasks");
  Status status = parallel_agree(parallel, tasks_run_until_empty(runner));
  const QueueState state = queue_look(runner->queue);
  const int64_t ended = state.done + state.failed;
  outcome->failed += state.failed;
  outcome->here += ended;
  outcome->left += runner->count - ended;
  if (state.stopped && runner->stopped_at == 0) runner->stopped_at = clock_wall(); /* no further wave */
  if (runner->count > 0) progress_end(&runner->progress, (long)ended, runner->count);
  parallel_barrier();
  queue_destroy(runner->queue);
  runner->queue = NULL;
  return status;
}

/* Runs wave after wave until every setting has its runs, or the work was stopped. Collective. */
static Status tasks_run_waves(const Parallel *parallel, Runner *runner, Adaptive *adaptive) {
  for (bool open = true; open;) {
    tasks_list_wave(runner, adaptive);
    TRY(tasks_run_wave(parallel, runner));
    if (!runner->study->runs.adaptive || runner->outcome->left > 0) return STATUS_OK;
    /* What each rank knows about the wave's tasks: */
    parallel_collect(parallel, runner->state, (size_t)runner->study->task_count);
    TRY(finished_look_all(parallel, runner->finished));
    TRY(parallel_adaptive_look(parallel, runner->state, adaptive, &open));
  }
  return STATUS_OK;
}

static Status tasks_begin(Arena *memory, Runner *runner, Adaptive *adaptive) {
  const Study *study = runner->study;
  ALLOCATE_ARRAYS(memory, study->task_count, runner->state, runner->list);
  for (int i = 0; i < study->task_count; i++) /* failed tasks are tried again */
    runner->state[i] = runner->finished->state[i] == RUN_OK ? RUN_OK : RUN_NOT_RUN;
  TRY(tasks_rate_by_cost(memory, study, &runner->cost));
  TRY(journal_create(memory, runner->directory, study, &runner->journal));
  return parallel_adaptive_create(memory, runner->finished, adaptive);
}

Status tasks_run(const Parallel *parallel, Finished *finished, const TasksOptions *options,
                 TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  Runner *runner;
  Adaptive adaptive;
  ALLOCATE(&scratch, runner, 1);
  *runner = (Runner){.study = finished->study,
                     .directory = finished->directory,
                     .options = options,
                     .finished = finished,
                     .outcome = outcome};
  Status status = parallel_agree(parallel, tasks_begin(&scratch, runner, &adaptive));
  if (status == STATUS_OK) status = tasks_run_waves(parallel, runner, &adaptive);
  queue_destroy(runner->queue);
  journal_close(runner->journal);
  return status;
}
