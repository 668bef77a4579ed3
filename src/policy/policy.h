/* Policies: choose an arm. A policy either samples (Thompson sampling with any posterior sampler) or does not
 * (LinUCB, epsilon-greedy, random, oracle). Every sampler is a policy of the same name. */
#pragma once

#include "core/tick.h"
#include "problem/problem.h"
#include "sampler/sampler.h"

typedef struct Policy Policy;
typedef struct PolicyMethod PolicyMethod;

/* What a policy is made for: one block of runs. */
typedef struct {
  const Prior *prior; /* not owned; NULL for policies that do not sample */
  const Likelihood *likelihood; /* policy_likelihood, not owned; NULL: the problem's */
  const Problem *problem;
  const Config *options;
  uint64_t seed;
  uint32_t first_run;
  int runs; /* B */
  int draws, observations; /* in a study of posteriors: M, and those at its end; 0 in a bandit */
  Tick tick; /* while the policy waits for another process */
  bool weighs; /* policy_weigh will be asked for */
} PolicySetup;

/* What the cost of a policy depends on: the same for its sampler; of a policy without, draws and prior say
 * nothing. */
typedef struct {
  SamplerWork sampler;
  double arms; /* K */
  bool apart; /* each arm of the world has a theta* of its own */
  bool resampled; /* the arms, in each round */
  bool rows_are_arms; /* of a likelihood that is not conjugate (policy_history) */
  bool learns; /* the prior is learned while the study goes on */
} PolicyWork;

typedef struct {
  const char *name, *summary, *reference;
  bool conjugate_only; /* rewards must be conjugate (likelihood.h) */
  bool one_theta; /* learns one theta for all arms */
  const ConfigKey *keys; /* own options, ends with a NULL name; may be NULL */
  /* REQUIRED. The only place that allocates: in self->memory. */
  Status (*create)(Policy *self);
  /* REQUIRED. The arm of every run in world->round, given what was observed before it: arm[B]. Numerical
   * fallbacks are added to fallbacks[B]. STATUS_INPUT with one sentence where code of the user's own
   * fails. */
  Status (*choose)(Policy *self, const World *world, const History *history, int *arm, int64_t *fallbacks);
  /* OPTIONAL. policy_weigh, unless `choose` takes its arm for sure. */
  Status (*weigh)(Policy *self, const World *world, const History *history, double *probability, int *arm,
                  int64_t *fallbacks);
  bool sure;
  /* REQUIRED. Floating-point operations of one round of one run, as those of a sampler (sampler.h). */
  double (*cost)(const PolicyMethod *method, const PolicyWork *work);
  /* OPTIONAL. The last observation of `history` is new. */
  void (*observe)(Policy *self, const History *history, int64_t *fallbacks);
  /* Reads the observations of a history one by one, so that each keeps a row of its own. */
  bool by_observation;
  /* OPTIONAL. For policies that sample: M draws for each run, theta[d, B M], given what was observed; a study
   * of posteriors calls it in place of `choose`. */
  Status (*draw)(Policy *self, const History *history, double *theta);
  /* OPTIONAL. What the policy needs outside of this program is there: STATUS_INPUT with one sentence if it is
   * not, STATUS_STOPPED if the tick does not want to wait for it. */
  Status (*ready)(const Config *options, Tick tick);
  /* OPTIONAL. End what is not in self->memory; the state may be NULL or half-built. */
  void (*destroy)(Policy *self);
} PolicyOps;

/* A registered policy: one of `sampler` and `ops` is set. */
struct PolicyMethod {
  const char *name, *summary, *reference, *default_prior; /* default_prior NULL: needs none */
  const SamplerOps *sampler;
  const PolicyOps *ops;
};

struct Policy {
  Arena *memory; /* of whoever created it: where the state and all of its arrays are */
  PolicyMethod method;
  const PolicyOps *ops; /* what a sampling policy is run by depends on its options */
  PolicySetup setup;
  double elsewhere; /* CPU seconds that other processes spent for it */
  /* What the last arms were chosen by, theta[d, B] of this sampler; NULL where it was not one draw for each
   * run of the history. */
  const Sampler *sampler;
  const double *theta;
  void *state;
};

/* Returns a member of the registry: all samplers, then the policies that do not sample; false past the
 * end. */
bool policy_method(int index, PolicyMethod *out);
bool policy_find(const char *name, PolicyMethod *out);
const char *policy_name(int index); /* NULL ends */
/* Returns the options of a policy in a study: those of every sampling policy (`prior`, `components`,
 * `temper`) and its own. Lives for ever. */
const ConfigKey *policy_keys(const char *name);
/* Returns those of every sampling policy, without `temper`, which belongs to its sampler. */
const ConfigKey *policy_shared_keys(void);

/* Returns STATUS_INPUT with one sentence when the policy cannot act in this problem. */
Status policy_check(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns how the policy believes that rewards depend on theta: as in the problem, or with `model:
 * network` by a network that phi goes into. */
Likelihood policy_likelihood(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns the option `discount`: what the evidence is multiplied by in every round; 1 without one. */
double policy_discount(const Config *options);
/* Creates the history that a policy with this prior and these options reads, with that likelihood: of the B
 * runs, with arms for rows where they stay what they are and the policy can use that, or one that forgets;
 * with `posterior: per_arm` of B K. */
Status policy_history(Arena *memory, const PolicyMethod *method, const Prior *prior, const Config *options,
                      const Problem *problem, const Likelihood *likelihood, int runs, History *out);
/* Returns what follows from policy, options and problem, for a draw in every round; runs, history and
 * prior are for the caller. The options must outlive it. */
PolicyWork policy_work(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns the floating-point operations of one round of one run. */
double policy_cost(const PolicyMethod *method, const PolicyWork *work);
/* Returns STATUS_INPUT with one sentence when something outside of this program is missing that the policy
 * needs: asked once, before anything runs. STATUS_STOPPED if the tick does not want to wait for it. */
Status policy_ready(const PolicyMethod *method, const Config *options, Tick tick);
/* Returns STATUS_INPUT with one sentence when the policy does not fit the problem, or its sampler the
 * prior or the likelihood. The caller ends with policy_destroy, also after an error. */
Status policy_create(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, Policy *out);
void policy_destroy(Policy *policy);
Status policy_choose(Policy *policy, const World *world, const History *history, int *arm,
                     int64_t *fallbacks);
/* Computes the probability[B, K] by which each arm is taken in world->round, and picks arm[B] by exactly
 * these unless that is NULL. Which arms these are differs from what policy_choose takes, for policies that
 * sample. */
Status policy_weigh(Policy *policy, const World *world, const History *history, double *probability, int *arm,
                    int64_t *fallbacks);
/* Returns STATUS_INPUT with one sentence when the policy cannot do so. */
Status policy_check_weigh(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Returns the floating-point operations of policy_weigh and the observation of one round of one run. */
double policy_weigh_cost(const PolicyMethod *method, const PolicyWork *work);
/* Notifies the policy of the last observation of `history`: of every one, in order. */
void policy_observe(Policy *policy, const History *history, int64_t *fallbacks);
