/* thompson plan: what a study will do and roughly cost; runs nothing but, on request, a short calibration. */
#include "app/app.h"
#include "app/app_plan_estimate.h"
#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/priors/study_priors.h"
#include "study/study_problem.h"

#include <ctype.h>
#include <limits.h>
#include <unistd.h>

static struct {
  const char *study, *directory;
  AppTexts sets;
  bool json, calibrate, slurm, all;
} arguments;

static const AppOption options[] = {
    {"set", 0, "KEY=VALUE", "change a key of the study", .texts = &arguments.sets},
    {"seed", 0, "N", "the study's seed", .seed_of = &arguments.sets},
    {"calibrate", 0, NULL, "measure the speed of each policy for a few seconds, instead of assuming one",
     .flag = &arguments.calibrate},
    {"slurm", 0, NULL, "print a Slurm batch script with nodes, time and memory, after a calibration",
     .flag = &arguments.slurm},
    {"output", 'o', "DIR", "results folder that the batch script names (default: results/NAME)",
     .output = &arguments.directory},
    {"all", 0, NULL, "show every key of the study, not only those that differ from their defaults",
     .flag = &arguments.all},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

static void plan_check(struct argp_state *state) {
  if (arguments.slurm && arguments.json) argp_error(state, "--slurm and --json cannot be combined");
  if (arguments.directory && !arguments.slurm) argp_error(state, "-o is for --slurm: a plan writes nothing");
}

/* ---- calibrate: a short measurement instead of an assumed speed. The priors of the first setting are fitted
 * with a few training steps in a temporary folder, and each policy runs its first block for its share of a
 * few seconds. */

static const double BUDGET = 4; /* CPU seconds for all policies together */
static const double TRAINING_OPERATIONS = 4e10; /* a second or two of training */
enum { LEAST_STEPS = 20, AUTO_STEPS = 1500 };

/* A timed block: how far it was at half its budget, and when it was stopped. */
typedef struct {
  double start, budget; /* CPU seconds */
  double half, half_fraction, last, last_fraction;
} Trial;

static bool plan_calibrate_tick(void *context, double fraction) {
  Trial *trial = context;
  if (fraction == 0) return true;
  trial->last = clock_cpu() - trial->start;
  trial->last_fraction = fraction;
  if (trial->last < trial->budget / 2) trial->half = trial->last, trial->half_fraction = fraction;
  return trial->last < trial->budget;
}

/* Returns the seconds that the whole block would take. Later rounds may cost more, if a method goes through
 * the history, so the time of a fraction f is modelled as a f + b f^2, through two measured points. */
static double plan_extrapolate_block(const Trial *trial) {
  double f = trial->last_fraction, g = trial->half_fraction;
  if (f == 0) return clock_cpu() - trial->start;
  double slope = trial->last / f, b = g > 0 && g < f ? (slope - trial->half / g) / (f - g) : 0;
  return slope + fmax(0, b) * (1 - f);
}

static Status try_policy(const Study *study, const char *folder, int policy, double *seconds) {
  Task task = study_task(study, study_task_index(study, 0, policy, 0));
  Trial trial = {.start = clock_cpu(), .budget = BUDGET / study->file->policy_count};
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(study, &task, &result));
  result.has_shared = policy > 0; /* as in the cost model: shared curves are measured with the first policy */
  Status status = study_run_task(study, &task, folder, (Tick){plan_calibrate_tick, &trial}, &result);
  if (status == STATUS_OK && result.status == RUN_FAILED)
    fprintf(stderr, "thompson: calibration of policy %s failed: %s; its speed is assumed\n",
            study->file->policies[policy].label, result.message);
  else
    *seconds = plan_extrapolate_block(&trial) / study->ops->cost(study, &task);
  return status == STATUS_STOPPED ? STATUS_OK : status;
}

