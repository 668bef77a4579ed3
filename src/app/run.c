/* thompson run: prepare priors, run tasks, reduce. Works alone and under mpiexec or srun. */
#include "app/app.h"
#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/priors/study_priors.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/adaptive.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/tasks.h"
#include "study/study_names.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

/* When a job should end before its work is done: at a signal from the scheduler, or at a time limit. */

static const double MARGIN = 15; /* seconds before the scheduler ends the job: to write results and to exit */

static volatile sig_atomic_t signalled;
static double deadline = INFINITY; /* by clock_wall */
static Lock *lock; /* of the folder, on rank 0 */

static void app_run_on_signal(int number) { signalled = number; }

/* Sets a deadline: the work should be over `seconds` from now. The earliest of several deadlines counts. */
static void app_run_set_deadline(double seconds) { deadline = fmin(deadline, clock_wall() + seconds); }

/* Returns the seconds until the deadline; INFINITY without one. */
static double app_run_time_left(void) { return deadline - clock_wall(); }

/* Returns whether the work should end, so that no new task is begun. */
static bool app_run_shutdown_asked(void) { return signalled != 0 || app_run_time_left() <= 0; }

static bool stop_asked(void) { return app_run_shutdown_asked() || io_lock_lost(lock); }

/* ---- the command line */

static struct {
  const char *study, *directory;
  AppTexts sets;
  bool resume, overwrite, dry_run;
  TasksOptions tasks;
} arguments = {
    .tasks = {.max_failures = INT64_MAX, .shards = 1, .stop = stop_asked, .time_left = app_run_time_left}};

/* Takes --max-failures, or --fail-fast, which has no value. */
static void take_max_failures(struct argp_state *state, const char *text) {
  arguments.tasks.max_failures = text ? app_integer(state, "--max-failures", text, 0, 1LL << 53) : 0;
}

static void take_time_limit(struct argp_state *state, const char *text) {
  app_run_set_deadline(app_real(state, "--time-limit", text, 1e-3, 1e9));
}

static void take_shard(struct argp_state *state, const char *text) {
  TasksOptions *tasks = &arguments.tasks;
  char extra;
  /* Nine digits cannot overflow. */
  if (sscanf(text, "%9d/%9d%c", &tasks->shard, &tasks->shards, &extra) != 2 || tasks->shards < 1 ||
      tasks->shard < 0 || tasks->shard >= tasks->shards)
    argp_error(state, "--shard: '%s' is not I/N with 0 <= I < N", text);
}

static void take_progress(struct argp_state *state, const char *text) {
  static const char *const words[] = {"auto", "plain", "none"};
  int mode = 0;
  while (mode < 3 && strcmp(text, words[mode]) != 0) mode++;
  if (mode == 3) argp_error(state, "--progress: unknown value '%s'; allowed: auto, plain, none", text);
  arguments.tasks.progress = (ProgressMode)mode;
}

static const AppOption options[] = {
    {"output", 'o', "DIR", "results folder (default: results/NAME)", .output = &arguments.directory},
    {"set", 0, "KEY=VALUE", "change a key of the study; a list makes a sweep", .texts = &arguments.sets},
    {"seed", 0, "N", "the study's seed", .seed_of = &arguments.sets},
    {"resume", 0, NULL,
     "continue with what the folder holds; if the study was edited, finished tasks that it still has are "
     "used",
     .flag = &arguments.resume},
    {"dry-run", 0, NULL, "only say how many tasks are finished and how many would run",
     .flag = &arguments.dry_run},
    {"overwrite", 0, NULL, "replace what the folder holds", .flag = &arguments.overwrite},
    {"fail-fast", 0, NULL, "the same as --max-failures 0", .take = take_max_failures},
    {"max-failures", 0, "N", "start no task once more than N have failed; running tasks get 7 more seconds",
     .take = take_max_failures},
    {"time-limit", 0, "SECONDS",
     "stop after this time and start nothing that would not finish in it; exit status 75",
     .take = take_time_limit},
    {"task-timeout", 0, "SECONDS",
     "run every task in its own process; a task that takes longer than this, or crashes, has failed",
     .real = &arguments.tasks.task_timeout, .low = 1e-3, .high = 1e9},
    {"shard", 0, "I/N", "run only part I (from 0) of N; `thompson reduce DIR` combines the parts",
     .take = take_shard},
    {"progress", 0, "MODE", "auto, plain or none", .take = take_progress},
    {0}};

static void run_check(struct argp_state *state) {
  if (arguments.resume && arguments.overwrite)
    argp_error(state, "--resume and --overwrite cannot be combined");
  if (arguments.tasks.shards > 1 && arguments.overwrite)
    argp_error(state, "--overwrite would remove what other shards have done; remove the folder first");
}

/* ---- tasks and results */

/* Returns the script that draws a study, in analysis/figures unless it names a folder: the study's own, or
 * that of its kind, which has a panel for each setting and curves in it, if that suits. */
