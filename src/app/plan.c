/* thompson plan: what a study will do and what it needs; runs nothing but, on request, a short calibration.
 */
#include "app/app.h"
#include "app/app_plan_estimate.h"
#include "core/numeral.h"
#include "io/io_shell.h"
#include "parallel/grid.h"
#include "study/study_names.h"
#include "study/study_problem.h"

#include <ctype.h>
#include <limits.h>
#include <unistd.h>

static struct {
  const char *study, *directory;
  AppTexts sets;
  bool json, calibrate, slurm, pbs, all;
  int cores_per_node, max_nodes; /* 0: not given */
  double wall_hours;
} arguments;

static const AppOption options[] = {
    {"set", 0, "KEY=VALUE", "change a key of the study", .texts = &arguments.sets},
    {"seed", 0, "N", "the study's seed", .seed_of = &arguments.sets},
    {"calibrate", 0, NULL,
     "measure the time: about a second of each policy in at most three settings, and short fits of priors",
     .flag = &arguments.calibrate},
    {"slurm", 0, NULL, "print a Slurm batch script with nodes, time and memory, after a calibration",
     .flag = &arguments.slurm},
    {"pbs", 0, NULL, "print a PBS batch script likewise", .flag = &arguments.pbs},
    {"cores-per-node", 0, "N", "for --slurm and --pbs: cores of a node (default: as many as here)",
     .count = &arguments.cores_per_node, .high = 1e6},
    {"max-nodes", 0, "N", "for --slurm and --pbs: most nodes of a job", .count = &arguments.max_nodes,
     .high = 1e6},
    {"wall-time", 0, "HOURS",
     "for --slurm and --pbs: time of a job, which continues in the next one; together with --max-nodes "
     "nothing is run",
     .real = &arguments.wall_hours, .low = 0.2, .high = 1e5},
    {"output", 'o', "DIR", "results folder that the batch script names (default: results/NAME)",
     .output = &arguments.directory},
    {"all", 0, NULL, "show every key of the study, not only those that differ from their defaults",
     .flag = &arguments.all},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

/* Returns whether a batch script is printed instead of the plan. */
static bool plan_is_batch(void) { return arguments.slurm || arguments.pbs; }

static void plan_check(struct argp_state *state) {
  if (arguments.slurm + arguments.pbs + arguments.json > 1)
    argp_error(state, "only one of --slurm, --pbs and --json can be given");
  if (arguments.directory && !plan_is_batch())
    argp_error(state, "-o is for --slurm and --pbs: a plan writes nothing");
  if ((arguments.cores_per_node || arguments.max_nodes || arguments.wall_hours > 0) && !plan_is_batch())
    argp_error(state, "--cores-per-node, --max-nodes and --wall-time are for --slurm and --pbs");
}

/* ---- the plan */

/* Prints at most this many of the settings. */
enum { SHOWN_SETTINGS = 10 };

static double plan_all_bytes(const PlanFiles *files) {
  return files->journals + files->results + files->logs;
}

/* At the end of a job ranks are idle for about the time of a task; with ten tasks per rank that is little. */
static const double TASKS_PER_RANK = 10;

/* Returns the ranks beyond which more are of little use: a tenth of the tasks that are run, and no more than
 * would wait for the longest one; or, where learning is known to take longer than they do, a tenth of the
 * parts of the priors, if that is more. */
static double plan_useful_ranks(const Study *study, const Estimate *estimate) {
  int tasks = 0;
  for (int i = 0; i < study->task_count; i++) tasks += !study_repeats_task(study, i, 0, 1);
  double ranks = fmin(tasks / TASKS_PER_RANK, 3600 * estimate->hours / estimate->longest_task);
  if (estimate->training_hours > estimate->hours) ranks = fmax(ranks, estimate->prior_parts / TASKS_PER_RANK);
  return fmax(1, floor(ranks));
}

/* Returns why the study should be one job; NULL if an array of shards does as well. */
static const char *plan_why_one_job(const Study *study, const Estimate *estimate) {
  if (study->runs.adaptive) return "shards need a fixed number of runs";
  if (estimate->priors > 0) return "shards that start together would each learn all priors";
  if (study->task_count < 2 * TASKS_PER_RANK) return "there are few tasks";
  return NULL;
}

/* Says, after `begin`, how many ranks to ask for, and in what form. */
static void plan_print_ranks(const char *begin, const Study *study, const Estimate *estimate) {
  const char *why = plan_why_one_job(study, estimate);
  if (estimate->spread > 0 && grid_is_available()) {
    printf("%sone job, whose ranks share the matrices\n", begin);
    return;
  }
  const double ranks = plan_useful_ranks(study, estimate);
  printf("%sup to about %s %s useful; ", begin, numeral_count((long long)ranks, "rank").text,
         ranks > 1 ? "are" : "is");
  if (why)
    printf("one job, since %s\n", why);
  else
    printf("one job, or an array of shards (--shard I/N) where small jobs start sooner\n");
}

static Status plan_print_json(const Study *study, const PlanTimes *times, const Estimate *estimate) {
  const StudyFile *file = study->file;
  json_t *settings = json_array(), *policies = json_array(), *seconds = json_object();
  for (int s = 0; s < file->setting_count; s++)
    json_array_append_new(settings, json_string(file->setting_labels[s]));
  for (int p = 0; p < file->policy_count; p++) {
    json_array_append_new(policies, json_string(file->policies[p].label));
    json_object_set_new(seconds, file->policies[p].label, app_json_number(times ? times->run[p] : NAN));
  }
  json_t *root = json_pack(
      "{s:s, s:s, s:o, s:o, s:I, s:I, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:{s:f, s:f, "
      "s:f, s:s}, s:f, s:b, s:s, s:s}",
      "name", study->name, "study", study->ops->name, "settings", settings, "policies", policies, "runs",
      (json_int_t)study->runs.most, "runs_least",
      (json_int_t)study_runs_in_blocks(&study->runs, study_runs_first_wave(&study->runs)), "tasks",
      study->task_count, "priors", estimate->priors, "calibrated", times != NULL, "core_hours",
      app_json_number(estimate->hours + estimate->training_hours), "core_hours_least",
      app_json_number(estimate->least_hours + estimate->training_hours), "training_core_hours",
      app_json_number(estimate->training_hours), "seconds_per_run", seconds, "shared_seconds_per_run",
      app_json_number(times ? times->shared[0] : NAN), "memory_bytes_per_rank", estimate->memory,
      "shared_matrix_bytes", estimate->spread, "bytes", plan_all_bytes(&estimate->files), "files", "tasks",
      estimate->files.journals, "results", estimate->files.results, "event_logs", estimate->files.logs,
      "heaviest_key", estimate->files.heaviest, "useful_ranks", plan_useful_ranks(study, estimate),
      "array_does_as_well", plan_why_one_job(study, estimate) == NULL, "config_sha256", file->sha256,
      "config", file->resolved);
  return app_print_json(root, 0);
}

/* Prints the settings, or the first of many, with where their matrices are. */
static void plan_print_settings(const StudyFile *file) {
  for (int s = 0; s < file->setting_count && s < SHOWN_SETTINGS; s++)
    printf("#   %s%s\n", file->setting_labels[s],
           study_problem_is_distributed(file->settings[s])
               ? ": matrices spread over ranks (ScaLAPACK; LAPACK on a single rank), as d is at least "
                 "linear_algebra.distributed_from"
               : "");
  if (file->setting_count > SHOWN_SETTINGS) printf("#   and %d more\n", file->setting_count - SHOWN_SETTINGS);
}

/* Prints the seconds of a run in the settings that were measured. */
static void plan_print_times(const StudyFile *file, const PlanTimes *times) {
  for (int i = 0; i < times->measured_count; i++) {
    const int s = times->measured[i];
    printf("# CPU seconds per run, measured in setting %s:\n", file->setting_labels[s]);
    for (int p = 0; p < file->policy_count; p++) {
      const double seconds = times->run[s * file->policy_count + p];
      if (isnan(seconds))
        printf("#   %s unknown\n", file->policies[p].label);
      else
        printf("#   %s %.3g\n", file->policies[p].label, seconds);
    }
    if (times->shared[s] > 0) printf("#   what all policies share %.3g\n", times->shared[s]);
  }
}

static void plan_print_hours(const Study *study, const PlanTimes *times, const Estimate *estimate) {
  const double hours = estimate->hours + estimate->training_hours;
  if (isnan(hours)) {
    printf("# time: unknown; %s\n", times ? "it cannot be measured in a short run, see above"
                                          : "--calibrate measures it, by short runs of each policy");
    return;
  }
  printf("# about %.2g core-hours, %.2g of them training, on a core like this one\n", hours,
         estimate->training_hours);
  if (study->runs.adaptive)
    printf("# about %.2g core-hours when the first wave is enough\n",
           estimate->least_hours + estimate->training_hours);
}

static void plan_print_files(const PlanFiles *files) {
  printf("# about %.3g MB of files: %.3g of finished tasks, %.3g of results", plan_all_bytes(files) / 1e6,
         files->journals / 1e6, files->results / 1e6);
  if (files->logs > 0) printf(", %.3g of event logs", files->logs / 1e6);
  printf("; %s weighs most, %.0f%%\n", files->heaviest, 100 * files->share);
}

static void plan_print_needs(const Study *study, const PlanTimes *times, const Estimate *estimate) {
  const StudyFile *file = study->file;
  const Runs *runs = &study->runs;
  /* Scripts read this line, so that it has one form for all numbers. */
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
  plan_print_settings(file);
  if (times) plan_print_times(file, times);
  plan_print_hours(study, times, estimate);
  if (estimate->spread > 0) {
    char groups[128];
    const int parts = app_groups(study, sizeof groups, groups);
    printf("# %d parts with spread matrices, run side by side by %s (ranks_per_setting);\n"
           "#   about %.2g GB of memory for the matrices of the largest, over the ranks of its group\n",
           parts, groups, estimate->spread / 1e9);
  }
  printf("# about %.0f MB of memory for each rank\n", estimate->memory / 1e6);
  plan_print_files(&estimate->files);
  plan_print_ranks("# ", study, estimate);
}

/* ---- batch scripts */

static const double BATCH_MARGIN = 1.5; /* factor on time and memory */
static const double BATCH_START = 600; /* seconds to start, read data, and write results */
enum { MOST_REQUEUES = 100 };

/* Prints the command of a job, which begins with `launch` and ends with `limit`. */
static void batch_print_command(const Study *study, const char *launch, const char *limit) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  printf("%s ", launch);
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
  printf(" --resume --progress plain%s || code=$?\n", limit);
}

