/* Explore, then commit (Lattimore and Szepesvari 2020, Chapter 6): the first rounds play the arms in turn,
 * all others play the best arm by the regularised estimate of ridge.h. */
#include "core/arena.h"
#include "io/config/config_rows.h"
#include "policy/policy.h"
#include "policy/ridge.h"
#include "problem/world.h"

static Status explore_first_create(Policy *self) {
  Ridge *state;
  ALLOCATE(self->memory, state, 1);
  self->state = state;
  return ridge_create(self, state);
}

static Status explore_first_choose(Policy *self, const World *world, const History *history,
                                   double *probability, int *arm, int64_t *fallbacks) {
  Ridge *ridge = self->state;
  (void)probability;
  if (world->round > (uint32_t)config_int(self->setup.options, "explore")) {
    ridge_update(ridge, history, fallbacks);
    world_greedy(world, ridge->theta, NULL, arm);
    return STATUS_OK;
  }
  for (int b = 0; b < world->runs; b++) arm[b] = (int)(world->round - 1) % world->problem->arms;
  return STATUS_OK;
}

static const ConfigKey keys[] = {{.name = "explore",
                                  .type = KEY_INT,
                                  .minimum = 0,
                                  .maximum = 10000000,
                                  .fallback = "10",
                                  .help = "rounds in which the arms are taken in turn"},
                                 {.name = NULL}};

const PolicyOps policy_explore_first = {.name = "explore_first",
                                        .summary = "takes the arms in turn, then the best by the estimate",
                                        .reference = "Lattimore and Szepesvari (2020), Chapter 6",
                                        .one_theta = true,
                                        .keys = keys,
                                        .create = explore_first_create,
                                        .choose = explore_first_choose};