/* Creates the study with the first value of swept keys, one replicate and (unless 0) `steps` of training. */
static Status small_study(const char *text, const StudyFile *whole, int64_t steps, Study *out) {
  AppTexts all = arguments.sets;
  char axes[16][4200], training[64];
  snprintf(training, sizeof training, "prior.training_steps=%lld", (long long)steps);
  const char *const more[] = {"prior.replicates=1", "prior.mixture_starts=1", training};
  int most = sizeof all.texts / sizeof *all.texts, count = steps > 0 ? 3 : 2;
  if (whole->axis_count > 16 || all.count + whole->axis_count + count > most)
    return status_set(STATUS_INPUT, "%s: a calibration allows at most 16 swept keys and %d --set options",
                      arguments.study, most - 19);
  for (int a = 0; a < whole->axis_count; a++) {
    snprintf(axes[a], sizeof axes[a], "%s=%s", whole->axes[a].key, whole->axes[a].texts[0]);
    all.texts[all.count++] = axes[a];
  }
  for (int i = 0; i < count; i++) all.texts[all.count++] = more[i];
  return app_study_of_file(arguments.study, text, &all, out);
}

/* Measures the speed of the study `whole`, whose file has this text. A policy whose block fails keeps the
 * assumed speed, and stderr says so. Collective. */
static Status plan_calibrate(const char *text, const Study *whole, Speed *speed) {
  SCOPED(Study, full, study_destroy);
  SCOPED(Study, small, study_destroy);
  SCOPED(Scratch, scratch, app_scratch_destroy);
  Estimate estimate;
  if (parallel_size() > 1)
    return status_set(STATUS_USAGE,
                      "a calibration runs on one rank: run thompson plan without mpiexec or srun");
  TRY(small_study(text, whole->file, 0, &full));
  TRY(app_plan_estimate_study(&full, speed, &estimate));
  /* As many training steps of the study as fit into TRAINING_OPERATIONS, at least LEAST_STEPS. */
  const Config *setting = full.file->settings[0];
  const int64_t asked = config_is(setting, "prior.training_steps", "auto")
                            ? AUTO_STEPS
                            : config_int(setting, "prior.training_steps");
  const double fit = TRAINING_OPERATIONS / fmax(estimate.training_operations, TRAINING_OPERATIONS);
  int64_t steps = (int64_t)ceil(fit * (double)asked);
  if (steps < LEAST_STEPS) steps = asked < LEAST_STEPS ? asked : LEAST_STEPS;
  TRY(small_study(text, whole->file, steps, &small));
  TRY(app_plan_estimate_study(&small, speed, &estimate));
  TRY(app_scratch_create(&scratch));
  double start = clock_cpu();
  TRY(study_priors_fit(&small, scratch.path, PROGRESS_NONE, 1, NULL));
  if (estimate.training_operations > 0)
    speed->training = (clock_cpu() - start) / estimate.training_operations;
  if (study_problem_is_large(small.file->settings[0]))
    return STATUS_OK; /* its policies share what costs most */
  for (int p = 0; p < small.file->policy_count; p++)
    TRY(try_policy(&small, scratch.path, p, &speed->policy[p]));
  speed->measured = true;
  return STATUS_OK;
}

/* ---- the plan */

static Status plan_print_json(const Study *study, const Speed *speed, const Estimate *estimate) {
  const StudyFile *file = study->file;
  json_t *settings = json_array(), *policies = json_array(), *seconds = json_object();
  for (int s = 0; s < file->setting_count; s++)
    json_array_append_new(settings, json_string(file->setting_labels[s]));
  for (int p = 0; p < file->policy_count; p++) {
    json_array_append_new(policies, json_string(file->policies[p].label));
    json_object_set_new(seconds, file->policies[p].label,
                        json_real(app_plan_estimate_run(study, speed, 0, p)));
  }
  json_t *root = json_pack(
      "{s:s, s:s, s:o, s:o, s:I, s:I, s:i, s:i, s:b, s:f, s:f, s:f, s:o, s:f, s:f, s:f, s:s, s:s}", "name",
      study->name, "study", study->ops->name, "settings", settings, "policies", policies, "runs",
      (json_int_t)study->runs.most, "runs_least",
      (json_int_t)study_runs_in_blocks(&study->runs, study_runs_first_wave(&study->runs)), "tasks",
      study->task_count, "priors", estimate->priors, "calibrated", speed->measured, "core_hours",
      estimate->hours + estimate->training_hours, "core_hours_least",
      estimate->least_hours + estimate->training_hours, "training_core_hours", estimate->training_hours,
      "seconds_per_run", seconds, "memory_bytes_per_rank", estimate->memory, "shared_matrix_bytes",
      estimate->large, "bytes", estimate->bytes, "config_sha256", file->sha256, "config", file->resolved);
  return app_print_json(root, 0);
}

