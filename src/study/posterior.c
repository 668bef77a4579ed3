/* The posterior study: how far every sampler's draws are from the exact posterior, with no bandit at all
 * (DiffTS paper, Appendix C.4 and Figure 7). A run is a history: theta* from the prior, arms chosen uniformly
 * at random (or in order, if the problem says so), and their rewards. At each sample size, M draws of the
 * sampler are compared with R draws from the exact posterior. R other exact draws are compared with the same
 * ones; this gives the floor, which a perfect sampler reaches. posterior_block.c runs a task. */
#include "core/arena.h"
#include "model/prior/fit_keys.h"
#include "sampler/cost.h"
#include "sampler/methods.h"
#include "study/posterior_internal.h"
#include "study/studies.h"

#include <math.h>

/* Returns M; study_posterior_reference_draws returns R. */
int study_posterior_draws(const Config *setting) { return (int)config_int(setting, "draws"); }
int study_posterior_reference_draws(const Config *setting) {
  return config_is(setting, "reference_draws", "draws") ? study_posterior_draws(setting)
                                                        : (int)config_int(setting, "reference_draws");
}

int study_posterior_points(const Config *setting) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? count : 1; /* arms */
}

int64_t study_posterior_size(const Config *setting, int point) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? sizes[point] : problem_arms(setting);
}

int study_posterior_last_size(const Config *setting) {
  return (int)study_posterior_size(setting, study_posterior_points(setting) - 1);
}

