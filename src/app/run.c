/* thompson run: prepare priors, run tasks, reduce. Works alone and under mpiexec or srun. */
#include "app/app.h"
#include "app/app_plan_estimate.h"
#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/parallel_checkpoint.h"
#include "parallel/parallel_large.h"
#include "parallel/parallel_prepare.h"
#include "parallel/reduce.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* When a job should end before its work is done: at a signal from the scheduler, or at a time limit. */

static const double MARGIN = 15; /* seconds before the scheduler ends the job: to write results and to exit */

static volatile sig_atomic_t signalled;
static double deadline = INFINITY; /* by clock_wall */

static void app_run_on_signal(int number) { signalled = number; }

/* Makes SIGTERM, SIGUSR1 and SIGUSR2 request a shutdown from now on, and turns writing beyond the limit on
 * file sizes from a fatal signal into an error. */
static void app_run_catch_signals(void) {
  struct sigaction action = {.sa_handler = app_run_on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  signal(SIGXFSZ, SIG_IGN);
}

/* Sets a deadline: the work should be over `seconds` from now. The earliest of several deadlines counts. */
static void app_run_set_deadline(double seconds) { deadline = fmin(deadline, clock_wall() + seconds); }

/* Sets a deadline shortly before Slurm ends the job (SLURM_JOB_END_TIME), if it says when. */
static void app_run_set_slurm_deadline(void) {
  const char *text = getenv("SLURM_JOB_END_TIME");
  double left = text ? strtod(text, NULL) - (double)time(NULL) : 0;
  if (left > 0)
    app_run_set_deadline(fmax(left - MARGIN, 0)); /* if it is in the past, the job was given more time */
}

/* Returns the seconds until the deadline; INFINITY without one. */
static double app_run_time_left(void) { return deadline - clock_wall(); }

/* Returns whether the work should end, so that no new task is begun. */
static bool app_run_shutdown_asked(void) { return signalled != 0 || app_run_time_left() <= 0; }

typedef struct {
  const char *study, *directory;
  AppTexts sets;
  char seed[40], default_directory[512];
  bool resume, overwrite;
  TasksOptions tasks;
} Arguments;

enum {
  KEY_SET = 256,
  KEY_SEED,
  KEY_RESUME,
  KEY_OVERWRITE,
  KEY_FAIL_FAST,
  KEY_MAX_FAILURES,
  KEY_TIME_LIMIT,
  KEY_TASK_TIMEOUT,
  KEY_SHARD,
  KEY_PROGRESS
};

static const struct argp_option options[] = {
    {"output", 'o', "DIR", 0, "results folder (default: results/NAME)", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "change a key of the study; a list makes a sweep", 0},
    {"seed", KEY_SEED, "N", 0, "the study's seed", 0},
    {"resume", KEY_RESUME, NULL, 0, "continue with what the folder holds", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "replace what the folder holds", 0},
    {"fail-fast", KEY_FAIL_FAST, NULL, 0, "the same as --max-failures 0", 0},
    {"max-failures", KEY_MAX_FAILURES, "N", 0,
     "start no task once more than N have failed; running tasks get 7 more seconds", 0},
    {"time-limit", KEY_TIME_LIMIT, "SECONDS", 0,
     "stop after this time and start nothing that would not finish in it; exit status 75", 0},
    {"task-timeout", KEY_TASK_TIMEOUT, "SECONDS", 0,
     "run every task in its own process; a task that takes longer than this, or crashes, has failed", 0},
    {"shard", KEY_SHARD, "I/N", 0, "run only part I (from 0) of N; `thompson reduce DIR` combines the parts",
     0},
    {"progress", KEY_PROGRESS, "MODE", 0, "auto, plain or none", 0},
    {0}};

static void parse_shard(struct argp_state *state, const char *text, TasksOptions *tasks) {
  char extra;
  /* Nine digits cannot overflow. */
  if (sscanf(text, "%9d/%9d%c", &tasks->shard, &tasks->shards, &extra) != 2 || tasks->shards < 1 ||
      tasks->shard < 0 || tasks->shard >= tasks->shards)
    argp_error(state, "--shard: '%s' is not I/N with 0 <= I < N", text);
}

static ProgressMode parse_progress(struct argp_state *state, const char *text) {
  static const char *const words[] = {"auto", "plain", "none"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, words[i]) == 0) return (ProgressMode)i;
  argp_error(state, "--progress: unknown value '%s'; allowed: auto, plain, none", text);
  return PROGRESS_AUTO;
}

static Lock *lock; /* of the folder, on rank 0 */

static bool stop_asked(void) { return app_run_shutdown_asked() || io_lock_lost(lock); }

