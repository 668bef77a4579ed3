#include "policy/policy.h"

#include "policy/policies.h"
#include "rule/rule.h"
#include "sampler/methods.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>
#include <string.h>

static const PolicyOps *const registry[] = {
#define POLICY_ENTRY(name) &policy_##name,
    POLICY_LIST(POLICY_ENTRY)
#undef POLICY_ENTRY
        NULL};

bool policy_method(int index, PolicyMethod *out) {
  int samplers = 0;
  while (sampler_method(samplers)) samplers++;
  if (index <= samplers) {
    const SamplerOps *sampler = index < samplers ? sampler_method(index) : &sampler_auto;
    *out = (PolicyMethod){.name = sampler->name,
                          .summary = sampler->summary,
                          .reference = sampler->reference,
                          .default_prior = sampler->default_prior,
                          .sampler = sampler};
    return true;
  }
  const PolicyOps *ops = registry[index - samplers - 1];
  if (ops)
    *out =
        (PolicyMethod){.name = ops->name, .summary = ops->summary, .reference = ops->reference, .ops = ops};
  return ops != NULL;
}

const char *policy_name(int index) {
  PolicyMethod method;
  return policy_method(index, &method) ? method.name : NULL;
}

bool policy_find(const char *name, PolicyMethod *out) {
  for (int i = 0; policy_method(i, out); i++)
    if (strcmp(out->name, name) == 0) return true;
  return false;
}

PolicyMethod policy_named(const char *name) {
  PolicyMethod method;
  ASSERT(policy_find(name, &method));
  return method;
}

/* Options of every policy that samples. */
static const ConfigKey sampling_keys[] = {
    {TEXT("prior", "default",
          "standard | ising | exact | a family of `thompson list priors` | a prior file; default: the one "
          "the method is made for")},
    {INT("components", 1, 1000, "study",
         "components of this policy's fitted mixture; auto: chosen by held-out likelihood; study: as "
         "prior.components"),
     .words = "study auto"},
    {WORD("posterior", "auto",
          "one posterior for all arms, or one for each arm, learned from its own rewards; auto: to match the "
          "world, so per_arm with problem.unknown: per_arm and with problem.family: table"),
     .words = "auto shared per_arm"},
    POLICY_DISCOUNT_KEY,
    {WORD("model", "linear",
          "linear: theta multiplies phi; network: theta holds the weights of a ReLU network with input phi"),
     .words = "linear network"},
    {INTS("hidden", 1, 4096, "[20, 20]", "widths of the hidden layers with model: network")},
    {.name = NULL}};
static const ConfigKey no_keys[] = {{.name = NULL}};

const ConfigKey *policy_shared_keys(void) { return sampling_keys; }

const ConfigKey *policy_keys(const char *name) {
  enum { POLICIES = 64, KEYS = 32 };
  static ConfigKey joined[POLICIES][KEYS];
  PolicyMethod method;
  for (int p = 0; policy_method(p, &method); p++) {
    if (strcmp(method.name, name) != 0) continue;
    if (!method.sampler) return method.ops->keys ? method.ops->keys : no_keys;
    ASSERT(p < POLICIES);
    if (joined[p][0].name) return joined[p];
    const ConfigKey *own = sampler_keys(method.sampler); /* replaces common keys of the same name */
    config_join_keys(sampling_keys, own, KEYS, joined[p]);
    config_join_keys(rule_keys(), NULL, KEYS, joined[p]);
    config_join_keys(own, NULL, KEYS, joined[p]);
    return joined[p];
  }
  return NULL;
}

bool policy_is_per_arm(const PolicyMethod *method, const Config *options, bool world_per_arm) {
  return method->sampler && (config_is(options, "posterior", "per_arm") ||
                             (world_per_arm && config_is(options, "posterior", "auto")));
}

static bool policy_has_network(const PolicyMethod *method, const Config *options) {
  return method->sampler && config_is(options, "model", "network");
}

static const PolicyOps *policy_ops(const PolicyMethod *method) {
  return method->sampler ? &policy_sampling : method->ops;
}

/* Checks that a policy with one theta for all arms is not used where each arm has its own, and that all the
 * conditions of a posterior per arm hold, such as arms that never change. */
static Status policy_check_posterior(const PolicyMethod *method, const Config *options,
                                     const Problem *problem) {
  const SamplerOps *sampler = method->sampler;
  const bool per_arm = policy_is_per_arm(method, options, problem->per_arm);
  if (problem->per_arm && !per_arm && (sampler || method->ops->one_theta))
    return status_set(
        STATUS_INPUT, "policy %s learns one theta for all arms, but with %s%s each has its own%s",
        method->name,
        problem->ops->rewards ? "the contexts of problem.family = " : "problem.unknown = per_arm",
        problem->ops->rewards ? problem->ops->name : "",
        sampler ? ": set its option posterior: per_arm" : "");
  if (!per_arm) return STATUS_OK;
  if (policy_has_network(method, options))
    return status_set(STATUS_INPUT, "model: network is one network for all arms; posterior must be shared");
  if (sampler && mixture_posterior_forgets(options, &problem->likelihood) &&
      mixture_posterior_options(options).keep > 0)
    return status_set(STATUS_INPUT,
                      "memory {keep: N} needs one posterior for all arms; with one for each arm "
                      "(posterior: per_arm), memory must be full or filtered");
  if (!problem->per_arm && problem->resample_arms)
    return status_set(STATUS_INPUT,
                      "posterior: per_arm needs arms that stay the same from round to round; here they are "
                      "drawn again (problem.resample_arms, or problem.family = pool)");
  if (sampler->update && !sampler->carry && !sampler->restless)
    return status_set(STATUS_INPUT,
                      "sampler %s carries a state from round to round that cannot be kept for each arm "
                      "separately, so it does not support posterior: per_arm",
                      method->name);
  return STATUS_OK;
}

