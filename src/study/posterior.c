/* The posterior study: how far every sampler's draws are from the exact posterior, with no bandit at all
 * (DiffTS paper, Appendix C.4 and Figure 7). A run is a history: theta* from the prior, arms chosen uniformly
 * at random (or in order, if the problem says so), and their rewards. At each sample size, M draws of the
 * sampler are compared with R draws from the exact posterior. R other exact draws are compared with the same
 * ones; this gives the floor, which a perfect sampler reaches.
 *
 * Every policy sees the same theta*, arms, rewards and exact draws. Curves that depend on these alone are the
 * same for all policies too (they are `shared`). If a task finds them in its result, it neither measures them
 * again nor makes the draws that only they need. */
#include "problem/problem_cases.h"
#include "sampler/methods.h"
#include "sampler/observed.h"
#include "study/posterior_internal.h"
#include "study/studies.h"
#include "study/study_problem.h"

int study_posterior_draws(const Config *setting) { return (int)config_int(setting, "draws"); }
int study_posterior_reference_draws(const Config *setting) {
  return config_is(setting, "reference_draws", "draws") ? study_posterior_draws(setting)
                                                        : (int)config_int(setting, "reference_draws");
}

int study_posterior_points(const Config *setting) {
  const int64_t *sizes;
  if (study_problem_family(setting)->take) return 1; /* after all observations of a case */
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? count : 1; /* arms */
}

int64_t study_posterior_size(const Config *setting, const Problem *problem, int point) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? sizes[point] : problem->arms;
}

int study_posterior_last_size(const Config *setting, const Problem *problem) {
  if (problem->cases > 0) return problem->arms;
  return (int)study_posterior_size(setting, problem, study_posterior_points(setting) - 1);
}

static double study_posterior_axis_value(const Config *setting, const Problem *problem, int point) {
  if (problem->cases > 0) return problem_cases_file(problem)->rows;
  return (double)study_posterior_size(setting, problem, point);
}

/* Checks what only cases can lack: theta*, and enough reference draws. */
static Status study_posterior_check_case(const Study *study, const Config *setting, const Problem *problem) {
  static const char *const of_truth[] = {"distance", "rank", "rank_norm", "rank_log_likelihood"};
  if (problem->cases == 0) return STATUS_OK;
  const CaseFile *file = problem_cases_file(problem);
  const int wanted = study_posterior_reference_draws(setting);
  for (size_t i = 0; i < sizeof of_truth / sizeof *of_truth; i++)
    if (!file->cases[0].theta && study_measures(study, of_truth[i]))
      return status_set(STATUS_INPUT,
                        "key 'metrics': %s compares with theta*, but %s has no theta(case, dim)", of_truth[i],
                        file->path);
  if (study_posterior_needs(study, false) && file->references > 0 && file->references < wanted)
    return status_set(STATUS_INPUT, "reference_draws: %d, but %s has only %d reference draws of each case",
                      wanted, file->path, file->references);
  return STATUS_OK;
}

/* Refuses samplers that would need too much memory, as far as it is known before a prior is fitted. */
static Status study_posterior_check_memory(const Study *study, const Config *setting,
                                           const Problem *problem) {
  SCRATCH_ARENA(scratch);
  Isotropic standard;
  TRY(denoiser_isotropic_create(&scratch, problem->d, 1, &standard));
  standard.weight[0] = standard.variance[0] = 1;
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    const PolicyMethod method = policy_named(policy->name);
    Belief belief;
    if (!method.sampler) continue;
    TRY(study_belief_create(setting, policy, problem, 0, &belief));
    const bool exact = belief.kind == BELIEF_EXACT && problem->theta.isotropic.d > 0;
    if (!exact && belief.kind != BELIEF_STANDARD) continue;
    const Isotropic *isotropic = exact ? &problem->theta.isotropic : &standard;
    Chain chain;
    TRY(denoiser_isotropic_chain(&scratch, isotropic, &belief.fit.schedule, &chain));
    const Prior prior = {.d = problem->d, .isotropic = isotropic, .chain = &chain};
    const SamplerSetup setup = {.prior = &prior,
                                .likelihood = &belief.likelihood,
                                .draws = study_posterior_draws(setting),
                                .for_themselves = true,
                                .observations = study_posterior_last_size(setting, problem),
                                .options = policy->options};
    const Status status = observed_check_size(method.sampler, &setup);
    if (status != STATUS_OK) return status_prefix(status, "policy '%s': ", policy->label);
  }
  return STATUS_OK;
}

