/* Two baselines: `oracle` knows theta* and has no regret; `random` takes a random arm. */
#include "policy/policy.h"
#include "rule/ties.h"

static Status oracle_policy_choose(Policy *self, const World *world, const History *history,
                                   double *probability, int *arm, int64_t *fallbacks) {
  (void)self, (void)history, (void)fallbacks;
  const int arms = world->problem->arms;
  const size_t runs = (size_t)world->runs;
  const RngLanes ties = world_streams(world, RNG_TIE);
  for (size_t b = 0; b < runs; b++) {
    arm[b] = ties_best_arm(&ties, (uint32_t)b, arms, world->mean + b, runs);
    if (probability) ties_share(arms, world->mean + b, runs, probability + b * (size_t)arms);
  }
  return STATUS_OK;
}

static Status random_policy_choose(Policy *self, const World *world, const History *history,
                                   double *probability, int *arm, int64_t *fallbacks) {
  (void)history, (void)fallbacks;
  const ArmSet arms = world_arms(world);
  const RngKey key = rng_key(self->setup.seed, RNG_AGENT);
  for (int b = 0; b < world->runs; b++) {
    Rng rng = {.key = key, .run = self->setup.first_run + (uint32_t)b, .round = world->round};
    const int own = arms_number(arms, b);
    arm[b] = arms_at(arms, b, (int)rng_index(&rng, (uint64_t)own));
    if (!probability) continue;
    for (int k = 0; k < arms.count; k++)
      probability[b * arms.count + k] = arms_has(arms, b, k) ? 1.0 / own : 0;
  }
  return STATUS_OK;
}

const PolicyOps policy_oracle = {.name = "oracle",
                                 .summary = "chooses the best arm; zero regret by construction",
                                 .reference = "baseline",
                                 .choose = oracle_policy_choose,
                                 .weighs = true};
const PolicyOps policy_random = {.name = "random",
                                 .summary = "chooses an arm uniformly at random",
                                 .reference = "baseline",
                                 .choose = random_policy_choose,
                                 .weighs = true};