static void print_cost(const Study *study, const Speed *speed, const Estimate *estimate) {
  const StudyFile *file = study->file;
  const Runs *runs = &study->runs;
  printf("# %s%d settings x %d policies x %lld runs = %d tasks, %d priors to fit\n",
         runs->adaptive ? "at most " : "", file->setting_count, file->policy_count, (long long)runs->most,
         study->task_count, estimate->priors);
  if (runs->adaptive) {
    char target[128];
    study_target(study, sizeof target, target);
    printf("# each setting: waves of runs from %lld to %lld until the standard error of %s is at most %g\n",
           (long long)study_runs_in_blocks(runs, study_runs_first_wave(runs)), (long long)runs->most, target,
           runs->target);
  }
  for (int s = 0; s < file->setting_count; s++)
    printf("#   %s%s\n", file->setting_labels[s],
           !study_problem_is_large(file->settings[s]) ? "" /* each draw has its own matrices */
           : study_problem_is_distributed(file->settings[s])
               ? ": matrices shared by all draws and spread over all ranks (ScaLAPACK; LAPACK on a single "
                 "rank), as d is at least linear_algebra.distributed_from"
               : ": matrices shared by all draws, on one rank (LAPACK), as d is below "
                 "linear_algebra.distributed_from");
  if (speed->measured) {
    printf("# seconds per run, measured in setting %s:\n", file->setting_labels[0]);
    for (int p = 0; p < file->policy_count; p++)
      printf("#   %s %.3g\n", file->policies[p].label, app_plan_estimate_run(study, speed, 0, p));
  }
  printf("# about %.2g core-hours, %.2g of them training (%s)\n", estimate->hours + estimate->training_hours,
         estimate->training_hours,
         speed->measured ? "at measured speed" : "at an assumed speed; --calibrate measures it");
  if (runs->adaptive)
    printf("# about %.2g core-hours when the first wave is enough\n",
           estimate->least_hours + estimate->training_hours);
  if (estimate->large > 0)
    printf(
        "# about %.2g GB of memory for the matrices of the largest setting, over all ranks that hold them\n",
        estimate->large / 1e9);
  printf("# about %.0f MB of memory for each rank, %.1f MB of files\n", estimate->memory / 1e6,
         estimate->bytes / 1e6);
}

/* ---- --slurm */

/* At the end of a job ranks are idle for about the time of a task; with ten tasks per rank that is little. */
static const double TASKS_PER_RANK = 10;
static const double SLURM_MARGIN = 1.5; /* factor on time and memory */
static const double SLURM_START = 600; /* seconds to start, read data, and write results */
enum { MOST_REQUEUES = 100 };

static void print_command(const Study *study) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  printf(
      "# If every process of the job believes that it is the only rank, srun needs --mpi=pmix or --mpi=pmi2\n"
      "# (`srun --mpi=list` shows what is available).\n"
      "srun --kill-on-bad-exit=1 ");
  io_shell_print(stdout, length > 0 ? path : "thompson"); /* the path works wherever the script is run */
  printf(" run ");
  io_shell_print(stdout, arguments.study);
  for (int i = 0; i < arguments.sets.count; i++) {
    printf(" --set ");
    io_shell_print(stdout, arguments.sets.texts[i]);
  }
  char folder[512];
  snprintf(folder, sizeof folder, "results/%s", study->name);
  printf(" -o ");
  io_shell_print(stdout, arguments.directory ? arguments.directory : folder);
  printf(" --resume --progress plain || code=$?\n");
}

/* Prints a Slurm batch script for the study. It asks for enough ranks to finish in about an hour, but no more
 * than a tenth of the tasks, on nodes like this machine, and for one and a half times the estimated time and
 * memory. */
