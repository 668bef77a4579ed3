/* The registry's list: one row for each metric of bandits, in addition to regret, which every bandit study
 * has. `name` is the curve in the results; probe_NAME is its descriptor, defined in a file of probe/. ASKED:
 * measured if the key `metrics` has its name. WORLD: the same, and all policies share it, because it belongs
 * to the world. EVENT: what an event log keeps of a round; these come last, in the order in which
 * reduce_events.c reads them. */
#pragma once

#include "study/simulation.h"

#define PROBE_LIST(ASKED, WORLD, EVENT)                                                                      \
  WORLD(regret_floor, "lower bound on the mean cumulative expected regret of any policy")                    \
  ASKED(optimal_arm_entropy, "entropy of the best arm under posterior draws, in nats")                       \
  ASKED(prior_p_value, "p-value of the history under the prior, approximate because arms depend on rewards") \
  EVENT(event_arm, "arm of an event")                                                                        \
  EVENT(event_reward, "reward of an event")                                                                  \
  EVENT(event_propensity, "probability with which the arm was picked")

#define PROBE_DECLARE(name, text) extern const ProbeOps probe_##name;
PROBE_LIST(PROBE_DECLARE, PROBE_DECLARE, PROBE_DECLARE)
#undef PROBE_DECLARE

extern const ProbeOps probe_regret;
/* Measures the columns draws_offset and draws_spread of a run (columns.h). */
extern const ProbeOps probe_draws;

/* Returns whether the policy has a single posterior of theta*, so that each draw from it has a best arm. */
bool probe_best_arm_is_known(const Simulation *simulation);