/* What a batch script requests. */
typedef struct {
  double nodes, each; /* ranks per node */
  double megabytes; /* of memory for each rank */
  long minutes;
} BatchJob;

/* Returns the most ranks that a study can use: the ranks of one node, or of all that are allowed, if its
 * matrices are spread over them; else those that are useful. */
static double batch_most_ranks(const Study *study, const Estimate *estimate, double cores) {
  const double useful = plan_useful_ranks(study, estimate), nodes = arguments.max_nodes;
  if (estimate->spread > 0 && grid_is_available()) return fmax(1, nodes) * cores;
  return nodes > 0 ? fmin(useful, nodes * cores) : useful;
}

/* Returns the bytes of spread matrices on a rank, of so many. Without ScaLAPACK they are all on one rank, and
 * schedulers give every rank the same memory. */
static double batch_spread_bytes(const Study *study, const Estimate *estimate, double ranks) {
  const Config *first = study->file->settings[0];
  if (!grid_is_available()) return estimate->spread;
  if (config_is(first, "ranks_per_setting", "auto")) return estimate->spread / ranks;
  return estimate->spread / fmin(ranks, (double)config_int(first, "ranks_per_setting"));
}

/* Finds a job that ends in the time that was given, or in about an hour; if the time of the study is unknown,
 * it has all the ranks that it may have. Time and memory have a margin. */
