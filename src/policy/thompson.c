/* Thompson sampling (DiffTS paper, Algorithm 3): draw theta from the posterior, take the best arm. */
#include "core/arena.h"
#include "policy/network_arms.h"
#include "policy/policies.h"
#include "sampler/cost.h"

#include <stdlib.h>

typedef struct {
  Sampler sampler;
  RngKey key;
  double *theta; /* [d, B]; of a network, [p, B] */
  NetworkArms arms; /* of a network */
} Thompson;

static Status create(Policy *self) {
  Arena *memory = self->memory;
  const PolicySetup *setup = &self->setup;
  Thompson *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  state->key = rng_key(setup->seed, RNG_AGENT);
  ALLOCATE(memory, state->theta, (size_t)setup->prior->d * (size_t)setup->runs);
  if (likelihood_has_network(setup->likelihood))
    TRY(network_arms_create(memory, &setup->likelihood->network, setup->problem->arms, &state->arms));
  SamplerSetup sampler = {.prior = setup->prior,
                          .likelihood = setup->likelihood,
                          .runs = setup->runs,
                          .draws = 1,
                          .seed = setup->seed,
                          .first_run = setup->first_run,
                          .options = setup->options};
  return sampler_create(memory, self->method.sampler, &sampler, &state->sampler);
}

static Status choose(Policy *self, const World *world, const History *history, int *arm, int64_t *fallbacks) {
  Thompson *state = self->state;
  RngLanes rng = {.key = state->key,
                  .run = self->setup.first_run,
                  .draws = 1,
                  .round = world->round,
                  .lanes = (uint32_t)self->setup.runs};
  sampler_sample(&state->sampler, history, rng, 1, state->theta, fallbacks);
  if (likelihood_has_network(self->setup.likelihood))
    network_arms_best(&state->arms, world, state->theta, arm);
  else
    world_greedy(world, state->theta, arm);
  return STATUS_OK;
}

static void observe(Policy *self, const History *history, int64_t *fallbacks) {
  Thompson *state = self->state;
  sampler_observe(&state->sampler, history, fallbacks);
}

/* The sampler's, and the scores of all arms; of a network in float32, as in potential.c. */
static double cost(const PolicyMethod *method, const PolicyWork *work) {
  const double p = work->sampler.weights, score = p > 0 ? 0.3 * p : 2 * work->sampler.d;
  return cost_round(method->sampler, &work->sampler) + work->arms * score;
}

const PolicyOps policy_thompson = {.create = create, .choose = choose, .cost = cost, .observe = observe};
