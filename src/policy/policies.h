/* Internal to src/policy: the registry's list, one line for each policy that does not sample, the descriptors
 * of the policies that do, and their rule for a network. `name` is the name in study files; policy_NAME is
 * the descriptor, defined in the file that the comment names. */
#pragma once

#include "policy/policy.h"

/* Any sampler with any rule (sampling.c); the sampler gives name and options. */
extern const PolicyOps policy_sampling;
/* Returns whether each arm has its own posterior; `world_per_arm`: each arm of the world has its own theta*.
 */
bool policy_is_per_arm(const PolicyMethod *method, const Config *options, bool world_per_arm);

/* An option of the policies whose belief follows from the history alone. */
#define POLICY_DISCOUNT_KEY                                                                                  \
  {                                                                                                          \
    REAL("discount", 0, 1, "1",                                                                              \
         "factor on the evidence in every round of a bandit, which moves the posterior back towards the "    \
         "prior: for worlds that change (problem.drift)")                                                    \
  }

#define POLICY_LIST(ENTRY)                                                                                   \
  ENTRY(linucb) /* ucb.c */                                                                                  \
  ENTRY(glm_ucb) /* ucb.c */                                                                                 \
  ENTRY(egreedy) /* egreedy.c */                                                                             \
  ENTRY(random) /* baselines.c */                                                                            \
  ENTRY(oracle) /* baselines.c */                                                                            \
  ENTRY(target) /* target.c */                                                                               \
  ENTRY(python) /* python.c */

#define POLICY_DECLARE(name) extern const PolicyOps policy_##name;
POLICY_LIST(POLICY_DECLARE)
#undef POLICY_DECLARE

/* The Thompson rule for a mean reward that is a network (sampling.c): the arm whose features give the largest
 * output. */
typedef struct {
  NetworkShape shape;
  int lanes; /* K rounded up to whole NETWORK_GRAINs */
  float *theta, *features; /* [p] and [d, lanes], of several runs one after the other */
  float *score, *workspace; /* [lanes], network_workspace: of one run */
  double *index; /* [K], the scores */
} NetworkArms;

Status policy_network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out);
/* Finds the best arm of each run, arm[B], one at random on ties (rule/ties.h); theta[p, B]. */
void policy_network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm);
