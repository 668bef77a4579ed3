#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/tasks/adaptive.h"
#include "parallel/tasks/tasks_internal.h"
#include "parallel/tasks/worklist.h"
#include "study/study_names.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds that a running task may continue after a stop was requested: schedulers kill 10 s (PBS) or 30 s
 * (Slurm) after their first signal. */
static const double GRACE = 7;

/* Tasks are made durable together, like group commits in databases (DeWitt et al., SIGMOD 1984): at most
 * about a second's work waits. */
static const double GROUP_SECONDS = 1;

bool tasks_stop_is_asked(TasksRunner *runner) {
  if (runner->stopped_at != 0) return true;
  const bool here = runner->options->stop();
  if (here) {
    queue_stop(runner->queue);
    queue_look(runner->queue); /* tells the other ranks at once */
  }
  if (here || queue_is_stopped(runner->queue)) runner->stopped_at = clock_wall();
  return runner->stopped_at != 0;
}

void tasks_show_progress(TasksRunner *runner) {
  if (!progress_is_due(&runner->progress)) return;
  const long done = (long)queue_look(runner->queue).done, all = runner->count + runner->spread_count;
  const double share = runner->count > 0 ? queue_share(runner->queue) : (double)done / (double)all;
  progress_update(&runner->progress, done, all, share);
}

Status tasks_sync_journal(TasksRunner *runner) {
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
static bool tasks_sync_is_due(const TasksRunner *runner, double ahead) {
  return runner->waiting_count > 0 && clock_wall() + ahead - runner->waiting_since >= GROUP_SECONDS;
}

/* Serves the other ranks between rounds of a task and shows progress; returns false, to drop the task, when
 * the time limit, or the grace period after a stop, is over. */
static bool tasks_tick(void *context, double fraction) {
  (void)fraction;
  TasksRunner *runner = context;
  if (clock_wall() - runner->polled_at < 0.05) return true;
  if (tasks_sync_is_due(runner, 0) && tasks_sync_journal(runner) != STATUS_OK) return false;
  parallel_counter_progress();
  tasks_show_progress(runner);
  /* The time now: where many processes compete for the cores, MPI's yielding alone takes longer. */
  runner->polled_at = clock_wall();
  return runner->options->time_left() > 0 &&
         !(tasks_stop_is_asked(runner) && clock_wall() - runner->stopped_at >= GRACE);
}

/* ---- one task in a process of its own */

enum { TICK_MS = 20 };

/* What the two processes share; the parts of the result follow. */
typedef struct {
  volatile double fraction;
  Status status;
  RunStatus run_status;
  char sentence[2048];
} Report;

/* Copies the parts of a result, with its message, to the bytes after the report, or back. */
static void isolated_task_copy_parts(bool to_report, Report *report, TaskResult *result) {
  JournalPart parts[JOURNAL_PARTS];
  char *at = (char *)(report + 1);
  journal_list_payload(RUN_FAILED, 0, result, parts);
  for (int i = 0; i < JOURNAL_PARTS; at += parts[i++].size)
    memcpy(to_report ? at : parts[i].bytes, to_report ? parts[i].bytes : at, parts[i].size);
}

/* Tells the rank, from the child, how far the task is. */
static bool isolated_task_put_fraction(void *context, double fraction) {
  Report *report = context;
  report->fraction = fmax(report->fraction, fraction); /* while it waits for a process it says 0 */
  return true;
}

typedef enum { ENDED, STOPPED, LATE } Outcome;

/* Waits until the child closes its end of the pipe by ending, in whatever way, or until tasks_tick, called
 * about every 20 ms, or the timeout stops it. */
static Outcome isolated_task_wait(int pipe_end, const Report *report, TasksRunner *runner) {
  const double timeout = runner->options->task_timeout;
  double elapsed = 0, last = clock_wall();
  for (;;) {
    struct pollfd end = {.fd = pipe_end, .events = POLLIN};
    /* in short steps near the end: a timeout can be shorter than a tick */
    if (poll(&end, 1, (int)fmin(TICK_MS, 1 + 1000 * (timeout - elapsed))) > 0) return ENDED;
    double now = clock_wall();
    elapsed += fmin(now - last, 1); /* a longer gap: this process was suspended, and the child with it */
    last = now;
    if (!tasks_tick(runner, report->fraction)) return STOPPED;
    if (elapsed > timeout) return LATE;
  }
}

/* Runs the task in a child and waits for its end; the child never returns from here. The report is in memory
 * that both share. */
static Status isolated_task_fork(TasksRunner *runner, const Task *task, Report *report, TaskResult *result) {
  char message[256] = "";
  int ends[2], how = 0;
  if (pipe(ends) != 0) return status_set(STATUS_INTERNAL, "cannot create a pipe: %s", strerror(errno));
  pid_t parent = getpid(), process = fork();
  if (process == 0) {
    close(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILURE);
    report->status = study_run_task(runner->study, task, &runner->priors,
                                    (Tick){isolated_task_put_fraction, report}, result);
    snprintf(report->sentence, sizeof report->sentence, "%s", status_message());
    isolated_task_copy_parts(true, report, result);
    report->run_status = result->status;
    _exit(EXIT_SUCCESS);
  }
  const int error = errno;
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return status_set(STATUS_INTERNAL, "cannot start a process for a task: %s", strerror(error));
  }
  const Outcome outcome = isolated_task_wait(ends[0], report, runner);
  if (outcome != ENDED) kill(process, SIGKILL);
  close(ends[0]);
  while (waitpid(process, &how, 0) < 0 && errno == EINTR) continue;
  if (outcome == STOPPED) return status_set(STATUS_STOPPED, "stopped");
  if (outcome == LATE)
    snprintf(message, sizeof message,
             "not finished within the %g s of --task-timeout (%.0f%% of its rounds done)",
             runner->options->task_timeout, 100 * report->fraction);
  else if (WIFSIGNALED(how))
    snprintf(message, sizeof message, "its process was killed by signal %d (%s)", WTERMSIG(how),
             strsignal(WTERMSIG(how)));
  else if (WEXITSTATUS(how) != EXIT_SUCCESS)
    snprintf(message, sizeof message, "its process exited with status %d", WEXITSTATUS(how));
  if (message[0]) return study_result_fail(runner->study, message, result);
  if (report->status != STATUS_OK) return status_set(report->status, "%s", report->sentence);
  isolated_task_copy_parts(false, report, result);
  result->status = report->run_status;
  return STATUS_OK;
}