static Status batch_size_job(const Study *study, const Estimate *estimate, BatchJob *out) {
  const double hours = estimate->hours + estimate->training_hours, wall = arguments.wall_hours,
               cores = arguments.cores_per_node > 0 ? arguments.cores_per_node
                                                    : (double)sysconf(_SC_NPROCESSORS_ONLN);
  const double work = (3600 * wall - BATCH_START) / BATCH_MARGIN - estimate->longest_task; /* seconds */
  if (isnan(hours) && wall == 0)
    return status_set(STATUS_INPUT,
                      "%s: its time cannot be measured in a short run: give --wall-time, and --max-nodes",
                      arguments.study);
  if (wall > 0 && !(work > 0))
    return status_set(
        STATUS_INPUT, "--wall-time: %g hours; the longest task takes %.3g s, so a job needs %.3g hours", wall,
        estimate->longest_task, (BATCH_START + BATCH_MARGIN * (1 + estimate->longest_task)) / 3600);
  const double asked = isnan(hours) ? fmax(1, arguments.max_nodes) * cores
                                    : fmax(1, ceil(wall > 0 ? 3600 * hours / work : hours));
  const double ranks = fmin(asked, batch_most_ranks(study, estimate, cores));
  out->nodes = ceil(ranks / cores);
  out->each = ceil(ranks / out->nodes);
  const double seconds = hours * 3600 / (out->nodes * out->each) + estimate->longest_task;
  out->minutes = (long)ceil(wall > 0 ? 60 * wall : (BATCH_START + BATCH_MARGIN * seconds) / 60);
  const double shared = batch_spread_bytes(study, estimate, out->nodes * out->each);
  out->megabytes = ceil(BATCH_MARGIN * (estimate->memory + shared) / 1048576);
  return STATUS_OK;
}

