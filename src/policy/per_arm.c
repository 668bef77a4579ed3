/* Thompson sampling with a posterior for each arm (VITS paper, Section 5): the disjoint model, in which an
 * arm has a theta_k* of its own and learns from its own rewards alone. Every round draws all K of them and
 * takes the arm with the highest phi_k' theta_k.
 *
 * Arm k of run n is run n K + k of the sampler and of the history. A sampler that carries a state from round
 * to round has a twin of B runs: the arms that were just taken go over to it with their observations, are
 * moved on, and come back, so that a round costs B updates and not B K. Its streams are those of the bandit's
 * runs. A restless sampler (Langevin chains) moves all B K of them in every round. */
#include "core/arena.h"
#include "policy/policies.h"
#include "sampler/cost.h"

#include <string.h>

typedef struct {
  Sampler sampler; /* of B K runs */
  /* Of a sampler that carries a state: */
  Sampler moving; /* of B runs */
  History taken; /* the observations of the arms that were just taken, B runs */
  RngKey key;
  double *theta; /* [d, B K] */
  int64_t *fallbacks; /* [B K] */
} PerArm;

static Status create_moving(Policy *self, PerArm *state, const SamplerSetup *setup) {
  const Problem *problem = self->setup.problem;
  SamplerSetup few = *setup;
  few.runs = self->setup.runs;
  few.first_run = self->setup.first_run;
  TRY(sampler_create(self->memory, self->method.sampler, &few, &state->moving));
  TRY(history_create(self->memory, problem->d, few.runs, setup->likelihood, &state->taken));
  return history_reserve(&state->taken, problem->rounds);
}

static Status create(Policy *self) {
  Arena *memory = self->memory;
  const PolicySetup *setup = &self->setup;
  const int64_t arms = setup->problem->arms, lanes = arms * setup->runs;
  PerArm *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  if (lanes > INT32_MAX || ((int64_t)setup->first_run + setup->runs) * arms > UINT32_MAX)
    return status_set(STATUS_INPUT,
                      "posterior: per_arm has a random stream for each arm of each run, and %lld arms in run "
                      "%lld are too many",
                      (long long)arms, (long long)setup->first_run + setup->runs);
  state->key = rng_key(setup->seed, RNG_AGENT);
  ALLOCATE(memory, state->theta, setup->problem->d * lanes);
  ALLOCATE(memory, state->fallbacks, lanes);
  SamplerSetup sampler = {.prior = setup->prior,
                          .likelihood = setup->likelihood,
                          .runs = (int)lanes,
                          .draws = 1,
                          .seed = setup->seed,
                          .first_run = setup->first_run * (uint32_t)arms,
                          .options = setup->options};
  TRY(sampler_create(memory, self->method.sampler, &sampler, &state->sampler));
  return self->method.sampler->carry ? create_moving(self, state, &sampler) : STATUS_OK;
}

/* The fallbacks of all arms go to their runs. */
static void collect(Policy *self, int64_t *fallbacks) {
  PerArm *state = self->state;
  const int arms = self->setup.problem->arms, lanes = self->setup.runs * arms;
  for (int n = 0; n < lanes; n++) {
    fallbacks[n / arms] += state->fallbacks[n];
    state->fallbacks[n] = 0;
  }
}

static Status choose(Policy *self, const World *world, const History *history, int *arm, int64_t *fallbacks) {
  PerArm *state = self->state;
  const int arms = self->setup.problem->arms, lanes = self->setup.runs * arms;
  RngLanes rng = {.key = state->key,
                  .run = state->sampler.setup.first_run,
                  .draws = 1,
                  .round = world->round,
                  .lanes = (uint32_t)lanes};
  sampler_sample(&state->sampler, history, rng, 1, state->theta, state->fallbacks);
  collect(self, fallbacks);
  world_greedy_per_arm(world, state->theta, arm);
  return STATUS_OK;
}

static void observe(Policy *self, const History *history, int64_t *fallbacks) {
  PerArm *state = self->state;
  const SamplerOps *ops = self->method.sampler;
  const int *latest = history_latest(history);
  if (ops->restless) {
    sampler_observe(&state->sampler, history, state->fallbacks);
    collect(self, fallbacks);
  }
  if (!ops->carry) return;
  for (int b = 0; b < self->setup.runs; b++) ops->carry(&state->sampler, latest[b], &state->moving, b);
  history_gather(history, latest, &state->taken);
  sampler_observe(&state->moving, &state->taken, fallbacks);
  for (int b = 0; b < self->setup.runs; b++) ops->carry(&state->moving, b, &state->sampler, latest[b]);
}

/* K draws, and one observation of the arms that were taken, unless all of them move. */
static double cost(const PolicyMethod *method, const PolicyWork *work) {
  const double arms = work->arms;
  SamplerWork drawn = work->sampler;
  drawn.runs *= arms, drawn.rows /= arms, drawn.rounds /= arms;
  SamplerWork observed = drawn;
  observed.drawn = 0;
  const double observe = cost_round(method->sampler, &observed),
               draw = cost_round(method->sampler, &drawn) - observe;
  return (method->sampler->restless ? arms : 1) * observe + arms * (draw + 2 * drawn.d);
}

const PolicyOps policy_per_arm = {.create = create, .choose = choose, .cost = cost, .observe = observe};
