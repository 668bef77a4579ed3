#include "app/calibrate.h"

#include "app/scratch.h"
#include "core/clock.h"
#include "parallel/prepare.h"

#include <math.h>
#include <string.h>

static const double BUDGET = 4; /* CPU seconds for all policies together */
static const double TRAINING_OPERATIONS = 4e10; /* a second or two of training */
enum { LEAST_STEPS = 20, AUTO_STEPS = 1500 };

/* A block on the clock: how far it was at half its time, and when it was stopped. */
typedef struct {
  double start, budget; /* CPU seconds */
  double half, half_fraction, last, last_fraction;
} Trial;

static bool calibrate_tick(void *context, double fraction) {
  Trial *trial = context;
  if (fraction == 0) return true;
  trial->last = clock_cpu() - trial->start;
  trial->last_fraction = fraction;
  if (trial->last < trial->budget / 2) trial->half = trial->last, trial->half_fraction = fraction;
  return trial->last < trial->budget;
}

/* Returns the seconds of the whole block. Later rounds may cost more, where a method goes through the
 * history: the time of a fraction f is taken as a f + b f^2, through the two points that were measured. */
static double whole_block(const Trial *trial) {
  double f = trial->last_fraction, g = trial->half_fraction;
  if (f == 0) return clock_cpu() - trial->start;
  double slope = trial->last / f, b = g > 0 && g < f ? (slope - trial->half / g) / (f - g) : 0;
  return slope + fmax(0, b) * (1 - f);
}

static Status try_policy(const Study *study, const char *folder, int policy, double *seconds) {
  Task task = study_task(study, study_task_index(study, 0, policy, 0));
  Trial trial = {.start = clock_cpu(), .budget = BUDGET / study->file->policy_count};
  SCOPED(TaskResult, result, task_result_destroy);
  TRY(task_result_create(study, &task, &result));
  result.has_shared = policy > 0; /* as its cost says: curves that all share are measured with the first */
  Status status = study_run_task(study, &task, folder, (Tick){calibrate_tick, &trial}, &result);
  if (status == STATUS_OK && result.status == RUN_FAILED)
    fprintf(stderr, "thompson: calibration of policy %s failed: %s; its speed is assumed\n",
            study->file->policies[policy].label, result.message);
  else
    *seconds = whole_block(&trial) / study->ops->cost(study, &task);
  return status == STATUS_STOPPED ? STATUS_OK : status;
}

static Status calibrate_measure(const Parallel *parallel, const Study *study, const char *folder,
                                Speed *out) {
  Estimate estimate;
  TRY(speed_assume(study, out));
  TRY(estimate_study(study, out, &estimate));
  double start = clock_cpu();
  TRY(prepare_study(parallel, study, folder, PROGRESS_NONE, 1, NULL));
  if (estimate.training_operations > 0) out->training = (clock_cpu() - start) / estimate.training_operations;
  if (problem_is_large(study->file->settings[0])) return STATUS_OK; /* its policies share what costs most */
  for (int p = 0; p < study->file->policy_count; p++) TRY(try_policy(study, folder, p, &out->policy[p]));
  out->measured = true;
  return STATUS_OK;
}

static Status measure_in_folder(const Parallel *parallel, const Study *study, Speed *out) {
  char folder[SCRATCH_PATH];
  Status status = scratch_create(folder);
  if (status == STATUS_OK) status = calibrate_measure(parallel, study, folder, out);
  scratch_destroy(folder);
  return status;
}

/* Reduces the study to one setting and one replicate: each swept key at its first value. `steps` > 0: of
 * training. */
static Status small_study(const char *path, const char *text, const AppTexts *sets, const StudyFile *whole,
                          int64_t steps, Study *out) {
  AppTexts all = *sets;
  char axes[16][4200], training[64];
  snprintf(training, sizeof training, "prior.training_steps=%lld", (long long)steps);
  const char *const more[] = {"prior.replicates=1", "prior.mixture_starts=1", training};
  int most = sizeof all.texts / sizeof *all.texts, count = steps > 0 ? 3 : 2;
  if (whole->axis_count > 16 || all.count + whole->axis_count + count > most)
    return status_set(STATUS_INPUT, "%s: a calibration takes at most 16 swept keys and %d --set", path,
                      most - 19);
  for (int a = 0; a < whole->axis_count; a++) {
    snprintf(axes[a], sizeof axes[a], "%s=%s", whole->axes[a].key, whole->axes[a].texts[0]);
    all.texts[all.count++] = axes[a];
  }
  for (int i = 0; i < count; i++) all.texts[all.count++] = more[i];
  return app_study_of_file(path, text, &all, out);
}

/* Finds as many training steps as TRAINING_OPERATIONS allow, out of those the study asks for. */
static Status training_steps(const Study *study, int64_t *steps) {
  SCOPED(Speed, speed, speed_destroy);
  Estimate estimate;
  TRY(speed_assume(study, &speed));
  TRY(estimate_study(study, &speed, &estimate));
  const Config *setting = study->file->settings[0];
  int64_t asked = config_is(setting, "prior.training_steps", "auto")
                      ? AUTO_STEPS
                      : config_int(setting, "prior.training_steps");
  double share = TRAINING_OPERATIONS / fmax(estimate.training_operations, TRAINING_OPERATIONS);
  *steps = (int64_t)ceil(share * (double)asked);
  if (*steps < LEAST_STEPS) *steps = asked < LEAST_STEPS ? asked : LEAST_STEPS;
  return STATUS_OK;
}

Status calibrate(const Parallel *parallel, const char *path, const char *text, const AppTexts *sets,
                 Speed *out) {
  SCOPED(Study, whole, study_destroy);
  SCOPED(Study, full, study_destroy);
  SCOPED(Study, small, study_destroy);
  int64_t steps;
  *out = (Speed){0};
  TRY(app_study_of_file(path, text, sets, &whole));
  TRY(small_study(path, text, sets, whole.file, 0, &full));
  TRY(training_steps(&full, &steps));
  TRY(small_study(path, text, sets, whole.file, steps, &small));
  return measure_in_folder(parallel, &small, out);
}