static void batch_print_purpose(const Study *study, const Estimate *estimate) {
  const double hours = estimate->hours + estimate->training_hours;
  printf("#!/bin/bash\n# Study %s: %s, ", study->name, numeral_count(study->task_count, "task").text);
  if (isnan(hours))
    printf("whose time was not measured");
  else
    printf("about %.2g core-hours%s (%.2g of them training), the longest task %.2g s,\n# from a calibration "
           "on this machine",
           hours, study->runs.adaptive ? " at most" : "", estimate->training_hours, estimate->longest_task);
  printf(". Submit it from the folder where it was printed.\n");
  plan_print_ranks("# More nodes and less time work as well: ", study, estimate);
}

/* Prints the name of the study, at most `most` letters, in characters that schedulers read as one word. */
static void batch_print_name(const Study *study, int most) {
  for (int i = 0; study->name[i] && i < most; i++) {
    const char c = study->name[i];
    putchar(isalnum((unsigned char)c) || strchr("._-", c) ? c : '_');
  }
  putchar('\n');
}

static void slurm_print_job(const Study *study, const BatchJob *job) {
  printf("#SBATCH --job-name=");
  batch_print_name(study, INT_MAX);
  printf("#SBATCH --nodes=%.0f\n#SBATCH --ntasks-per-node=%.0f\n#SBATCH --cpus-per-task=1\n", job->nodes,
         job->each);
  printf("#SBATCH --mem-per-cpu=%.0fM\n", job->megabytes);
  printf("#SBATCH --time=%02ld:%02ld:00\n", job->minutes / 60, job->minutes % 60);
  printf(
      "##SBATCH --partition=NAME  # if the cluster requires one: see `sinfo -s`\n"
      "##SBATCH --account=NAME    # see `sacctmgr show associations user=$USER`\n"
      "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=%%x-%%j.log\nset -uo pipefail\n\n"
      "# thompson stops a little before the end of the job, and the job goes back into the queue.\n"
      "export SLURM_JOB_END_TIME=${SLURM_JOB_END_TIME:-$(date -d \"$(squeue -h -j \"$SLURM_JOB_ID\" -o "
      "%%e)\" +%%s 2>/dev/null || true)}\ncode=0\n"
      "# If every process of the job believes that it is the only rank, srun needs --mpi=pmix or --mpi=pmi2\n"
      "# (`srun --mpi=list` shows what is available).\n");
  batch_print_command(study, "srun --kill-on-bad-exit=1", "");
  printf("if [ \"$code\" -eq 75 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt %d ]; then scontrol requeue "
         "\"$SLURM_JOB_ID\"; fi\nexit \"$code\"\n",
         MOST_REQUEUES);
}

