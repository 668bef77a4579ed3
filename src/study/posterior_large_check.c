/* What can be asked of large settings of the posterior study (posterior_large.c), and what they cost. */
#include "study/keys.h"
#include "study/posterior_internal.h"

#include <stdio.h>
#include <string.h>

static Status check_policy(const Config *setting, const ConfigPolicy *policy, const Problem *problem) {
  PolicyMethod method;
  Belief belief;
  ASSERT(policy_find(policy->name, &method));
  if (!method.sampler || !method.sampler->diagonal)
    return status_set(STATUS_INPUT,
                      "it has no form for large settings; exact, localised, mala and tilted have one");
  TRY(policy_check(&method, policy->options, problem));
  TRY(belief_create(setting, policy, problem, 0, &belief));
  if (belief.kind != BELIEF_EXACT && belief.kind != BELIEF_STANDARD)
    return status_set(STATUS_INPUT, "large settings need isotropic priors; give "
                                    "it 'prior: exact' or 'prior: standard'");
  if (config_real(policy->options, "temper") != 1)
    return status_set(STATUS_INPUT, "key 'temper': %g; large settings have no tempered evidence",
                      config_real(policy->options, "temper"));
  if (belief.guard.weight > 0)
    return status_set(STATUS_INPUT, "key 'guard': %g; large settings have none", belief.guard.weight);
  const DiagonalOps *ops = method.sampler->diagonal;
  return ops->check ? ops->check(policy->options) : STATUS_OK;
}

static Status check_keys(const Study *study, const Config *setting, const Problem *problem) {
  static const char there[] = " sd_ratio mode_weight moments distance rank ";
  if (study->ops->points(setting) != 1 || posterior_size(setting, 0) != problem->arms)
    return status_set(STATUS_INPUT, "key 'problem.sample_sizes': large settings take the whole of y; 'arms'");
  const char *word;
  for (int i = 0; (word = study_metric_name(i)); i++) {
    char whole[64];
    snprintf(whole, sizeof whole, " %s ", word);
    if (study_measures(study, word) && !strstr(there, whole))
      return status_set(STATUS_INPUT,
                        "key 'metrics': %s is not there in large settings; they have sd_ratio, mode_weight, "
                        "moments, distance and rank",
                        word);
  }
  if (!likelihood_is_conjugate(&problem->likelihood))
    return status_set(STATUS_INPUT, "likelihood: %s, but large settings need gaussian",
                      problem->likelihood.ops->name);
  if (problem->resample_arms)
    return status_set(STATUS_INPUT, "key 'problem.resample_arms': large settings have one matrix for a run");
  if (config_bool(setting, "prior.standardise"))
    return status_set(STATUS_INPUT, "key 'prior.standardise': large settings need false: scales of their own "
                                    "would make isotropic priors differ from direction to direction");
  return STATUS_OK;
}

Status posterior_check_large(const Study *study, const Config *setting, const Problem *problem) {
  Status status = check_keys(study, setting, problem);
  if (status != STATUS_OK) return status_prefix(status, "%d dimensions make a large setting: ", problem->d);
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    status = check_policy(setting, policy, problem);
    if (status != STATUS_OK)
      return status_prefix(status, "%d dimensions make a large setting: policy '%s': ", problem->d,
                           policy->label);
  }
  return STATUS_OK;
}

/* Returns the cost: two orthogonal factors, three products and the eigenvectors, shared by the policies;
 * steps of the draws. */
double posterior_cost_large(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  const double d = study_dimension(setting), steps = 300;
  return task->runs *
         (20 * d * d * d / study->file->policy_count + posterior_draws(setting) * steps * 40 * d);
}