double policy_discount(const Config *options) {
  return config_has(options, "discount") ? config_real(options, "discount") : 1;
}

Status policy_check(const PolicyMethod *method, const Config *options, const Problem *problem) {
  const int64_t *hidden;
  if (policy_has_network(method, options) && config_ints(options, "hidden", &hidden) >= NETWORK_MAX_LAYERS)
    return status_set(STATUS_INPUT, "hidden: a network has at most %d hidden layers", NETWORK_MAX_LAYERS - 1);
  if (method->ops && method->ops->check) TRY(method->ops->check(problem));
  TRY(policy_check_posterior(method, options, problem));
  const SamplerOps *sampler = method->sampler;
  const bool discounts = sampler && policy_discount(options) != 1;
  if (discounts && policy_has_network(method, options))
    return status_set(STATUS_INPUT,
                      "discount: what a network (model: network) has learned cannot be discounted");
  if (discounts &&
      (sampler->by_observation || (policy_is_per_arm(method, options, problem->per_arm) && sampler->carry)))
    return status_set(STATUS_INPUT,
                      "discount: sampler %s absorbs each observation for good and cannot discount it later; "
                      "use another, such as ts or mixts",
                      method->name);
  const Likelihood likelihood = policy_likelihood(method, options, problem);
  if (sampler) TRY(rule_check(options, &likelihood));
  if (sampler) TRY(rule_check_arms(options, problem->arms));
  if (method->ops && method->ops->conjugate_only && !likelihood_is_conjugate(&problem->likelihood))
    return status_set(STATUS_INPUT,
                      "policy %s needs a likelihood that is quadratic in phi' theta (gaussian); likelihood "
                      "%s is not: use glm_ucb",
                      method->name, problem->likelihood.ops->name);
  return STATUS_OK;
}

Status policy_create(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, Policy *out) {
  *out = (Policy){.memory = memory, .method = *method, .ops = policy_ops(method), .setup = *setup};
  TRY(policy_check(method, setup->options, setup->problem));
  if (!setup->likelihood) out->setup.likelihood = &setup->problem->likelihood;
  return out->ops->create ? out->ops->create(out) : STATUS_OK;
}

Status policy_begin(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, History *history,
                    Policy *out) {
  TRY(policy_history(memory, method, setup, history));
  TRY(history_reserve(history, setup->problem->rounds));
  return policy_create(memory, method, setup, out);
}

Status policy_check_weigh(const PolicyMethod *method, const Config *options) {
  const PolicyOps *ops = policy_ops(method);
  if (ops->weighs && !policy_has_network(method, options)) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "policy %s%s does not give the probability with which it chooses an arm; in a replay study, "
      "a log may have it as column 'target', for the policy of that name",
      method->name, policy_has_network(method, options) ? " with model: network" : "");
}

Likelihood policy_likelihood(const PolicyMethod *method, const Config *options, const Problem *problem) {
  Likelihood likelihood = problem->likelihood;
  const int64_t *width;
  if (!policy_has_network(method, options)) return likelihood;
  int hidden[NETWORK_MAX_LAYERS], count = config_ints(options, "hidden", &width);
  for (int i = 0; i < count; i++) hidden[i] = (int)width[i];
  likelihood.network = network_shape(problem->d, count, hidden, 1);
  return likelihood;
}

static bool policy_history_is_by_arm(const PolicyMethod *method, const Problem *problem) {
  const bool by_observation = method->sampler ? method->sampler->by_observation : method->ops->by_observation;
  return !problem->resample_arms && !by_observation;
}

SamplerSetup policy_sampler_setup(const PolicySetup *setup) {
  return (SamplerSetup){.prior = setup->prior,
                        .likelihood = setup->likelihood,
                        .runs = setup->runs,
                        .draws = 1,
                        .seed = setup->seed,
                        .first_run = setup->first_run,
                        .options = setup->options};
}

Status policy_history(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, History *out) {
  const Problem *problem = setup->problem;
  const Likelihood *likelihood = setup->likelihood;
  const bool per_arm = policy_is_per_arm(method, setup->options, problem->per_arm);
  const int d = problem->d, runs = setup->runs, arms = problem->arms, share = per_arm ? arms : 1;
  SamplerSetup sampler = policy_sampler_setup(setup);
  bool made = false; /* the sampler itself requires a history of some kind */
  sampler.runs *= share;
  if (method->sampler) TRY(sampler_history(memory, &sampler, share, &made, out));
  if (made) return STATUS_OK;
  const HistoryPlan plan = {.share = share,
                            .arms = !per_arm && policy_history_is_by_arm(method, problem) ? arms : 0,
                            .by_observation = !per_arm && method->ops && method->ops->by_observation};
  return history_create_planned(memory, d, runs, plan, likelihood, out);
}