/* Prints a script for PBS, which does not tell a job when it ends: the command is told, and the script
 * submits itself again. */
static void pbs_print_job(const Study *study, const BatchJob *job) {
  enum { LONGEST_NAME = 15, BEFORE_THE_END = 60 /* seconds */ };
  char limit[64];
  snprintf(limit, sizeof limit, " --time-limit %ld", 60 * job->minutes - BEFORE_THE_END);
  printf("#PBS -N ");
  batch_print_name(study, LONGEST_NAME);
  printf("#PBS -l select=%.0f:ncpus=%.0f:mpiprocs=%.0f:mem=%.0fmb\n", job->nodes, job->each, job->each,
         job->each * job->megabytes);
  printf("#PBS -l walltime=%02ld:%02ld:00\n", job->minutes / 60, job->minutes % 60);
  printf("##PBS -q NAME              # if the cluster requires one: see `qstat -q`\n"
         "#PBS -r y\n#PBS -j oe\nset -uo pipefail\ncd \"$PBS_O_WORKDIR\" || exit 4\ncode=0\n");
  batch_print_command(study, "mpiexec", limit);
  printf("# Stopped early: the same script continues in another job.\n"
         "count=${THOMPSON_JOBS:-0}\n"
         "if [ \"$code\" -eq 75 ] && [ \"$count\" -lt %d ]; then\n"
         "  qsub -W depend=afterany:\"$PBS_JOBID\" -v THOMPSON_JOBS=$((count + 1)) \"$0\" && exit 0\nfi\n"
         "exit \"$code\"\n",
         MOST_REQUEUES);
}

/* Prints a batch script for the study. */
static Status batch_print(const Study *study, const Estimate *estimate) {
  BatchJob job = {0};
  TRY(batch_size_job(study, estimate, &job));
  batch_print_purpose(study, estimate);
  if (arguments.pbs)
    pbs_print_job(study, &job);
  else
    slurm_print_job(study, &job);
  return STATUS_OK;
}

/* ---- the verb */

static Status plan_study(void) {
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  SCRATCH_ARENA(memory);
  PlanTimes measured, *times = NULL;
  Estimate estimate;
  TRY(config_study_text(arguments.study, &text));
  TRY(app_study_of_file(arguments.study, text, &arguments.sets, &study));
  TRY(app_note_unused(&study));
  const bool needs_time = plan_is_batch() && !(arguments.max_nodes > 0 && arguments.wall_hours > 0);
  if (arguments.calibrate || needs_time) {
    const PlanSource source = {
        .path = arguments.study, .text = text, .sets = &arguments.sets, .study = &study};
    app_begin_parallel();
    TRY(app_end_parallel(app_plan_calibrate(&memory, &source, &measured)));
    times = &measured;
  }
  TRY(app_plan_estimate_study(&study, times, &estimate));
  if (arguments.json) return plan_print_json(&study, times, &estimate);
  if (plan_is_batch()) return batch_print(&study, &estimate);
  plan_print_needs(&study, times, &estimate); /* as comments of what follows */
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
    .help =
        "Show the tasks of a study, the memory and files that it needs, and its keys. Runs nothing, except "
        "for the measurement of time by --calibrate, --slurm and --pbs.",
    .run = plan_study};
