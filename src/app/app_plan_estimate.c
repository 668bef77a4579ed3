#include "app/app_plan_estimate.h"

#include "parallel/tasks/journal.h"
#include "study/study_names.h"
#include "study/study_problem.h"

/* Distinct fits, by their hashes. */
typedef struct {
  int count, parts;
  char (*hash)[65];
  double seconds; /* that all of them take in a replicate */
} Fits;

/* Counts a fit, unless it is in `fits` already; returns whether it is new. */
static bool app_plan_count_fit(const Belief *belief, Fits *fits) {
  for (int i = 0; i < fits->count; i++)
    if (strcmp(fits->hash[i], belief->hash) == 0) return false;
  memcpy(fits->hash[fits->count++], belief->hash, sizeof *fits->hash);
  fits->parts += prior_parts(belief->family, &belief->fit);
  return true;
}

/* Counts the distinct fits of a setting and those that they need first, and adds up their time; finds the
 * memory of Gaussians on the weights of a network. */
static Status app_plan_count_priors(const Study *study, const PlanTimes *times, int s, const Problem *problem,
                                    Fits *fits, Estimate *estimate) {
  const StudyFile *file = study->file;
  for (int p = 0; p < file->policy_count; p++) {
    Belief belief, base;
    TRY(study_belief_create(file->settings[s], &file->policies[p], problem, 0, &belief));
    if (belief.kind == BELIEF_WEIGHTS && policy_named(file->policies[p].name).sampler->gaussian) {
      /* Two matrices per run, and ten of work space. */
      const double n = likelihood_parameters(&belief.likelihood, problem->d),
                   matrices = 2 * (double)study->runs.block + 10;
      estimate->networks = fmax(estimate->networks, matrices * n * n * sizeof(double));
    }
    if (belief.kind != BELIEF_FITTED) continue;
    TRY(study_belief_prerequisite(file->settings[s], problem, &belief, &base));
    if (base.kind != BELIEF_NONE) app_plan_count_fit(&base, fits);
    if (app_plan_count_fit(&belief, fits))
      fits->seconds += times ? times->fit[s * file->policy_count + p] : NAN;
  }
  return STATUS_OK;
}

/* Bytes of the files, by what they are due to. */
typedef struct {
  double curves, events, runs;
} Weights;

/* This share of what differs between runs is left when results.nc is compressed: cumulative regret loses 10%
 * to 14%, and the columns draws_offset and draws_spread 9% and 13% to 61%. What is the same in all runs of a
 * block weighs nothing. */
static const double CURVES_LEFT = 0.875, COLUMNS_LEFT = 0.8;

/* Adds the files of one setting: the journals, results.nc, and the event logs. */
static void app_plan_add_files(const Study *study, int s, const Problem *problem, Weights weights[3]) {
  enum { VARYING_COLUMNS = 2, EVENT = 2 * sizeof(double) + 3 * sizeof(int) };
  const StudyFile *file = study->file;
  const double number = sizeof(double), policies = file->policy_count, runs = (double)study->runs.most;
  Weights *journals = &weights[0], *results = &weights[1], *logs = &weights[2];
  double sampling = 0;
  for (int p = 0; p < file->policy_count; p++)
    sampling += policy_named(file->policies[p].name).sampler != NULL;
  const double points = study->ops->points(file->settings[s]) * number, columns = VARYING_COLUMNS * number,
               every = study->curve_count - study->along;
  journals->curves += runs * policies * study->along * points;
  journals->events += runs * policies * every * problem->rounds * number;
  journals->runs += runs * sampling * columns + study->runs.blocks * policies * JOURNAL_RECORD;
  for (int c = 0; c < study->published; c++)
    results->curves += CURVES_LEFT * runs * (study->curves[c]->of_world ? 1 : policies) * points;
  results->runs += COLUMNS_LEFT * runs * sampling * columns;
  if (every > 0)
    logs->events +=
        runs * policies * problem->rounds * (problem->d * problem_vectors(problem) * number + EVENT);
}

/* Adds up the files of all settings, and finds the key that weighs most. */
static PlanFiles app_plan_sum_files(const Study *study, const Weights weights[3]) {
  double totals[3], curves = 0, events = 0, runs = 0;
  for (int i = 0; i < 3; i++) {
    totals[i] = weights[i].curves + weights[i].events + weights[i].runs;
    curves += weights[i].curves;
    events += weights[i].events;
    runs += weights[i].runs;
  }
  const double most = fmax(curves, fmax(events, runs));
  return (PlanFiles){.journals = totals[0],
                     .results = totals[1],
                     .logs = totals[2],
                     .heaviest = most == curves   ? study->ops->points_key
                                 : most == events ? "event_log"
                                                  : "runs",
                     .share = most / (curves + events + runs)};
}

/* Adds what depends on the problem of each setting: priors, and matrices that are spread. */
static Status app_plan_add_settings(const Study *study, const PlanTimes *times, Estimate *out) {
  SCRATCH_ARENA(scratch);
  const StudyFile *file = study->file;
  Fits fits = {0};
  enum { RUN = sizeof(int64_t) + sizeof(int) }; /* its number and its replicate, in the results */
  Weights weights[3] = {0};
  weights[1].runs = RUN * (double)study->runs.most;
  ALLOCATE(&scratch, fits.hash, 2 * file->setting_count * file->policy_count);
  for (int s = 0; s < file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(study_problem_create(file->settings[s], &problem));
    out->spread = fmax(out->spread, study->spread_bytes[s]);
    if (!problem.distributed && study->ops->bytes)
      out->task = fmax(out->task, study->ops->bytes(study, file->settings[s], &problem));
    out->arms = problem.arms > out->arms ? problem.arms : out->arms;
    TRY(app_plan_count_priors(study, times, s, &problem, &fits, out));
    app_plan_add_files(study, s, &problem, weights);
  }
  out->files = app_plan_sum_files(study, weights);
  out->priors = fits.count * study->runs.replicates;
  out->prior_parts = fits.parts * study->runs.replicates;
  out->training_hours = study->runs.replicates * fits.seconds / 3600;
  return STATUS_OK;
}

/* Adds up the measured times of all tasks but those whose record another one has; without `times` they are
 * unknown. */
static void app_plan_add_runs(const Study *study, const PlanTimes *times, Estimate *out) {
  const int policies = study->file->policy_count;
  const int64_t least = study_runs_in_blocks(&study->runs, study_runs_first_wave(&study->runs));
  out->hours = out->least_hours = NAN;
  if (!times) return;
  out->hours = out->least_hours = 0;
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    const double shared = times->shared[task.setting],
                 a_run = times->run[task.setting * policies + task.policy];
    if (study_repeats_task(study, i, 0, 1)) continue;
    const double hours = (a_run + shared / policies) * task.runs / 3600;
    out->hours += hours;
    if (task.first_run < least) out->least_hours += hours;
    out->longest_task = fmax(out->longest_task, (a_run + shared) * task.runs);
  }
}

Status app_plan_estimate_study(const Study *study, const PlanTimes *times, Estimate *out) {
  const double most = (double)study->runs.most,
               curves = (double)study->along * study->points * sizeof(double);
  *out = (Estimate){0};
  TRY(app_plan_add_settings(study, times, out));
  out->memory = 4e7 + 2 * curves * most +
                (double)study->runs.block * (curves + out->arms * 8 * sizeof(double)) + out->networks +
                out->task;
  app_plan_add_runs(study, times, out);
  return STATUS_OK;
}