#define NEEDS_BESIDE(name, word, text)                                                                       \
  [CURVE_##name] = POSTERIOR_NEEDS_REFERENCE,                                                                \
  [CURVE_##name##_floor] = POSTERIOR_NEEDS_REFERENCE | POSTERIOR_NEEDS_FLOOR,
#define NEEDS_EXACT(name, word, text) [CURVE_##name] = POSTERIOR_NEEDS_REFERENCE,
#define NEEDS_NOTHING(name, word, text)
static const int needs[CURVES] = {METRIC_LIST(NEEDS_BESIDE, NEEDS_EXACT, NEEDS_NOTHING)[CURVE_log_concavity] =
                                      POSTERIOR_NEEDS_REFERENCE};

int study_posterior_needs(const Study *study, bool has_shared) {
  int all = 0;
  for (int c = 0; c < study->curve_count; c++)
    if (!(has_shared && study->curves[c]->shared)) all |= needs[study->curves[c] - study_posterior.curves];
  return all;
}

static double study_posterior_axis_value(const Config *setting, int point) {
  return (double)study_posterior_size(setting, point);
}

/* Checks a setting: the sizes must rise, and if draws are compared with exact ones, it must be possible to
 * make those. */
static Status study_posterior_check_setting(const Study *study, const Config *setting,
                                            const Problem *problem) {
  for (int i = 1; i < study_posterior_points(setting); i++)
    if (study_posterior_size(setting, i) <= study_posterior_size(setting, i - 1))
      return status_set(STATUS_INPUT, "key 'problem.sample_sizes': %lld after %lld; they must increase",
                        (long long)study_posterior_size(setting, i),
                        (long long)study_posterior_size(setting, i - 1));
  if (problem->per_arm || problem->quadratic)
    return status_set(STATUS_INPUT, "study posterior needs one theta* and rewards that depend on phi' "
                                    "theta*; problem.unknown must be shared and problem.reward linear");
  if (!study_posterior_needs(study, false)) return STATUS_OK;
  PriorFit chain = fit_of_keys(setting, "prior.", study->seed, 0);
  SCRATCH_ARENA(scratch);
  Prior truth;
  char sentence[512];
  TRY(problem_exact_prior(&scratch, problem, &chain, &truth));
  bool misfit = sampler_misfit(&sampler_exact, &truth, &problem->likelihood, sizeof sentence, sentence);
  bool modes = truth.mixture != NULL, noised = truth.chain != NULL;
  if (misfit)
    return status_set(
        STATUS_INPUT,
        "key 'metrics': all but rank, rank_norm and rank_log_likelihood need the exact posterior: %s",
        sentence);
  if (study_measures(study, "emd") &&
      study_posterior_draws(setting) != study_posterior_reference_draws(setting))
    return status_set(STATUS_INPUT,
                      "key 'metrics': emd compares equal numbers of draws, but there are %d draws and %d "
                      "exact ones; use reference_draws: draws, or the metric sliced_wasserstein",
                      study_posterior_draws(setting), study_posterior_reference_draws(setting));
  if (study_measures(study, "mode_weight") && !modes)
    return status_set(STATUS_INPUT,
                      "key 'metrics': mode_weight needs theta* from a "
                      "mixture of Gaussians; problem.theta = %s is not one",
                      config_text(setting, "problem.theta"));
  if (study_measures(study, "log_concavity") && !noised)
    return status_set(STATUS_INPUT,
                      "key 'metrics': log_concavity needs theta* from a mixture of Gaussians or ising; "
                      "problem.theta = %s is neither",
                      config_text(setting, "problem.theta"));
  return STATUS_OK;
}

static Status study_posterior_check_policy(const PolicyMethod *method, const Config *options) {
  if (policy_discount(options) < 1)
    return status_set(STATUS_INPUT, "discount: observations are discounted only in study bandit");
  if (method->sampler || method->ops->draw) return STATUS_OK;
  return status_set(STATUS_INPUT, "it does not sample theta, but study posterior compares draws");
}

/* Returns the cost: M draws at each size, and a transport problem for each run and size, of about a 36th of
 * the cube of its points in operations; also a share of the floor, which one policy measures for all. */
static double study_posterior_cost(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  if (problem_is_large(setting)) return study_posterior_cost_large(study, task);
  const PolicyMethod method = policy_named(study->file->policies[task->policy].name);
  double m = study_posterior_draws(setting), r = study_posterior_reference_draws(setting),
         sizes = study_posterior_points(setting);
  const double floor = pow(2 * r, 3) / study->file->policy_count;
  double matching = study_measures(study, "emd") ? (pow(m + r, 3) + floor) / 36 : 0;
  PolicyWork work = study_work(study, task);
  const double world = study_world_cost(&work), rounds = study_posterior_last_size(setting);
  work.sampler.rounds = rounds, work.sampler.rows = 0;
  work.sampler.draws = m, work.sampler.drawn = sizes / rounds;
  for (int i = 0; i < (int)sizes; i++) work.sampler.rows += (double)study_posterior_size(setting, i) / sizes;
  const double round = method.sampler ? cost_round(method.sampler, &work.sampler)
                                      : policy_cost(&method, &work) * work.sampler.drawn;
  return task->runs * (rounds * (round + world) + sizes * matching);
}

#define MEASURED(is, text, word, of_all)                                                                     \
  { .name = is, .long_name = text, .metric = word, .shared = of_all }
#define CURVE(name, word, text) MEASURED(#name, text, word, false),
#define CURVE_AND_FLOOR(name, word, text)                                                                    \
  MEASURED(#name, text, word, false),                                                                        \
      MEASURED(#name "_floor", text ", of a second set of exact draws", word, true),

static const StudyCurve curves[] = {
    METRIC_LIST(CURVE_AND_FLOOR, CURVE, CURVE) /* then the study's own */
    MEASURED("log_concavity", "smallest eigenvalue of the Hessian of -log nu_T* between draws from it",
             "log_concavity", true),
    MEASURED("log_concavity_bound", "its bound by Theorem 2 for a mixture of this diameter, as printed",
             "log_concavity", true),
    MEASURED("log_concavity_sharp",
             "the same bound with a quarter of the diameter's square, which two points reach",
             "log_concavity", true),
    MEASURED("ess", "effective sample size behind the draws", NULL, false),
    {.name = NULL}};

const StudyOps study_posterior = {
    .name = "posterior",
    .summary = "draws of every sampler compared with exact posterior draws, without a bandit",
    .reference = "DiffTS, Appendix C.4",
    .figure = "figure_diffts_7.py",
    .axis = "sample_size",
    .axis_long_name = "number of observations",
    .curves = curves,
    .points = study_posterior_points,
    .axis_value = study_posterior_axis_value,
    .check_setting = study_posterior_check_setting,
    .check_policy = study_posterior_check_policy,
    .cost = study_posterior_cost,
    .check_large = study_posterior_check_large,
    .run_large = study_posterior_run_large,
    .run = study_posterior_run_block};