static error_t run_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'o': app_take_output(state, &arguments->directory, text); return 0;
  case KEY_SET: app_texts_add(state, &arguments->sets, text); return 0;
  case KEY_SEED: app_take_seed(state, &arguments->sets, arguments->seed, text); return 0;
  case KEY_RESUME: arguments->resume = true; return 0;
  case KEY_OVERWRITE: arguments->overwrite = true; return 0;
  case KEY_FAIL_FAST: arguments->tasks.max_failures = 0; return 0;
  case KEY_MAX_FAILURES:
    arguments->tasks.max_failures = app_integer(state, "--max-failures", text, 0, 1LL << 53);
    return 0;
  case KEY_TIME_LIMIT: app_run_set_deadline(app_real(state, "--time-limit", text, 1e-3, 1e9)); return 0;
  case KEY_TASK_TIMEOUT:
    arguments->tasks.task_timeout = app_real(state, "--task-timeout", text, 1e-3, 1e9);
    return 0;
  case KEY_SHARD: parse_shard(state, text, &arguments->tasks); return 0;
  case KEY_PROGRESS: arguments->tasks.progress = parse_progress(state, text); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END:
    app_need(state, arguments->study, "study file");
    if (arguments->resume && arguments->overwrite)
      argp_error(state, "--resume and --overwrite cannot be combined");
    if (arguments->tasks.shards > 1 && arguments->overwrite)
      argp_error(state, "--overwrite would remove what other shards have done; remove the folder first");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Reads the study: rank 0 reads the file, and all ranks parse the same text. Collective. */
static Status app_run_read_study(const Parallel *parallel, const Arguments *arguments, Study *study) {
  SCOPED(char *, text, memory_free_text);
  TRY(parallel_agree(parallel, parallel->rank == 0 ? config_study_text(arguments->study, &text) : STATUS_OK));
  TRY(parallel_broadcast_text(parallel, &text));
  return parallel_agree(parallel, app_study_of_file(arguments->study, text, &arguments->sets, study));
}

/* Refuses a shard of an adaptive study: which blocks there are depends on the results of earlier blocks, so
 * no part of them can be run alone. */
static Status refuse_shard(const Arguments *arguments, const Study *study) {
  if (arguments->tasks.shards == 1 || !study->runs.adaptive) return STATUS_OK;
  return status_set(
      STATUS_USAGE,
      "--shard: %s has an adaptive number of runs (runs.target_se); allowed: --shard with a fixed "
      "number, such as --set runs=512",
      arguments->study);
}

static Status app_run_open_folder(const Parallel *parallel, const Arguments *arguments, const Study *study) {
  bool sharded = arguments->tasks.shards > 1;
  CheckpointMode mode = arguments->resume || sharded ? CHECKPOINT_RESUME
                        : arguments->overwrite       ? CHECKPOINT_OVERWRITE
                                                     : CHECKPOINT_FRESH;
  int shard = sharded ? arguments->tasks.shard : -1;
  Status status = parallel->rank == 0
                      ? parallel_checkpoint_open(arguments->directory, study, mode, shard, &lock)
                      : STATUS_OK;
  return parallel_agree(parallel, status);
}

/* Writes the results file, prints the table, and says what to run next. *lost: tasks that were finished and
 * can no longer be read. (If an adaptive study was stopped by failures, the reducer may know of more waves
 * from an earlier job, so its missing tasks need not be lost.) Collective. */
static Status app_run_write_results(const Parallel *parallel, const Study *study, const char *directory,
                                    int64_t left, int *lost) {
  ReduceCounts counts = {0};
  Status status = reduce_study(parallel, study, directory, &(ReduceOptions){0}, &counts);
  *lost = left == 0 ? counts.missing : counts.damaged;
  if (parallel->rank == 0 && status == STATUS_OK) {
    status = app_print_table(study, directory);
    const char *figure = config_text(study->file->settings[0], "figure");
    if (!figure) figure = study->ops->figure;
    printf("\nresults: %s/results.nc\nfigure:  analysis/%s%s ", directory,
           strchr(figure, '/') ? "" : "figures/", figure);
    io_shell_print(stdout, directory);
    if (study->published > 0) { /* it has curves */
      printf("\nreport:  analysis/tools/report.py ");
      io_shell_print(stdout, directory);
    }
    putchar('\n');
  }
  parallel_broadcast(lost, sizeof *lost);
  return parallel_agree(parallel, status);
}

static Status app_run_judge_outcome(const TasksOutcome *outcome, int lost, int64_t max_failures,
                                    const char *directory) {
  long long failed = outcome->failed, left = outcome->left;
  if (left > 0 && failed <= max_failures)
    return status_set(
        STATUS_STOPPED, "stopped early: %lld tasks left in %s%s; run again with --resume", left, directory,
        outcome->here > 0 ? "" : ", none was done in this job (try more time or a smaller block)");
  if (lost > 0)
    return status_set(STATUS_TASKS_FAILED,
                      "%d finished tasks in %s can no longer be read; run again with --resume", lost,
                      directory);
  if (failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%lld tasks failed%s; run again with --resume to try them again",
                      failed, left > 0 ? ", the rest were not started" : "");
  return STATUS_OK;
}

/* Returns the status that the job ends with. If results.nc holds runs that the tasks lack, it was left as it
 * is (STATUS_RESUME); if the tasks did not all succeed either, that message is only printed, and their
 * outcome is the status. */
