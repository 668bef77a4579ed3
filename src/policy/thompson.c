/* Policies that sample: any sampler forms a belief, and a rule turns it into an arm. With the rule `thompson`
 * this is Algorithm 3 of the DiffTS paper: draw theta from the posterior and take the best arm. */
#include "policy/policy.h"
#include "policy/policy_network_arms.h"
#include "rule/rule.h"

typedef struct {
  Rule rule;
  NetworkArms arms; /* for a network */
} Thompson;

static Status thompson_policy_create(Policy *self) {
  Arena *memory = self->memory;
  const PolicySetup *setup = &self->setup;
  Thompson *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  if (likelihood_has_network(setup->likelihood))
    TRY(policy_network_arms_create(memory, &setup->likelihood->network, setup->problem->arms, &state->arms));
  const SamplerSetup sampler = policy_sampler_setup(setup);
  TRY(rule_create(memory, self->method.sampler, &sampler, setup->problem->rounds, setup->weighs,
                  &state->rule));
  if (state->rule.ops->needs & RULE_NEEDS_DRAW)
    self->sampler = &state->rule.sampler, self->theta = state->rule.theta;
  return STATUS_OK;
}

static Status thompson_policy_choose(Policy *self, const World *world, const History *history, int *arm,
                                     int64_t *fallbacks) {
  Thompson *state = self->state;
  if (likelihood_has_network(self->setup.likelihood)) {
    rule_draw(&state->rule, history, world->round, state->rule.theta, fallbacks);
    policy_network_arms_best(&state->arms, world, state->rule.theta, arm);
  } else {
    rule_choose(&state->rule, history, world->round, (int)world->round - 1, world->problem->arms,
                world->features, arm, NULL, fallbacks);
    rule_explore(&state->rule, world->round, world->runs, world->problem->arms, false, arm);
  }
  return STATUS_OK;
}

static Status thompson_policy_weigh(Policy *self, const World *world, const History *history,
                                    double *probability, int *arm, int64_t *fallbacks) {
  Thompson *state = self->state;
  const int arms = world->problem->arms;
  rule_probabilities(&state->rule, history, world->round, (int)world->round - 1, arms, false, world->features,
                     probability, fallbacks);
  if (arm) rule_pick(&state->rule, world->round, world->runs, arms, false, probability, arm);
  return STATUS_OK;
}

static void thompson_policy_observe(Policy *self, const History *history, int64_t *fallbacks) {
  Thompson *state = self->state;
  sampler_observe(&state->rule.sampler, history, fallbacks);
}

/* Returns the cost of the sampler and of the rule; for a network also the scores of all arms in float32, as
 * in potential.c. */
static double thompson_policy_cost(const PolicyMethod *method, const PolicyWork *work) {
  const double scores = work->arms * 0.3 * work->sampler.weights;
  return rule_cost(method->sampler, &work->sampler, work->arms) + scores;
}

const PolicyOps policy_thompson = {.create = thompson_policy_create,
                                   .choose = thompson_policy_choose,
                                   .weigh = thompson_policy_weigh,
                                   .cost = thompson_policy_cost,
                                   .observe = thompson_policy_observe};
