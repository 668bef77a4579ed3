#include "policy/policy.h"

#include "core/memory.h"
#include "policy/policies.h"

#include <stdlib.h>
#include <string.h>

static const PolicyOps *const registry[] = {&policy_linucb, &policy_glm_ucb, &policy_egreedy,
                                            &policy_random, &policy_oracle,  NULL};

bool policy_method(int index, PolicyMethod *out) {
  int samplers = 0;
  while (sampler_method(samplers)) samplers++;
  if (index < samplers) {
    const SamplerOps *sampler = sampler_method(index);
    *out = (PolicyMethod){sampler->name,          sampler->summary, sampler->reference,
                          sampler->default_prior, sampler,          NULL};
    return true;
  }
  const PolicyOps *ops = registry[index - samplers];
  if (ops) *out = (PolicyMethod){ops->name, ops->summary, ops->reference, NULL, NULL, ops};
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

/* Options of every policy that samples. */
static const ConfigKey sampling_keys[] = {
    {.name = "prior",
     .type = KEY_TEXT,
     .fallback = "default",
     .help = "standard | gaussian | mixture | diffusion | exact | a prior file; default: what the method is "
             "made for"},
    {.name = "components",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 1000,
     .fallback = "study",
     .words = "study",
     .help = "components of this policy's fitted mixture; study: prior.components"},
    {.name = NULL}};
static const ConfigKey no_keys[] = {{.name = NULL}};

static int count(const ConfigKey *keys) {
  int n = 0;
  while (keys && keys[n].name) n++;
  return n;
}

const ConfigKey *policy_keys(const char *name) {
  enum { POLICIES = 64, KEYS = 16 };
  static ConfigKey joined[POLICIES][KEYS];
  PolicyMethod method;
  for (int p = 0; policy_method(p, &method); p++) {
    if (strcmp(method.name, name) != 0) continue;
    if (!method.sampler) return method.ops->keys ? method.ops->keys : no_keys;
    const ConfigKey *own_keys = sampler_keys(method.sampler);
    int common = count(sampling_keys), own = count(own_keys);
    ASSERT(p < POLICIES && common + own < KEYS);
    for (int i = 0; i < common; i++) joined[p][i] = sampling_keys[i];
    for (int i = 0; i < own; i++) joined[p][common + i] = own_keys[i];
    return joined[p];
  }
  return NULL;
}

static const PolicyOps *ops_of(const PolicyMethod *method) {
  return method->sampler ? &policy_thompson : method->ops;
}

Status policy_check(const PolicyMethod *method, const Problem *problem) {
  const LikelihoodOps *likelihood = problem->likelihood.ops;
  if (!method->ops || !method->ops->conjugate_only || likelihood->conjugate) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "policy %s needs a likelihood that is quadratic in phi' theta (gaussian); likelihood %s is "
      "not: take glm_ucb",
      method->name, likelihood->name);
}

Status policy_create(const PolicyMethod *method, const PolicySetup *setup, Policy *out) {
  *out = (Policy){0};
  TRY(policy_check(method, setup->problem));
  *out = (Policy){.method = *method, .setup = *setup};
  Status status = ops_of(method)->create(out);
  if (status != STATUS_OK) policy_destroy(out);
  return status;
}

void policy_destroy(Policy *policy) {
  if (policy->method.name) ops_of(&policy->method)->destroy(policy);
  *policy = (Policy){0};
}

void policy_choose(Policy *policy, const World *world, const History *history, int *arm, int64_t *fallbacks) {
  ops_of(&policy->method)->choose(policy, world, history, arm, fallbacks);
}

void policy_observe(Policy *policy, const History *history, int64_t *fallbacks) {
  const PolicyOps *ops = ops_of(&policy->method);
  if (ops->observe) ops->observe(policy, history, fallbacks);
}
