/* thompson plan: what a study will do and roughly cost; runs nothing, but for a calibration of a few seconds
 * that is asked for. */
#include "app/calibrate.h"
#include "app/slurm.h"

#include <jansson.h>
#include <stdio.h>

typedef struct {
  const char *study, *directory;
  AppTexts sets;
  char seed[40];
  bool json, calibrate, slurm, all;
} Arguments;

enum { KEY_SET = 256, KEY_SEED, KEY_CALIBRATE, KEY_SLURM, KEY_ALL };

static const struct argp_option options[] = {
    {"set", KEY_SET, "KEY=VALUE", 0, "change a key of the study", 0},
    {"seed", KEY_SEED, "N", 0, "the study's seed", 0},
    {"calibrate", KEY_CALIBRATE, NULL, 0,
     "measure the speed of each policy for a few seconds, instead of assuming one", 0},
    {"slurm", KEY_SLURM, NULL, 0,
     "print a Slurm batch script with nodes, time and memory, after a calibration", 0},
    {"output", 'o', "DIR", 0, "results folder that the batch script names (default: results/NAME)", 0},
    {"all", KEY_ALL, NULL, 0, "show every key of the study, not only those that differ from their defaults",
     0},
    {"json", 'j', NULL, 0, "as JSON", 0},
    {0}};

static error_t plan_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_SET: app_texts_add(state, &arguments->sets, text); return 0;
  case KEY_SEED: app_take_seed(state, &arguments->sets, arguments->seed, text); return 0;
  case KEY_CALIBRATE: arguments->calibrate = true; return 0;
  case KEY_SLURM: arguments->slurm = true; return 0;
  case KEY_ALL: arguments->all = true; return 0;
  case 'o': app_take_output(state, &arguments->directory, text); return 0;
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END:
    app_need(state, arguments->study, "study file");
    if (arguments->slurm && arguments->json) argp_error(state, "--slurm and --json exclude each other");
    if (arguments->directory && !arguments->slurm)
      argp_error(state, "-o goes with --slurm: a plan writes nothing");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Returns how the matrices of a setting are kept; empty: each draw has its own. */
static const char *algebra_of(const Config *setting) {
  if (!problem_is_large(setting)) return "";
  return problem_is_distributed(setting)
             ? ": matrices shared by all draws and spread over all ranks (ScaLAPACK; LAPACK where there is "
               "one rank), as d is at least linear_algebra.distributed_from"
             : ": matrices shared by all draws, on one rank (LAPACK), as d is below "
               "linear_algebra.distributed_from";
}

static Status plan_print_json(const Study *study, const Speed *speed, const Estimate *estimate) {
  const StudyFile *file = study->file;
  json_t *settings = json_array(), *policies = json_array(), *seconds = json_object();
  for (int s = 0; s < file->setting_count; s++)
    json_array_append_new(settings, json_string(file->setting_labels[s]));
  for (int p = 0; p < file->policy_count; p++) {
    json_array_append_new(policies, json_string(file->policies[p].label));
    json_object_set_new(seconds, file->policies[p].label, json_real(estimate_run(study, speed, 0, p)));
  }
  json_t *root = json_pack(
      "{s:s, s:s, s:o, s:o, s:I, s:I, s:i, s:i, s:b, s:f, s:f, s:f, s:o, s:f, s:f, s:f, s:s, s:s}", "name",
      study->name, "study", study->ops->name, "settings", settings, "policies", policies, "runs",
      (json_int_t)study->runs.most, "runs_least",
      (json_int_t)runs_in_blocks(&study->runs, runs_first_wave(&study->runs)), "tasks", study->task_count,
      "priors", estimate->priors, "calibrated", speed->measured, "core_hours",
      estimate->hours + estimate->training_hours, "core_hours_least",
      estimate->least_hours + estimate->training_hours, "training_core_hours", estimate->training_hours,
      "seconds_per_run", seconds, "memory_bytes_per_rank", estimate->memory, "shared_matrix_bytes",
      estimate->large, "bytes", estimate->bytes, "config_sha256", file->sha256, "config", file->resolved);
  if (!root) return status_set(STATUS_INTERNAL, "out of memory");
  app_print_json(root, 0);
  return STATUS_OK;
}

