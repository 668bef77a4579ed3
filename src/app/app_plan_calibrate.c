#include "app/app_plan_calibrate.h"
#include "study/study_problem.h"

#include "core/clock.h"
#include "parallel/priors/study_priors.h"
#include "parallel/progress.h"
#include "study/study_candidates.h"

#include <string.h>

static const double TRIAL_SECONDS = 1; /* of a policy in a setting, beyond its preparations */
enum { MOST_SETTINGS = 3 }; /* that are measured: the smallest, the largest, and one between them */

/* Priors are fitted with few steps of training, and to no more samples or past tasks than by default. The
 * time of a step is the difference between two fits to few samples. */
typedef struct {
  int samples, tasks, steps;
} FitSize;
enum { FITS = 3, FIT_USED = 0, FIT_SHORT = 1, FIT_LONG = 2 };
static const FitSize fit_sizes[FITS] = {{10000, 1000, 100}, {1000, 1000, 10}, {1000, 1000, 100}};

/* ---- trials */

/* Returns the report as seen from the first one. */
static PlanReport plan_since_first(const PlanTrial *trial, PlanReport report) {
  return (PlanReport){.seconds = report.seconds - trial->first.seconds,
                      .fraction = report.fraction - trial->first.fraction};
}

void app_plan_trial_add(PlanTrial *trial, PlanReport report) {
  if (trial->last.fraction == 0)
    *trial = (PlanTrial){.first = report, .middle = report, .next = report, .last = report};
  const double now = plan_since_first(trial, report).fraction;
  if (now >= 2 * plan_since_first(trial, trial->next).fraction) {
    trial->middle = trial->next;
    trial->next = report;
  }
  trial->last = report;
}

double app_plan_trial_whole(const PlanTrial *trial) {
  const PlanReport first = trial->first, last = plan_since_first(trial, trial->last),
                   middle = plan_since_first(trial, trial->middle);
  if (last.fraction == 0) return first.seconds / first.fraction;
  double power = 1;
  if (middle.fraction > 0 && middle.seconds > 0)
    power = log(last.seconds / middle.seconds) / log(last.fraction / middle.fraction);
  power = fmin(2, fmax(1, power));
  return first.seconds + last.seconds * pow((1 - first.fraction) / last.fraction, power);
}

/* What is done of the fits and trials of a calibration. */
typedef struct {
  Progress shown;
  int done, total;
} PlanWork;

static void plan_work_show(PlanWork *work, int more) {
  work->done += more;
  progress_update(&work->shown, work->done, work->total, (double)work->done / work->total);
}

/* A block that is being run. */
typedef struct {
  double (*clock)(void);
  double start;
  PlanTrial trial;
  PlanWork *work;
} PlanBlock;

static bool plan_block_tick(void *context, double fraction) {
  PlanBlock *block = context;
  const PlanReport report = {.seconds = block->clock() - block->start, .fraction = fraction};
  if (fraction > block->trial.last.fraction) app_plan_trial_add(&block->trial, report);
  plan_work_show(block->work, 0);
  return block->trial.last.fraction == 0 || report.seconds - block->trial.first.seconds < TRIAL_SECONDS;
}

/* Returns the CPU seconds of a run in the policy's first block, NAN if it fails; shared curves are measured
 * or left out. What waits for another process is timed by the wall clock. */
static Status plan_try_policy(const Study *study, const char *folder, int policy, bool shared, PlanWork *work,
                              double *out) {
  const Task task = study_task(study, study_task_index(study, 0, policy, 0));
  const PolicyMethod method = policy_named(study->file->policies[policy].name);
  PlanBlock block = {.clock = method.ops && method.ops->ready ? clock_wall : clock_cpu, .work = work};
  SCOPED(TaskResult, result, study_result_destroy);
  SCOPED(TaskPriors, priors, study_task_priors_free);
  priors.directory = folder;
  TRY(study_result_create(study, &task, &result));
  result.has_shared = !shared;
  block.start = block.clock();
  const Status status = study_run_task(study, &task, &priors, (Tick){plan_block_tick, &block}, &result);
  const double seconds =
      status == STATUS_STOPPED ? app_plan_trial_whole(&block.trial) : block.clock() - block.start;
  *out = seconds / task.runs;
  plan_work_show(work, 1);
  if (status == STATUS_OK && result.status == RUN_FAILED) {
    fprintf(stderr, "thompson: calibration of policy %s failed: %s; its time is unknown\n",
            study->file->policies[policy].label, result.message);
    *out = NAN;
  }
  return status == STATUS_STOPPED ? STATUS_OK : status;
}