static const char *app_run_figure(const Study *study) {
  enum { MOST_PANELS = 8 };
  const char *given = config_text(study->file->settings[0], "figure");
  const int settings = study->file->setting_count;
  if (given) return given;
  if (study->points > 1 && settings <= MOST_PANELS) return study->ops->figure;
  return settings > 1 ? "ablation.py" : "tools/table.py";
}

/* Writes the results file, prints the table, and says what to run next. *lost: tasks that were finished and
 * can no longer be read. (If an adaptive study was stopped by failures, the reducer may know of more waves
 * from an earlier job, so its missing tasks need not be lost.) Collective. */
static Status app_run_write_results(const Study *study, int64_t left, int *lost) {
  SCOPED(Leaderboard, board, leaderboard_destroy);
  ReduceCounts counts = {0};
  const char *directory = arguments.directory;
  const Status status = reduce_study(study, directory, false, &counts, &board);
  *lost = left == 0 ? counts.missing : counts.damaged;
  if (parallel_rank() == 0 && status == STATUS_OK) {
    app_print_table(study, &board);
    const char *figure = app_run_figure(study);
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
  return parallel_agree(status);
}

static Status app_run_judge_outcome(const TasksOutcome *outcome, int lost) {
  const long long failed = outcome->failed;
  const long long left = outcome->left;
  static const char none_done[] = ", none was done in this job (try more time or a smaller block)";
  if (left > 0 && failed <= arguments.tasks.max_failures)
    return status_set(STATUS_STOPPED, "stopped early: %lld tasks left in %s%s; run again with --resume", left,
                      arguments.directory, outcome->here > 0 ? "" : none_done);
  if (lost > 0)
    return status_set(STATUS_TASKS_FAILED,
                      "%d finished tasks in %s can no longer be read; run again with --resume", lost,
                      arguments.directory);
  if (failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%lld tasks failed%s; run again with --resume to try them again",
                      failed, left > 0 ? ", the rest were not started" : "");
  return STATUS_OK;
}

/* Says, on rank 0, what is finished of the tasks of this job and what is not. */
static Status app_run_announce(Finished *finished, FILE *out) {
  SCRATCH_ARENA(scratch);
  const Study *study = finished->study;
  Adaptive adaptive;
  int tasks = 0, done = 0, left = 0;
  TRY(adaptive_create(&scratch, finished, &adaptive));
  TRY(adaptive_replay(finished->state, &adaptive));
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    if (study_shard(study, i, arguments.tasks.shards) != arguments.tasks.shard) continue;
    if (i % study->runs.blocks >= adaptive.settings[task.setting].wanted) continue;
    tasks++;
    done += finished->state[i] == RUN_OK;
    left += finished->state[i] != RUN_OK &&
            !study_repeats_task(study, i, arguments.tasks.shard, arguments.tasks.shards);
  }
  fprintf(out, "%d of %d tasks are finished, %d%s to run", done, tasks, left,
          study->runs.adaptive ? " or more" : "");
  if (finished->unused > 0)
    fprintf(out, "; %lld finished tasks are not of this study (thompson prune %s)",
            (long long)finished->unused, arguments.directory);
  fputc('\n', out);
  return STATUS_OK;
}

/* Says what a run would find and do in its folder, and changes nothing. */
static Status app_run_dry(const Study *study) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close);
  SCOPED(char *, text, memory_free_text);
  char path[4096];
  snprintf(path, sizeof path, "%s/study.yaml", arguments.directory);
  if (access(path, F_OK) != 0 || arguments.overwrite) {
    int left = 0;
    for (int i = 0; i < study->task_count; i++) left += !study_repeats_task(study, i, 0, 1);
    printf("0 of %d tasks are finished, %d%s to run\n", study->task_count, left,
           study->runs.adaptive ? " at most" : "");
    return STATUS_OK;
  }
  TRY(folder_read_study(arguments.directory, &text));
  if (!folder_is_version(text, study)) return status_prefix(STATUS_RESUME, "%s: ", arguments.directory);
  TRY(finished_open(&scratch, arguments.directory, study, false, &finished));
  return app_run_announce(&finished, stdout);
}

/* Runs all tasks that are not finished. */
static Status app_run_all_tasks(const Study *study, TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close); /* whose files the reducer opens again */
  const TasksOptions *tasks = &arguments.tasks;
  TRY(finished_open_all(&scratch, arguments.directory, study, &finished));
  TRY(finished_check(tasks->shard, tasks->shards, &finished));
  if (arguments.resume && tasks->progress != PROGRESS_NONE)
    TRY(parallel_agree(parallel_rank() == 0 ? app_run_announce(&finished, stderr) : STATUS_OK));
  TRY(tasks_run(&finished, tasks, outcome));
  if (!io_lock_lost(lock)) return parallel_agree(STATUS_OK);
  return parallel_agree(status_set(STATUS_FILE,
                                   "%s: another job took over this folder while this job was "
                                   "frozen, or the folder is gone",
                                   arguments.directory));
}