/* Runs a task as study_run_task does, but in a separate process, so that one that hangs, crashes or uses up
 * the memory harms no other. The process is forked from the rank, never calls MPI, and dies with the rank. If
 * it is not done after the timeout (time during which the rank itself was suspended does not count), it is
 * killed. A task whose process was killed or died is RUN_FAILED with a message. STATUS_STOPPED when
 * tasks_tick returned false. */
static Status isolated_task_run(TasksRunner *runner, const Task *task, TaskResult *result) {
  JournalPart parts[JOURNAL_PARTS];
  size_t size = sizeof(Report) + (size_t)journal_list_payload(RUN_FAILED, 0, result, parts);
  Report *report = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (report == MAP_FAILED)
    return status_set(STATUS_INTERNAL, "out of memory: %zu bytes for a task: %s", size, strerror(errno));
  Status status = isolated_task_fork(runner, task, report, result);
  munmap(report, size);
  return status;
}

/* ---- all tasks of this rank */

/* Reports a failed task on stderr, with the command that tries it again. Prints in one piece, since several
 * ranks may print at once. */
static void tasks_report_failure(const TasksRunner *runner, const Task *task, const TaskResult *result) {
  const Study *study = runner->study;
  const StudyFile *file = study->file;
  char path[4200], *line;
  size_t size;
  FILE *out = open_memstream(&line, &size);
  if (!out) return;
  snprintf(path, sizeof path, "%s/study.yaml", runner->directory);
  fprintf(
      out,
      "task %d failed (setting %s, policy %s, runs %u to %u, seed %llu): %s; to try it again: thompson run ",
      task->index, file->setting_labels[task->setting], file->policies[task->policy].label, task->first_run,
      task->first_run + (unsigned)task->runs - 1, (unsigned long long)study->seed, result->message);
  io_shell_print(out, path);
  fputs(" -o ", out);
  io_shell_print(out, runner->directory);
  fputs(" --resume\n", out);
  if (fclose(out) == 0) fputs(line, stderr);
  free(line);
}

Status tasks_keep_result(TasksRunner *runner, const Task *task, const TaskResult *result, double seconds) {
  const bool failed = result->status == RUN_FAILED;
  if (runner->waiting_count == MOST_WAITING) TRY(tasks_sync_journal(runner));
  TRY(journal_append(runner->journal, task, result));
  if (runner->waiting_count == 0) runner->waiting_since = clock_wall() - seconds;
  runner->waiting[runner->waiting_count++] = (Waiting){task->index, failed, seconds};
  if (!failed) return STATUS_OK;
  TRY(tasks_sync_journal(runner));
  tasks_report_failure(runner, task, result);
  return STATUS_OK;
}

/* Runs a task and keeps its result. */
static Status tasks_run_one(TasksRunner *runner, int index) {
  const Study *study = runner->study;
  const Task task = study_task(study, index);
  const double start = clock_wall();
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(study, &task, &result));
  TRY(finished_share(runner->finished, &task, &result));
  TRY(runner->options->task_timeout > 0
          ? isolated_task_run(runner, &task, &result)
          : study_run_task(study, &task, &runner->priors, (Tick){tasks_tick, runner}, &result));
  return tasks_keep_result(runner, &task, &result, clock_wall() - start);
}

