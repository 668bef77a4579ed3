/* thompson run: prepare priors, run tasks, reduce. Works alone and under mpiexec or srun. */
#include "app/app.h"
#include "core/clock.h"
#include "io/store.h"
#include "parallel/checkpoint.h"
#include "parallel/prepare.h"
#include "parallel/reduce.h"
#include "parallel/tasks.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  KEY_SHARD,
  KEY_PROGRESS
};

static const struct argp_option options[] = {
    {"output", 'o', "DIR", 0, "results folder (default: results/NAME)", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "change a key of the study; a list makes a sweep", 0},
    {"seed", KEY_SEED, "N", 0, "the study's seed", 0},
    {"resume", KEY_RESUME, NULL, 0, "go on with what the folder holds", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "replace what the folder holds", 0},
    {"fail-fast", KEY_FAIL_FAST, NULL, 0, "stop at the first task that fails", 0},
    {"max-failures", KEY_MAX_FAILURES, "N", 0, "stop when more than N tasks have failed", 0},
    {"time-limit", KEY_TIME_LIMIT, "SECONDS", 0, "begin no new work after this time; exit 75", 0},
    {"shard", KEY_SHARD, "I/N", 0, "run part I (from 0) of N only; `thompson reduce DIR` ends them", 0},
    {"progress", KEY_PROGRESS, "MODE", 0, "auto, plain or none", 0},
    {0}};

static void parse_shard(struct argp_state *state, const char *text, TasksOptions *tasks) {
  char extra;
  if (sscanf(text, "%d/%d%c", &tasks->shard, &tasks->shards, &extra) != 2 || tasks->shards < 1 ||
      tasks->shard < 0 || tasks->shard >= tasks->shards)
    argp_error(state, "--shard: '%s' is not I/N with 0 <= I < N", text);
}

static ProgressMode parse_progress(struct argp_state *state, const char *text) {
  static const char *const words[] = {"auto", "plain", "none"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, words[i]) == 0) return (ProgressMode)i;
  argp_error(state, "--progress: '%s' is none of auto, plain, none", text);
  return PROGRESS_AUTO;
}

static volatile sig_atomic_t signalled;
static double deadline = INFINITY; /* by clock_wall */

static void on_signal(int number) { signalled = number; }
static bool stop_asked(void) { return signalled != 0 || clock_wall() > deadline; }

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'o': arguments->directory = text; return 0;
  case KEY_SET: app_texts_add(state, &arguments->sets, text); return 0;
  case KEY_SEED: app_take_seed(state, &arguments->sets, arguments->seed, text); return 0;
  case KEY_RESUME: arguments->resume = true; return 0;
  case KEY_OVERWRITE: arguments->overwrite = true; return 0;
  case KEY_FAIL_FAST: arguments->tasks.max_failures = 0; return 0;
  case KEY_MAX_FAILURES:
    arguments->tasks.max_failures = app_integer(state, "--max-failures", text, 0, 1LL << 53);
    return 0;
  case KEY_TIME_LIMIT: deadline = clock_wall() + app_real(state, "--time-limit", text, 1e-3, 1e9); return 0;
  case KEY_SHARD: parse_shard(state, text, &arguments->tasks); return 0;
  case KEY_PROGRESS: arguments->tasks.progress = parse_progress(state, text); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END:
    app_need(state, arguments->study, "study file");
    if (arguments->resume && arguments->overwrite)
      argp_error(state, "--resume and --overwrite exclude each other");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
}

/* Rank 0 reads the file; all ranks parse the same text. */
static Status read_study(const Parallel *parallel, const Arguments *arguments, Study *study) {
  char *text = NULL;
  size_t size;
  Status status = parallel->rank == 0 ? store_read_text(arguments->study, &text, &size) : STATUS_OK;
  TRY(parallel_agree(parallel, status));
  TRY(parallel_broadcast_text(parallel, &text));
  status = app_study_of_file(arguments->study, text, &arguments->sets, study);
  free(text);
  return parallel_agree(parallel, status);
}

static Status open_folder(const Parallel *parallel, const Arguments *arguments, const Study *study,
                          int *lock) {
  const TasksOptions *tasks = &arguments->tasks;
  CheckpointMode mode = arguments->resume      ? CHECKPOINT_RESUME
                        : arguments->overwrite ? CHECKPOINT_OVERWRITE
                        : tasks->shards > 1    ? CHECKPOINT_SHARD
                                               : CHECKPOINT_FRESH;
  int shard = tasks->shards > 1 ? tasks->shard : -1;
  Status status =
      parallel->rank == 0 ? checkpoint_open(arguments->directory, study, mode, shard, lock) : STATUS_OK;
  return parallel_agree(parallel, status);
}

/* Results file, table, and where to look next; on rank 0. */
static Status finish(const Study *study, const char *directory) {
  ReduceCounts counts;
  TRY(reduce_study(study, directory, &counts));
  TRY(app_print_table(study, directory));
  const char *figure = config_text(study->file->settings[0], "figure");
  printf("\nresults: %s/results.nc\nfigure:  analysis/%s %s\nreport:  analysis/report.py %s\n", directory,
         figure ? figure : study->ops->figure, directory, directory);
  return STATUS_OK;
}

static Status judge(const TasksOutcome *outcome, int64_t max_failures, const char *directory) {
  long long failed = outcome->failed, left = outcome->left;
  bool too_many = max_failures >= 0 && failed > max_failures;
  if (left > 0 && !too_many)
    return status_set(STATUS_STOPPED, "stopped early: %lld tasks left in %s; run again with --resume", left,
                      directory);
  if (failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%lld tasks failed%s; run again with --resume to try them again",
                      failed, left > 0 ? ", the rest was not begun" : "");
  return STATUS_OK;
}

static Status run_study(const Parallel *parallel, Arguments *arguments, Study *study) {
  TRY(read_study(parallel, arguments, study));
  if (!arguments->directory) {
    snprintf(arguments->default_directory, sizeof arguments->default_directory, "results/%s", study->name);
    arguments->directory = arguments->default_directory;
  }
  int lock = -1;
  TasksOutcome outcome;
  Status status = open_folder(parallel, arguments, study, &lock);
  if (status == STATUS_OK)
    status = prepare_study(parallel, study, arguments->directory, arguments->tasks.progress, stop_asked);
  if (status == STATUS_OK)
    status = tasks_run(parallel, study, arguments->directory, &arguments->tasks, &outcome);
  if (status == STATUS_OK) {
    Status verdict = judge(&outcome, arguments->tasks.max_failures, arguments->directory);
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", status_message());
    bool whole = arguments->tasks.shards == 1 && verdict != STATUS_STOPPED;
    status = parallel_agree(parallel,
                            parallel->rank == 0 && whole ? finish(study, arguments->directory) : STATUS_OK);
    if (status == STATUS_OK && verdict != STATUS_OK) status = status_set(verdict, "%s", sentence);
  }
  if (lock >= 0) close(lock);
  return status;
}

Status app_run(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "STUDY.yaml",
      "Run a study, alone or under mpiexec or srun.\v"
      "Results go to DIR/results.nc; finished tasks are kept, so a job that was killed goes on with --resume "
      "on any number of ranks. "
      "SIGTERM, SIGUSR1 and SIGUSR2 end the run early and keep what is finished (exit status 75).",
      NULL,
      NULL,
      NULL};
  Arguments arguments = {.tasks = {.max_failures = -1, .shards = 1, .stop = stop_asked}};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel(&argc, &argv);
  catch_signals();
  Study study = {0};
  Status status = run_study(&parallel, &arguments, &study);
  study_destroy(&study);
  parallel_end();
  return status;
}
