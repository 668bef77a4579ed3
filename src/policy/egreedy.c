/* Epsilon-greedy: with probability eps_k a random arm, otherwise the best by the regularised estimate of
 * ridge.h. eps_k = epsilon sqrt(n / k) / 2 in round k of n. */
#include "io/config/config_rows.h"
#include "policy/policies.h"
#include "policy/ridge.h"
#include "problem/world.h"

#include <math.h>

static Status egreedy_policy_create(Policy *self) {
  Ridge *state;
  ALLOCATE(self->memory, state, 1);
  self->state = state;
  return ridge_create(self, state);
}

/* Takes the best arm or, with probability eps_k, a random one. */
static Status egreedy_policy_choose(Policy *self, const World *world, const History *history,
                                    double *probability, int *arm, int64_t *fallbacks) {
  Ridge *ridge = self->state;
  const ArmSet arms = world_arms(world);
  const RngKey key = rng_key(self->setup.seed, RNG_AGENT);
  const double epsilon = config_real(self->setup.options, "epsilon") / 2 *
                         sqrt((double)world->problem->rounds / world->round); /* eps_k */
  const double share = fmin(epsilon, 1);
  ridge_update(ridge, history, fallbacks);
  world_greedy(world, ridge->theta, probability, arm);
  for (int b = 0; b < world->runs; b++) {
    const int own = arms_number(arms, b);
    Rng rng = {.key = key, .run = self->setup.first_run + (uint32_t)b, .round = world->round};
    double uniform;
    rng_uniform(&rng, 1, &uniform);
    if (uniform < epsilon) arm[b] = arms_at(arms, b, (int)rng_index(&rng, (uint64_t)own));
    if (!probability) continue;
    for (int k = 0; k < arms.count; k++) {
      double *p = &probability[b * arms.count + k];
      *p = arms_has(arms, b, k) ? share / own + (1 - share) * *p : 0;
    }
  }
  return STATUS_OK;
}

static const ConfigKey keys[] = {{REAL("epsilon", 0, 1, "0.05", "mean exploration rate over the n rounds")},
                                 POLICY_DISCOUNT_KEY,
                                 {.name = NULL}};

const PolicyOps policy_egreedy = {.name = "egreedy",
                                  .summary =
                                      "epsilon-greedy on the regularised estimate, decaying exploration",
                                  .reference = "DiffTS, Section 6.1 (baseline)",
                                  .one_theta = true,
                                  .keys = keys,
                                  .create = egreedy_policy_create,
                                  .choose = egreedy_policy_choose,
                                  .weighs = true};