/* Checks a setting: sizes must rise, and exact draws, if they are needed, must be possible. */
static Status study_posterior_check_setting(const Study *study, const Config *setting,
                                            const Problem *problem) {
  for (int i = 1; i < study_posterior_points(setting); i++)
    if (study_posterior_size(setting, problem, i) <= study_posterior_size(setting, problem, i - 1))
      return status_set(STATUS_INPUT, "key 'problem.sample_sizes': %lld after %lld; they must increase",
                        (long long)study_posterior_size(setting, problem, i),
                        (long long)study_posterior_size(setting, problem, i - 1));
  if (problem->per_arm || problem->quadratic)
    return status_set(STATUS_INPUT, "study posterior needs one theta* and rewards that depend on phi' "
                                    "theta*; problem.unknown must be shared and problem.reward linear");
  TRY(study_posterior_check_case(study, setting, problem));
  TRY(study_posterior_check_memory(study, setting, problem));
  if (!study_posterior_needs(study, false)) return STATUS_OK;
  PriorFit chain = fit_of_keys(setting, study->seed, 0);
  SCRATCH_ARENA(scratch);
  Prior truth;
  char sentence[512];
  TRY(problem_exact_prior(&scratch, problem, &chain, &truth));
  const bool references = problem->cases > 0 && problem_cases_file(problem)->references > 0;
  if (!references && sampler_misfit(&sampler_exact, &truth, &problem->likelihood, sizeof sentence, sentence))
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
  if (study_measures(study, "mode_weight") && !truth.mixture && !truth.isotropic)
    return status_set(STATUS_INPUT,
                      "key 'metrics': mode_weight needs theta* from a "
                      "mixture of Gaussians; problem.theta = %s is not one",
                      config_text(setting, "problem.theta"));
  if (study_measures(study, "log_concavity") && !truth.chain)
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

static double study_posterior_all_draws(const Config *setting) {
  return (double)study_posterior_points(setting) * study_posterior_draws(setting);
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
    MEASURED("distinct", "share of the draws that are no copies of one another, where a sampler copies", NULL,
             false),
    MEASURED("oracle_calls",
             "evaluations of the prior's denoiser per draw; a product with its Jacobian counts as one", NULL,
             false),
    {.name = "log_evidence",
     .long_name = "log marginal likelihood of the observations, where a sampler knows it",
     .each = true},
    {.name = "log_evidence_se", .long_name = "standard error of log_evidence", .each = true},
    {.name = NULL}};

const StudyOps study_posterior = {
    .name = "posterior",
    .summary = "draws of every sampler compared with exact posterior draws, without a bandit",
    .reference = "DiffTS, Appendix C.4",
    .figure = "figure_diffts_7.py",
    .keys = "problem.sample_sizes metrics draws reference_draws projections linear_algebra ranks_per_setting",
    .axis = "sample_size",
    .axis_long_name = "number of observations",
    .curves = curves,
    .rewards_of = REWARDS_OF_OBSERVATIONS,
    .draws_together = true,
    .points = study_posterior_points,
    .points_key = "problem.sample_sizes",
    .draws = study_posterior_all_draws,
    .bytes = study_posterior_bytes,
    .axis_value = study_posterior_axis_value,
    .check_setting = study_posterior_check_setting,
    .check_policy = study_posterior_check_policy,
    .check_spread = study_posterior_check_spread,
    .run_spread = study_posterior_run_spread,
    .spread_bytes = study_posterior_spread_bytes,
    .run = study_posterior_run};
