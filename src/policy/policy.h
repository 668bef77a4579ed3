/* Policies: choose an arm. A policy either samples (Thompson sampling with any posterior sampler) or does not
 * (LinUCB, epsilon-greedy, random, oracle). Every sampler is a policy of the same name. */
#pragma once

#include "core/core_tick.h"
#include "problem/problem.h"
#include "rule/rule.h"

typedef struct Policy Policy;
typedef struct PolicyOps PolicyOps;

/* What a policy is created for: one block of runs. */
typedef struct {
  const Prior *prior; /* not owned; NULL for policies that do not sample */
  const Likelihood *likelihood; /* policy_likelihood, not owned; NULL: the problem's */
  const Problem *problem;
  const Config *options;
  uint64_t seed;
  uint32_t first_run;
  int runs; /* B */
  int draws, observations; /* in a study of posteriors: M, and the number at its end; 0 in a bandit */
  Tick tick; /* called while the policy waits for another process */
  RuleUse use; /* more than RULE_CHOOSES: policy_weigh will be called */
} PolicySetup;

/* A registered policy: exactly one of `sampler` and `ops` is set. */
typedef struct {
  const char *name, *summary, *reference, *default_prior; /* default_prior NULL: needs none */
  const SamplerOps *sampler;
  const PolicyOps *ops;
} PolicyMethod;

struct PolicyOps {
  const char *name, *summary, *reference;
  bool conjugate_only; /* rewards must be conjugate (likelihood.h) */
  bool one_theta; /* learns one theta for all arms */
  const ConfigKey *keys; /* own options, ends with a NULL name; may be NULL */
  /* OPTIONAL. Returns STATUS_INPUT with one sentence if the policy cannot act in this problem. */
  Status (*check)(const Problem *problem);
  /* OPTIONAL. The only place that allocates: in self->memory. */
  Status (*create)(Policy *self);
  /* REQUIRED. Chooses arm[B], the arm of every run in world->round, given what was observed before it.
   * Numerical fallbacks are added to fallbacks[B]. Returns STATUS_INPUT with one sentence if the user's own
   * code fails. If it `weighs`, and probability is not NULL, does the work of policy_weigh. */
  Status (*choose)(Policy *self, const World *world, const History *history, double *probability, int *arm,
                   int64_t *fallbacks);
  bool weighs;
  /* OPTIONAL. Called before the first policy_weigh after the last observation, if created to settle: from
   * then on its probabilities depend on the arms alone, so that what is costly needs to be done only once. */
  void (*settle)(Policy *self, const World *world, const History *history, int64_t *fallbacks);
  /* OPTIONAL. Called when the last observation of `history` is new. */
  void (*observe)(Policy *self, const History *history, int64_t *fallbacks);
  /* Reads the observations of a history one by one, so that each needs its own row. */
  bool by_observation;
  /* OPTIONAL. For policies that sample: makes M draws for each run, theta[d, B M], given what was observed; a
   * study of posteriors calls it instead of `choose`. */
  Status (*draw)(Policy *self, const History *history, double *theta);
  /* OPTIONAL. Checks that what the policy needs outside of this program is available: returns STATUS_INPUT
   * with one sentence if it is not, STATUS_STOPPED if the tick stops the wait for it. */
  Status (*ready)(const Config *options, Tick tick);
  /* OPTIONAL. Releases what is not in self->memory; the state may be NULL or half-built. */
  void (*destroy)(Policy *self);
};

struct Policy {
  Arena *memory; /* the creator's; holds the state and all of its arrays */
  PolicyMethod method;
  const PolicyOps *ops; /* those of all sampling policies are the same */
  PolicySetup setup;
  double elsewhere; /* CPU seconds that other processes spent on its behalf */
  /* The draws that the last arms were chosen by, theta[d, B] of this sampler; NULL if it was not one draw for
   * each run of the history. */
  const Sampler *sampler;
  const double *theta;
  void *state;
};

/* Finds a member of the registry, which has all samplers and then the policies that do not sample; returns
 * false past the end. */
bool policy_method(int index, PolicyMethod *out);
bool policy_find(const char *name, PolicyMethod *out);
/* Returns the member of this name, which there must be. */
PolicyMethod policy_named(const char *name);
const char *policy_name(int index); /* NULL past the end */
/* Returns the options of a policy in a study: those of every sampling policy (`prior`, `components`,
 * `temper`) and its own. The array is never freed. For one thread at a time. */
const ConfigKey *policy_keys(const char *name);
/* Returns the options of every sampling policy, without `temper`, which belongs to the sampler. */
const ConfigKey *policy_shared_keys(void);

/* Returns STATUS_INPUT with one sentence if the policy cannot act in this problem. */
Status policy_check(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns the likelihood that the policy assumes: that of the problem or, with `model: network`, one whose
 * mean is a network with input phi. */
Likelihood policy_likelihood(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns the option `discount`, by which the evidence is multiplied in every round; 1 if there is no such
 * option. */
double policy_discount(const Config *options);
/* Creates the history that a policy with this setup, which has a likelihood, reads: of the B runs, with one
 * row per arm if the arms never change and the policy can use that, or one that forgets; with `posterior:
 * per_arm`, of B K runs. */
Status policy_history(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, History *out);
/* Returns the setup of the sampler behind a policy, for one draw per round. */
SamplerSetup policy_sampler_setup(const PolicySetup *setup);
/* Returns STATUS_INPUT with one sentence if something outside of this program that the policy needs is
 * missing, STATUS_STOPPED if the tick stops the wait for it. Called once, before anything runs. */
static inline Status policy_ready(const PolicyMethod *method, const Config *options, Tick tick) {
  return method->ops && method->ops->ready ? method->ops->ready(options, tick) : STATUS_OK;
}
/* Creates the policy. Returns STATUS_INPUT with one sentence if the policy does not fit the problem, or its
 * sampler the prior or the likelihood. The caller must call policy_destroy, even after an error. */
Status policy_create(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, Policy *out);
/* Creates the history with room for all rounds of the problem, and the policy; errors as above. */
Status policy_begin(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, History *history,
                    Policy *out);
static inline void policy_destroy(Policy *policy) {
  if (policy->ops && policy->ops->destroy) policy->ops->destroy(policy);
}
static inline Status policy_choose(Policy *policy, const World *world, const History *history, int *arm,
                                   int64_t *fallbacks) {
  return policy->ops->choose(policy, world, history, NULL, arm, fallbacks);
}
/* Computes probability[B, K], with which each arm is taken in world->round, and picks arm[B] with exactly
 * these probabilities. For policies that sample, these arms differ from those that policy_choose takes. */
static inline Status policy_weigh(Policy *policy, const World *world, const History *history,
                                  double *probability, int *arm, int64_t *fallbacks) {
  return policy->ops->choose(policy, world, history, probability, arm, fallbacks);
}
/* Tells the policy that `history` will not change any more. */
static inline void policy_settle(Policy *policy, const World *world, const History *history,
                                 int64_t *fallbacks) {
  if (policy->ops->settle) policy->ops->settle(policy, world, history, fallbacks);
}
/* Returns STATUS_INPUT with one sentence if the policy does not support policy_weigh. */
Status policy_check_weigh(const PolicyMethod *method, const Config *options);
/* Notifies the policy of the last observation of `history`. Must be called for every observation, in
 * order. */
static inline void policy_observe(Policy *policy, const History *history, int64_t *fallbacks) {
  if (policy->ops->observe) policy->ops->observe(policy, history, fallbacks);
}