/* Runs all tasks, then the reducer. */
static Status run_and_reduce(const Study *study) {
  TasksOutcome outcome = {0};
  int lost = 0;
  TRY(app_run_all_tasks(study, &outcome));
  const bool stopped = outcome.left > 0 && outcome.failed <= arguments.tasks.max_failures;
  Status written = STATUS_OK;
  if (arguments.tasks.shards == 1 && !stopped) written = app_run_write_results(study, outcome.left, &lost);
  if (written != STATUS_RESUME) return written != STATUS_OK ? written : app_run_judge_outcome(&outcome, lost);
  /* results.nc holds runs that the tasks lack, and was left as it is. If the tasks did not all succeed
   * either, that message is only printed, and their outcome is the status. */
  char kept[1024];
  snprintf(kept, sizeof kept, "%s", status_message());
  const Status status = app_run_judge_outcome(&outcome, lost);
  if (status == STATUS_OK) return status_set(written, "%s", kept);
  if (parallel_rank() == 0) fprintf(stderr, "%s\n", kept);
  return status;
}

/* Returns whether to keep waiting while the program checks that the user's own code is there. */
static bool app_run_goes_on(void *context, double fraction) {
  (void)context, (void)fraction;
  return !app_run_shutdown_asked();
}

/* Checks that everything outside of this program that the policies need is available. */
static Status app_run_check_policies(const Study *study) {
  for (int p = 0; p < study->file->policy_count; p++) {
    const PolicyMethod method = policy_named(study->file->policies[p].name);
    TRY(policy_ready(&method, study->file->policies[p].options, (Tick){app_run_goes_on, NULL}));
  }
  const Tick before = core_tick_exchange((Tick){app_run_goes_on, NULL});
  const Status status = study_ready(study);
  core_tick_exchange(before);
  return status;
}

/* ---- the verb */

static Status run_study(void) {
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  const bool first = parallel_rank() == 0, sharded = arguments.tasks.shards > 1;
  static char default_directory[512];
  /* Rank 0 reads the file, and all ranks parse the same text. */
  TRY(parallel_agree(first ? config_study_text(arguments.study, &text) : STATUS_OK));
  TRY(parallel_broadcast_text(&text));
  TRY(parallel_agree(app_study_of_file(arguments.study, text, &arguments.sets, &study)));
  /* Which blocks an adaptive study has depends on earlier ones, so no part of them can be run alone. */
  if (sharded && study.runs.adaptive)
    return status_set(
        STATUS_USAGE,
        "--shard: %s has an adaptive number of runs (runs.target_se); allowed: --shard with a fixed "
        "number, such as --set runs=512",
        arguments.study);
  TRY(app_note_unused(&study));
  if (!arguments.directory) {
    snprintf(default_directory, sizeof default_directory, "results/%s", study.name);
    arguments.directory = default_directory;
  }
  if (arguments.dry_run) return parallel_agree(first ? app_run_dry(&study) : STATUS_OK);
  TRY(parallel_agree(first ? app_run_check_policies(&study) : STATUS_OK));
  const FolderMode mode = arguments.resume      ? FOLDER_RESUME
                          : sharded             ? FOLDER_JOIN
                          : arguments.overwrite ? FOLDER_OVERWRITE
                                                : FOLDER_FRESH;
  const int shard = sharded ? arguments.tasks.shard : -1;
  TRY(parallel_agree(first ? folder_open(arguments.directory, &study, mode, shard, &lock) : STATUS_OK));
  TRY(study_priors_fit(&study, arguments.directory, arguments.tasks.progress, stop_asked));
  return run_and_reduce(&study);
}

/* Runs the study. From now on SIGTERM, SIGUSR1 and SIGUSR2 request a shutdown, and writing beyond the limit
 * on file sizes is an error instead of a fatal signal. */
static Status run_begin(void) {
  struct sigaction action = {.sa_handler = app_run_on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  signal(SIGXFSZ, SIG_IGN);
  const char *end = getenv("SLURM_JOB_END_TIME");
  double left = end ? strtod(end, NULL) - (double)time(NULL) : 0;
  if (left > 0) /* if it is in the past, the job was given more time */
    app_run_set_deadline(fmax(left - MARGIN, 0));
  app_begin_parallel();
  const Status status = run_study();
  io_lock_release(lock);
  return app_end_parallel(status);
}

const AppVerb app_run = {
    .options = options,
    .argument = &arguments.study,
    .what = "study file",
    .check = run_check,
    .usage = "STUDY.yaml",
    .help = "Run a study, alone or under mpiexec or srun.\vResults go to DIR/results.nc; finished tasks are "
            "kept, so a killed job continues with --resume on any number of ranks, also after the study was "
            "edited: tasks "
            "that it still has are not run again. If Open MPI's mpiexec "
            "refuses to run as root, set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            "(`source jobs/environment.sh` does). SIGTERM, SIGUSR1 and SIGUSR2, --time-limit and the end of "
            "the Slurm job stop the run early and keep what is finished (exit status 75).",
    .run = run_begin};