static void print_runs(const Study *study) {
  const Runs *runs = &study->runs;
  char target[128];
  if (!runs->adaptive) return;
  study_target(study, sizeof target, target);
  printf("# each setting: waves of runs from %lld to %lld until the standard error of %s is at most %g\n",
         (long long)runs_in_blocks(runs, runs_first_wave(runs)), (long long)runs->most, target, runs->target);
}

static void print_cost(const Study *study, const Speed *speed, const Estimate *estimate) {
  const StudyFile *file = study->file;
  const char *most = study->runs.adaptive ? "at most " : "";
  printf("# %s%d settings x %d policies x %lld runs = %d tasks, %d priors to fit\n", most,
         file->setting_count, file->policy_count, (long long)study->runs.most, study->task_count,
         estimate->priors);
  print_runs(study);
  for (int s = 0; s < file->setting_count; s++)
    printf("#   %s%s\n", file->setting_labels[s], algebra_of(file->settings[s]));
  if (speed->measured) printf("# seconds of a run, measured in setting %s:\n", file->setting_labels[0]);
  for (int p = 0; p < file->policy_count && speed->measured; p++)
    printf("#   %s %.3g\n", file->policies[p].label, estimate_run(study, speed, 0, p));
  printf("# about %.2g core-hours, %.2g of them training (%s)\n", estimate->hours + estimate->training_hours,
         estimate->training_hours,
         speed->measured ? "at measured speed" : "at an assumed speed; --calibrate measures it");
  if (study->runs.adaptive)
    printf("# about %.2g core-hours when the first wave is enough\n",
           estimate->least_hours + estimate->training_hours);
  if (estimate->large > 0)
    printf(
        "# about %.2g GB of memory for the matrices of the largest setting, over all ranks that have them\n",
        estimate->large / 1e9);
  printf("# about %.0f MB of memory for each rank, %.1f MB of files\n", estimate->memory / 1e6,
         estimate->bytes / 1e6);
}

/* Prints the cost, as comments, and the study. */
static void plan_print_text(const Study *study, const Speed *speed, const Estimate *estimate, bool all) {
  print_cost(study, speed, estimate);
  printf(all ? "\n# every key:\n%s"
             : "\n# keys that differ from their defaults (--all: every key, `thompson list keys`: what they "
               "mean):\n%s",
         all ? study->file->resolved : study->file->changed);
}

static Status print_plan(const Arguments *arguments, const Study *study, const Speed *speed) {
  Estimate estimate;
  TRY(estimate_study(study, speed, &estimate));
  if (arguments->json) return plan_print_json(study, speed, &estimate);
  if (arguments->slurm)
    slurm_print(study, &estimate, arguments->study, arguments->directory, &arguments->sets);
  else
    plan_print_text(study, speed, &estimate, arguments->all);
  return STATUS_OK;
}

static Status plan_measure(const Arguments *arguments, const char *text, int argc, char **argv,
                           Speed *speed) {
  Parallel parallel = app_begin_parallel(&argc, &argv);
  Status status =
      parallel.size == 1
          ? calibrate(&parallel, arguments->study, text, &arguments->sets, speed)
          : status_set(STATUS_USAGE, "a calibration runs on one rank: thompson plan without mpiexec or srun");
  return app_end_parallel(status);
}

static Status plan(const Arguments *arguments, const char *text, int argc, char **argv) {
  SCOPED(Study, study, study_destroy);
  SCOPED(Speed, speed, speed_destroy);
  TRY(app_study_of_file(arguments->study, text, &arguments->sets, &study));
  app_note_unused(&study);
  TRY(arguments->calibrate || arguments->slurm ? plan_measure(arguments, text, argc, argv, &speed)
                                               : speed_assume(&study, &speed));
  return print_plan(arguments, &study, &speed);
}

Status app_plan(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = plan_parse,
      .args_doc = "STUDY.yaml",
      .doc = "Show the tasks and the estimated cost of a study, and its keys. Runs nothing, but "
             "for the seconds of --calibrate and --slurm."};
  Arguments arguments = {0};
  SCOPED(char *, text, memory_free_text);
  app_parse(&argp, argc, argv, &arguments);
  TRY(config_study_text(arguments.study, &text));
  return plan(&arguments, text, argc, argv);
}