bool tasks_too_many_failed(const TasksRunner *runner) {
  return runner->outcome->failed + queue_seen(runner->queue).failed > runner->options->max_failures;
}

static Status tasks_take_from_queue(TasksRunner *runner) {
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

bool tasks_has_to_run(const TasksRunner *runner, int index) {
  const TasksOptions *options = runner->options;
  if (options->only) return options->only[index];
  return runner->state[index] == RUN_NOT_RUN &&
         study_shard(runner->study, index, options->shards) == options->shard &&
         !study_repeats_task(runner->study, index, options->shard, options->shards);
}

/* Lists the tasks that are to be run, and are in the wave of their setting, from the blocks seen to those
 * wanted, unless they are chosen one by one; except those of settings that are spread over ranks. */
static void tasks_list_wave(TasksRunner *runner, const Adaptive *adaptive) {
  const Study *study = runner->study;
  runner->count = 0;
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    const AdaptiveSetting *at = &adaptive->settings[task.setting];
    const int block = i % study->runs.blocks;
    const bool in_wave = runner->options->only || (block >= at->seen && block < at->wanted);
    if (in_wave && !study_task_is_distributed(study, &task) && tasks_has_to_run(runner, i))
      runner->list[runner->count++] = i;
  }
}

/* Runs wave after wave until every setting has its runs, or the work was stopped; keeps what is done however
 * a wave ends. Collective. */
static Status tasks_run_waves(TasksRunner *runner, Adaptive *adaptive) {
  TasksOutcome *outcome = runner->outcome;
  for (bool open = true; open;) {
    tasks_list_wave(runner, adaptive);
    TRY(queue_create(runner->study, worklist_groups(parallel_size()), runner->count, runner->list,
                     runner->size, &runner->queue));
    runner->progress = progress_begin(runner->options->progress, "running tasks");
    Status status = tasks_spread_run(runner);
    if (status == STATUS_OK) status = tasks_take_from_queue(runner);
    const Status kept = tasks_sync_journal(runner);
    queue_look(runner->queue);
    status = parallel_agree(status == STATUS_OK ? kept : status);
    const QueueState state = queue_look(runner->queue);
    const int64_t ended = state.done + state.failed, all = runner->count + runner->spread_count;
    outcome->failed += state.failed;
    outcome->here += ended;
    outcome->left += all - ended;
    if (state.stopped && runner->stopped_at == 0) runner->stopped_at = clock_wall(); /* no further wave */
    if (all > 0) progress_end(&runner->progress, (long)ended, (long)all);
    parallel_barrier();
    queue_destroy(runner->queue);
    runner->queue = NULL;
    TRY(status);
    if (!runner->study->runs.adaptive || runner->options->only || outcome->left > 0) return STATUS_OK;
    /* What each rank knows about the wave's tasks: */
    parallel_collect(runner->state, (size_t)runner->study->task_count);
    TRY(finished_look_all(runner->finished));
    TRY(adaptive_look(runner->state, adaptive, &open));
  }
  return STATUS_OK;
}

static Status tasks_begin(Arena *memory, TasksRunner *runner, Adaptive *adaptive) {
  const Study *study = runner->study;
  ALLOCATE(memory, runner->state, study->task_count);
  ALLOCATE(memory, runner->list, study->task_count);
  ALLOCATE(memory, runner->size, study->task_count);
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    runner->size[i] = study_task_size(study, &task);
    /* Failed tasks are tried again. */
    runner->state[i] = runner->finished->state[i] == RUN_OK ? RUN_OK : RUN_NOT_RUN;
  }
  TRY(tasks_spread_list(memory, runner));
  TRY(journal_create(memory, runner->directory, study, &runner->journal));
  return adaptive_create(memory, runner->finished, adaptive);
}

Status tasks_run(Finished *finished, const TasksOptions *options, TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  TasksRunner *runner;
  Adaptive adaptive;
  ALLOCATE_ON_RANKS(&scratch, runner, 1);
  *runner = (TasksRunner){.study = finished->study,
                          .directory = finished->directory,
                          .priors = {.directory = finished->directory},
                          .options = options,
                          .finished = finished,
                          .outcome = outcome};
  Status status = parallel_agree(tasks_begin(&scratch, runner, &adaptive));
  if (status == STATUS_OK) status = tasks_run_waves(runner, &adaptive);
  queue_destroy(runner->queue);
  journal_close(runner->journal);
  study_task_priors_free(&runner->priors);
  return status;
}