static Status app_run_conclude(Status finished, const TasksOutcome *outcome, int lost, int64_t max_failures,
                               const char *directory) {
  char kept[1024];
  if (finished == STATUS_OK) return app_run_judge_outcome(outcome, lost, max_failures, directory);
  snprintf(kept, sizeof kept, "%s", status_message());
  Status status = app_run_judge_outcome(outcome, lost, max_failures, directory);
  if (status == STATUS_OK) return status_set(finished, "%s", kept);
  if (app_speaks) fprintf(stderr, "%s\n", kept);
  return status;
}

static Status app_run_check_lock(const Parallel *parallel, const char *directory) {
  Status status = STATUS_OK;
  if (io_lock_lost(lock))
    status = status_set(
        STATUS_FILE, "%s: another job took over this folder while this job was frozen, or the folder is gone",
        directory);
  return parallel_agree(parallel, status);
}

/* Runs all tasks that are not finished. */
static Status app_run_all_tasks(const Parallel *parallel, const Study *study, const Arguments *arguments,
                                TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  const TasksOptions *tasks = &arguments->tasks;
  SCOPED(Finished, finished, finished_close);
  TRY(finished_open_all(&scratch, parallel, arguments->directory, study, &finished));
  TRY(finished_check(parallel, tasks->shard, tasks->shards, &finished));
  TRY(parallel_large_run(parallel, &finished, tasks, outcome));
  TRY(tasks_run(parallel, &finished, tasks, outcome));
  return app_run_check_lock(parallel, arguments->directory);
}

/* Runs all tasks, then the reducer. */
static Status run_and_reduce(const Parallel *parallel, const Study *study, const Arguments *arguments) {
  const char *directory = arguments->directory;
  const int64_t max_failures = arguments->tasks.max_failures;
  TasksOutcome outcome = {0};
  int lost = 0;
  TRY(app_run_all_tasks(parallel, study, arguments, &outcome));
  const bool stopped = outcome.left > 0 && outcome.failed <= max_failures;
  Status finished = STATUS_OK;
  if (arguments->tasks.shards == 1 && !stopped)
    finished = app_run_write_results(parallel, study, directory, outcome.left, &lost);
  if (finished != STATUS_OK && finished != STATUS_RESUME) return finished;
  return app_run_conclude(finished, &outcome, lost, max_failures, directory);
}

/* Returns the share of learning priors in the time that the study is expected to take. */
static double app_run_training_share(const Study *study) {
  SCOPED(Speed, speed, app_plan_speed_destroy);
  Estimate estimate;
  if (app_plan_speed_assume(study, &speed) != STATUS_OK ||
      app_plan_estimate_study(study, &speed, &estimate) != STATUS_OK)
    return 1;
  const double hours = estimate.training_hours + estimate.least_hours;
  return hours > 0 ? estimate.training_hours / hours : 1;
}

/* Returns whether to keep waiting while the program checks that the user's own code is there. */
static bool app_run_goes_on(void *context, double fraction) {
  (void)context, (void)fraction;
  return !app_run_shutdown_asked();
}

static Status run_study(const Parallel *parallel, Arguments *arguments) {
  SCOPED(Study, study, study_destroy);
  TRY(app_run_read_study(parallel, arguments, &study));
  TRY(refuse_shard(arguments, &study));
  app_note_unused(&study);
  if (!arguments->directory) {
    snprintf(arguments->default_directory, sizeof arguments->default_directory, "results/%s", study.name);
    arguments->directory = arguments->default_directory;
  }
  TRY(parallel_agree(parallel,
                     parallel->rank == 0 ? study_ready(&study, (Tick){app_run_goes_on, NULL}) : STATUS_OK));
  TRY(app_run_open_folder(parallel, arguments, &study));
  const double share = parallel->rank == 0 ? app_run_training_share(&study) : 1;
  TRY(parallel_prepare_study(parallel, &study, arguments->directory, arguments->tasks.progress, share,
                             stop_asked));
  return run_and_reduce(parallel, &study, arguments);
}

Status app_run(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = run_parse,
      .args_doc = "STUDY.yaml",
      .doc = "Run a study, alone or under mpiexec or srun.\vResults go to DIR/results.nc; finished tasks are "
             "kept, so a killed job continues with --resume on any number of ranks. If Open MPI's mpiexec "
             "refuses to run as root, set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "(`source jobs/environment.sh` does). SIGTERM, SIGUSR1 and SIGUSR2, --time-limit and the end of "
             "the Slurm job stop the run early and keep what is finished (exit status 75)."};
  Arguments arguments = {
      .tasks = {.max_failures = INT64_MAX, .shards = 1, .stop = stop_asked, .time_left = app_run_time_left}};
  app_parse(&argp, argc, argv, &arguments);
  app_run_catch_signals();
  app_run_set_slurm_deadline();
  Parallel parallel = app_begin_parallel();
  Status status = run_study(&parallel, &arguments);
  io_lock_release(lock);
  return app_end_parallel(status);
}