/* Measures run[policies] and what they share. */
static Status plan_try_policies(const Study *study, const char *folder, PlanWork *work, double *run,
                                double *shared) {
  double both;
  *shared = 0;
  for (int p = 0; p < study->file->policy_count; p++)
    TRY(plan_try_policy(study, folder, p, false, work, &run[p]));
  if (!study_has_shared(study)) return STATUS_OK;
  TRY(plan_try_policy(study, folder, 0, true, work, &both));
  if (both > run[0]) *shared = both - run[0];
  return STATUS_OK;
}

/* ---- a study of one setting */

/* Adds prior.KEY with its value, but at most this. A word, such as `all`, asks for as much as there is. */
static Status plan_limit(Arena *memory, const Config *setting, const char *key, int most, AppTexts *sets) {
  const bool less = !config_text(setting, key) && config_int(setting, key) < most;
  return arena_print(memory, &sets->texts[sets->count++], "%s=%lld", key,
                     less ? (long long)config_int(setting, key) : most);
}

/* Creates the study that has only setting s of the source, with a single replicate of priors whose fits are
 * not larger than `size`. */
static Status plan_small_study(Arena *memory, const PlanSource *source, int s, FitSize size, Study *out) {
  enum { MORE = 5 };
  const StudyFile *whole = source->study->file;
  const Config *setting = whole->settings[s];
  AppTexts sets = *source->sets;
  const int most = sizeof sets.texts / sizeof *sets.texts - MORE;
  if (sets.count + whole->axis_count > most)
    return status_set(STATUS_INPUT, "%s: a calibration allows at most %d swept keys and --set options",
                      source->path, most);
  for (int a = 0; a < whole->axis_count; a++)
    TRY(arena_print(memory, &sets.texts[sets.count++], "%s=%s", whole->axes[a].key, whole->axes[a].texts[s]));
  sets.texts[sets.count++] = "design=none";
  sets.texts[sets.count++] = "prior.replicates=1";
  TRY(plan_limit(memory, setting, "prior.train_samples", size.samples, &sets));
  TRY(plan_limit(memory, setting, "prior.past_tasks", size.tasks, &sets));
  TRY(plan_limit(memory, setting, "prior.training_steps", size.steps, &sets));
  return app_study_of_file(source->path, source->text, &sets, out);
}

/* The fit of a policy's prior: samples or past tasks, steps of training, and CPU seconds. */
typedef struct {
  double items, steps, seconds;
} PlanFit;

/* Finds out[policies] of setting s; their seconds only if the fitted priors are in a folder. Policies whose
 * prior is not fitted have zeros. */
static Status plan_list_fits(const Study *study, int s, const char *folder, PlanFit *out) {
  const StudyFile *file = study->file;
  SCOPED(Problem, problem, problem_destroy);
  TRY(study_problem_create(file->settings[s], &problem));
  for (int p = 0; p < file->policy_count; p++) {
    SCRATCH_ARENA(scratch);
    char path[4096];
    Belief belief;
    Prior prior = {0};
    TRY(study_belief_create(file->settings[s], &file->policies[p], &problem, 0, &belief));
    out[p] = (PlanFit){0};
    if (belief.kind != BELIEF_FITTED) continue;
    study_belief_path(&belief, folder ? folder : "", sizeof path, path);
    if (folder) TRY(prior_load_own(&scratch, path, &belief.fit, &prior));
    out[p] = (PlanFit){.items = study_belief_items(&belief, &problem),
                       .steps = study_candidates_steps(belief.family, &belief.fit, problem.d),
                       .seconds = prior.seconds_fit};
  }
  return STATUS_OK;
}

/* Returns the seconds of the whole fit: steps are alike, and the rest grows with what it is fitted to. */
static double plan_fit_seconds(const PlanFit *whole, const PlanFit small[FITS]) {
  const PlanFit used = small[FIT_USED], few = small[FIT_SHORT], many = small[FIT_LONG];
  double step = 0;
  if (many.steps > few.steps) step = fmax(0, (many.seconds - few.seconds) / (many.steps - few.steps));
  if (used.items == 0) return 0;
  return fmax(0, used.seconds - used.steps * step) * whole->items / used.items + whole->steps * step;
}

