#include "app/app_plan_estimate.h"

#include "parallel/grid.h"
#include "study/study_problem.h"

/* Floating-point operations per second that one core is assumed to reach in a whole simulation. */
static const double ASSUMED_SPEED = 2e10;

static double app_plan_seconds(double measured) { return measured > 0 ? measured : 1 / ASSUMED_SPEED; }

double app_plan_estimate_run(const Study *study, const Speed *speed, int setting, int policy) {
  Task task = study_task(study, study_task_index(study, setting, policy, 0));
  const double seconds = app_plan_seconds(speed->policy ? speed->policy[policy] : 0);
  return study->ops->cost(study, &task) * seconds / task.runs;
}

/* Distinct fits, by their hashes. */
typedef struct {
  int count;
  char (*hash)[65];
} Fits;

/* Counts a fit and adds its cost, unless it is in `fits` already. */
static void app_plan_count_fit(const Belief *belief, const Problem *problem, Fits *fits, Estimate *estimate) {
  for (int i = 0; i < fits->count; i++)
    if (strcmp(fits->hash[i], belief->hash) == 0) return;
  memcpy(fits->hash[fits->count++], belief->hash, sizeof *fits->hash);
  estimate->training_operations += study_belief_fit_cost(belief, problem);
}

/* Counts the distinct fits of the study and those that they need first, and adds up their cost; finds the
 * memory of Gaussians on the weights of a network. */
static Status app_plan_count_priors(const Study *study, Estimate *estimate) {
  SCRATCH_ARENA(scratch);
  const StudyFile *file = study->file;
  Fits fits = {0};
  ALLOCATE(&scratch, fits.hash, 2 * file->setting_count * file->policy_count);
  for (int s = 0; s < file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(study_problem_create(file->settings[s], &problem));
    for (int p = 0; p < file->policy_count; p++) {
      Belief belief, base;
      TRY(study_belief_create(file->settings[s], &file->policies[p], &problem, 0, &belief));
      if (belief.kind == BELIEF_WEIGHTS && policy_named(file->policies[p].name).sampler->gaussian) {
        /* Two matrices per run, and ten of work space. */
        const double n = likelihood_parameters(&belief.likelihood, problem.d),
                     matrices = 2 * (double)study->runs.block + 10;
        estimate->networks = fmax(estimate->networks, matrices * n * n * sizeof(double));
      }
      if (belief.kind != BELIEF_FITTED) continue;
      TRY(study_belief_prerequisite(file->settings[s], &problem, &belief, &base));
      if (base.kind != BELIEF_NONE) app_plan_count_fit(&base, &problem, &fits, estimate);
      app_plan_count_fit(&belief, &problem, &fits, estimate);
    }
  }
  estimate->priors = fits.count * study->runs.replicates;
  estimate->training_operations *= study->runs.replicates;
  return STATUS_OK;
}

/* Returns the peak bytes, over all ranks that hold the matrices: either of the decomposition (the matrix, its
 * eigenvectors, and two matrices of work space) or, later, of the eigenvectors together with exact draws,
 * draws being made, and a product of two sets of draws. */
static double app_plan_shared_matrix_bytes(const Config *setting) {
  const double d = study_dimension(setting), most = fmax(d, study_problem_arms(setting)),
               draws = (double)config_int(setting, "draws"),
               reference = config_is(setting, "reference_draws", "draws")
                               ? draws
                               : (double)config_int(setting, "reference_draws"),
               larger = fmax(draws, reference);
  return fmax(4 * dense_bytes(most, most),
              dense_bytes(d, d + reference + 2 * larger) + dense_bytes(larger, larger));
}

Status app_plan_estimate_study(const Study *study, const Speed *speed, Estimate *out) {
  const StudyFile *file = study->file;
  const Config *first = file->settings[0];
  double most = (double)study->runs.most,
         least = (double)study_runs_in_blocks(&study->runs, study_runs_first_wave(&study->runs));
  *out = (Estimate){.large_is_spread = grid_is_available()};
  for (int s = 0; s < file->setting_count; s++) {
    for (int p = 0; p < file->policy_count; p++) {
      double a_run = app_plan_estimate_run(study, speed, s, p);
      out->hours += a_run * most / 3600;
      out->least_hours += a_run * least / 3600;
      out->longest_task = fmax(out->longest_task, a_run * study->blocks[0].runs);
    }
    if (!study_problem_is_large(file->settings[s])) continue;
    out->large = fmax(out->large, app_plan_shared_matrix_bytes(file->settings[s]));
    out->large_is_spread &= study_problem_is_distributed(file->settings[s]);
  }
  double curves = (double)study->curve_count * study->points * sizeof(double);
  double arms = config_has(first, "problem.arms") ? study_problem_arms(first) : 1;
  out->memory = 4e7 + 2 * curves * most + (double)study->runs.block * (curves + arms * 8 * sizeof(double));
  out->bytes = 2 * curves * most * file->setting_count * file->policy_count;
  TRY(app_plan_count_priors(study, out));
  out->memory += out->networks;
  out->training_hours = out->training_operations * app_plan_seconds(speed->training) / 3600;
  return STATUS_OK;
}
