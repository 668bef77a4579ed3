/* Two baselines: `oracle` knows theta* and has no regret; `random` takes any arm. */
#include "policy/policies.h"

static Status baselines_create(Policy *self) {
  (void)self;
  return STATUS_OK;
}

static Status choose_best(Policy *self, const World *world, const History *history, int *arm,
                          int64_t *fallbacks) {
  (void)self, (void)history, (void)fallbacks;
  for (int b = 0; b < world->runs; b++) arm[b] = world->best[b];
  return STATUS_OK;
}

static Status choose_any(Policy *self, const World *world, const History *history, int *arm,
                         int64_t *fallbacks) {
  (void)history, (void)fallbacks;
  RngKey key = rng_key(self->setup.seed, RNG_AGENT);
  for (int b = 0; b < world->runs; b++) {
    Rng rng = {.key = key, .run = self->setup.first_run + (uint32_t)b, .round = world->round};
    arm[b] = (int)rng_index(&rng, (uint64_t)world->problem->arms);
  }
  return STATUS_OK;
}

/* Gives every arm the same probability, by which choose_any takes one. */
static Status weigh_any(Policy *self, const World *world, const History *history, double *probability,
                        int *arm, int64_t *fallbacks) {
  const int arms = world->problem->arms;
  for (int i = 0; i < world->runs * arms; i++) probability[i] = 1.0 / arms;
  return arm ? choose_any(self, world, history, arm, fallbacks) : STATUS_OK;
}

static double cost_best(const PolicyMethod *method, const PolicyWork *work) {
  (void)method, (void)work;
  return 10;
}

/* Returns the cost, with a stream of its own for each run. */
static double cost_any(const PolicyMethod *method, const PolicyWork *work) {
  (void)method, (void)work;
  return 200;
}

const PolicyOps policy_oracle = {.name = "oracle",
                                 .summary = "takes the best arm; zero regret by construction",
                                 .reference = "baseline",
                                 .create = baselines_create,
                                 .choose = choose_best,
                                 .sure = true,
                                 .cost = cost_best};
const PolicyOps policy_random = {.name = "random",
                                 .summary = "takes an arm uniformly at random",
                                 .reference = "baseline",
                                 .create = baselines_create,
                                 .choose = choose_any,
                                 .weigh = weigh_any,
                                 .cost = cost_any};