static void slurm_print(const Study *study, const Estimate *estimate) {
  double hours = estimate->hours + estimate->training_hours,
         most = fmax(1, floor(study->task_count / TASKS_PER_RANK)), ranks = fmax(1, fmin(ceil(hours), most));
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  double nodes = ceil(ranks / (double)cores), each = ceil(ranks / nodes);
  printf("#!/bin/bash\n"
         "# Study %s: about %.2g core-hours%s (%.2g of them training), the longest task %.2g s, from a "
         "calibration\n"
         "# of a few seconds on this machine; %d tasks. Submit it from the folder where it was printed.\n",
         study->name, hours, study->runs.adaptive ? " at most" : "", estimate->training_hours,
         estimate->longest_task, study->task_count);
  if (most > 1) printf("# More nodes and less time work as well, up to about %.0f ranks.\n", most);
  printf("#SBATCH --job-name=");
  for (const char *c = study->name; *c; c++) /* in characters that Slurm reads as one word */
    putchar(isalnum((unsigned char)*c) || strchr("._-", *c) ? *c : '_');
  printf("\n#SBATCH --nodes=%.0f\n#SBATCH --ntasks-per-node=%.0f\n#SBATCH --cpus-per-task=1\n", nodes, each);
  /* Matrices that are not spread are all on one rank, and Slurm gives every rank the same memory. */
  const double shared = estimate->large_is_spread ? estimate->large / (nodes * each) : estimate->large;
  printf("#SBATCH --mem-per-cpu=%.0fM\n", ceil(SLURM_MARGIN * (estimate->memory + shared) / 1048576));
  const double seconds = hours * 3600 / (nodes * each) + estimate->longest_task;
  const long minutes = (long)ceil((SLURM_START + SLURM_MARGIN * seconds) / 60);
  printf("#SBATCH --time=%02ld:%02ld:00\n", minutes / 60, minutes % 60);
  printf("##SBATCH --partition=NAME  # if the cluster requires one: see `sinfo -s`\n"
         "##SBATCH --account=NAME    # see `sacctmgr show associations user=$USER`\n"
         "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=%%x-%%j.log\nset -uo pipefail\n\n"
         "# thompson stops a little before the end of the job, and the job goes back into the queue.\n"
         "export SLURM_JOB_END_TIME=${SLURM_JOB_END_TIME:-$(date -d \"$(squeue -h -j \"$SLURM_JOB_ID\" -o "
         "%%e)\" +%%s 2>/dev/null || true)}\ncode=0\n");
  print_command(study);
  printf("if [ \"$code\" -eq 75 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt %d ]; then scontrol requeue "
         "\"$SLURM_JOB_ID\"; fi\nexit \"$code\"\n",
         MOST_REQUEUES);
}

/* ---- the verb */

static Status plan_study(void) {
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  SCRATCH_ARENA(memory);
  Speed speed = {0};
  Estimate estimate;
  TRY(config_study_text(arguments.study, &text));
  TRY(app_study_of_file(arguments.study, text, &arguments.sets, &study));
  TRY(app_note_unused(&study));
  if (arguments.calibrate || arguments.slurm) {
    ALLOCATE(&memory, speed.policy, study.file->policy_count);
    app_begin_parallel();
    TRY(app_end_parallel(plan_calibrate(text, &study, &speed)));
  }
  TRY(app_plan_estimate_study(&study, &speed, &estimate));
  if (arguments.json) return plan_print_json(&study, &speed, &estimate);
  if (arguments.slurm) {
    slurm_print(&study, &estimate);
    return STATUS_OK;
  }
  print_cost(&study, &speed, &estimate); /* as comments of what follows */
  if (arguments.all)
    printf("\n# every key:\n%s", study.file->resolved);
  else
    printf("\n# keys that differ from their defaults (--all: every key, `thompson list keys`: what they "
           "mean):\n%s",
           study.file->changed);
  return STATUS_OK;
}

const AppVerb app_plan = {
    .options = options,
    .argument = &arguments.study,
    .what = "study file",
    .check = plan_check,
    .usage = "STUDY.yaml",
    .help = "Show the tasks and the estimated cost of a study, and its keys. Runs nothing, except for a few "
            "seconds with --calibrate or --slurm.",
    .run = plan_study};
