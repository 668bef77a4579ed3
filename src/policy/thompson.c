/* Policies that sample: any sampler forms a belief, and a rule turns it into an arm. With the rule `thompson`
 * this is Algorithm 3 of the DiffTS paper: draw theta from the posterior and take the best arm. */
#include "model/network/network_kernel.h"
#include "policy/policies.h"
#include "rule/rule.h"

/* ---- the rule for a network */

/* Runs whose weights and features are gathered together: the number of values in a cache line. */
enum { TOGETHER = VECTOR_LANES };

Status policy_network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out) {
  const size_t d = (size_t)shape->width[0];
  *out = (NetworkArms){.shape = *shape, .lanes = (arms + NETWORK_GRAIN - 1) / NETWORK_GRAIN * NETWORK_GRAIN};
  ALLOCATE(memory, out->theta, TOGETHER * network_parameters(shape));
  ALLOCATE(memory, out->features, TOGETHER * d * (size_t)out->lanes);
  ALLOCATE(memory, out->score, out->lanes);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  return STATUS_OK;
}

/* Copies row[runs] of runs first .. first + count - 1 to to[count], whose entries are `apart` from each
 * other. */
static inline void policy_network_copy_runs(const double *row, size_t first, size_t count, size_t apart,
                                            float *to) {
  for (size_t r = 0; r < count; r++) to[r * apart] = (float)row[first + r];
}

void policy_network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm) {
  const size_t d = (size_t)world->problem->d, runs = (size_t)world->runs, lanes = (size_t)arms->lanes;
  const size_t count = (size_t)world->problem->arms, parameters = network_parameters(&arms->shape);
  for (size_t first = 0; first < runs; first += TOGETHER) {
    const size_t together = runs - first < TOGETHER ? runs - first : TOGETHER;
    for (size_t i = 0; i < parameters; i++)
      policy_network_copy_runs(theta + i * runs, first, together, parameters, arms->theta + i);
    for (size_t k = 0; k < count; k++)
      for (size_t i = 0; i < d; i++)
        policy_network_copy_runs(world->features + (k * d + i) * runs, first, together, d * lanes,
                                 arms->features + i * lanes + k);
    for (size_t r = 0; r < together; r++) {
      int *best = &arm[first + r];
      network_forward(&arms->shape, arms->theta + r * parameters, arms->lanes, arms->features + r * d * lanes,
                      arms->score, arms->workspace);
      *best = 0;
      for (int k = 1; k < world->problem->arms; k++)
        if (arms->score[k] > arms->score[*best]) *best = k;
    }
  }
}

/* ---- the policy */

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
  rule_pick(&state->rule, world->round, world->runs, arms, false, probability, arm);
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