/* Returns how many fits and trials the measurement of a setting has. */
static int plan_work_of_setting(const Study *study) {
  return FITS + study->file->policy_count + study_has_shared(study);
}

/* Measures setting s. */
static Status plan_measure_setting(const PlanSource *source, int s, PlanWork *work, PlanTimes *out) {
  SCRATCH_ARENA(memory);
  SCOPED(Scratch, folder, app_scratch_destroy);
  const int policies = source->study->file->policy_count, cells = s * policies;
  PlanFit *whole, *small[FITS];
  ALLOCATE(&memory, whole, policies);
  TRY(plan_list_fits(source->study, s, NULL, whole));
  TRY(app_scratch_create(&folder));
  for (int f = 0; f < FITS; f++) {
    SCOPED(Study, study, study_destroy);
    ALLOCATE(&memory, small[f], policies);
    TRY(plan_small_study(&memory, source, s, fit_sizes[f], &study));
    TRY(study_priors_fit(&study, folder.path, PROGRESS_NONE, NULL));
    plan_work_show(work, 1);
    TRY(plan_list_fits(&study, 0, folder.path, small[f]));
    if (f == FIT_USED) TRY(plan_try_policies(&study, folder.path, work, out->run + cells, &out->shared[s]));
  }
  for (int p = 0; p < policies; p++) {
    const PlanFit fits[FITS] = {small[FIT_USED][p], small[FIT_SHORT][p], small[FIT_LONG][p]};
    out->fit[cells + p] = plan_fit_seconds(&whole[p], fits);
  }
  return STATUS_OK;
}

/* ---- all settings */

static double plan_setting_size(const Study *study, int s) {
  double sum = 0;
  for (int p = 0; p < study->file->policy_count; p++) {
    const Task task = study_task(study, study_task_index(study, s, p, 0));
    sum += study_task_size(study, &task);
  }
  return sum;
}

static int plan_smallest_first(const void *a, const void *b, void *context) {
  const int first = *(const int *)a, second = *(const int *)b;
  const double one = plan_setting_size(context, first), other = plan_setting_size(context, second);
  if (one != other) return one < other ? -1 : 1;
  return first - second;
}

/* Gives setting `to` the times of setting `from`. */
static void plan_copy_times(const Study *study, int from, int to, PlanTimes *times) {
  const int policies = study->file->policy_count;
  const size_t bytes = (size_t)policies * sizeof(double);
  memmove(times->run + to * policies, times->run + from * policies, bytes);
  memmove(times->fit + to * policies, times->fit + from * policies, bytes);
  times->shared[to] = times->shared[from];
}

Status app_plan_calibrate(Arena *memory, const PlanSource *source, PlanTimes *out) {
  SCRATCH_ARENA(scratch);
  const StudyFile *file = source->study->file;
  const int settings = file->setting_count, cells = settings * file->policy_count;
  int *order, count = 0; /* settings that can be measured, smallest first */
  if (parallel_size() > 1)
    return status_set(STATUS_USAGE,
                      "a calibration runs on one rank: run thompson plan without mpiexec or srun");
  ALLOCATE_ARRAYS(memory, cells, &out->run, &out->fit);
  ALLOCATE(memory, out->shared, settings);
  ALLOCATE(memory, out->measured, settings);
  ALLOCATE(&scratch, order, settings);
  for (int i = 0; i < cells; i++) out->run[i] = NAN;
  for (int s = 0; s < settings; s++)
    if (!study_problem_is_distributed(file->settings[s])) order[count++] = s;
  qsort_r(order, (size_t)count, sizeof *order, plan_smallest_first, (void *)(uintptr_t)source->study);
  out->measured_count = count < MOST_SETTINGS ? count : MOST_SETTINGS;
  PlanWork work = {.shown = progress_begin(PROGRESS_AUTO, "measuring fits and policies"),
                   .total = out->measured_count * plan_work_of_setting(source->study)};
  const double step = out->measured_count > 1 ? (count - 1.0) / (out->measured_count - 1) : 1;
  for (int i = 0; i < out->measured_count; i++) {
    out->measured[i] = order[(int)round(i * step)];
    TRY(plan_measure_setting(source, out->measured[i], &work, out));
  }
  progress_end(&work.shown, work.done, work.total);
  for (int k = 0; k < count; k++)
    plan_copy_times(source->study, out->measured[(int)round(k / step)], order[k], out);
  return STATUS_OK;
}
