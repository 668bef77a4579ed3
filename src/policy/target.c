/* A policy of somebody else, of which only probabilities are known: those that a log of events has as
 * `target`. It learns nothing, and its value is estimated like that of any other. */
#include "policy/policy.h"
#include "problem/problem_logged.h"

static Status target_policy_check(const Problem *problem) {
  if (problem_logged_has_target(problem)) return STATUS_OK;
  return status_set(STATUS_INPUT, "policy target is known by its probabilities, which a log has as column or "
                                  "variable 'target' (problem.family: logged); there is none here");
}

/* Picks the arm that was played with its probability, which may be all that is known; another one stands for
 * all others. */
static Status target_policy_choose(Policy *self, const World *world, const History *history,
                                   double *probability, int *arm, int64_t *fallbacks) {
  (void)history, (void)fallbacks;
  const Problem *problem = world->problem;
  const EventLog *log = problem_logged_events(problem);
  for (int b = 0; b < world->runs; b++) {
    const uint32_t run = self->setup.first_run + (uint32_t)b;
    Rng rng = {.key = rng_key(self->setup.seed, RNG_PICK), .run = run, .round = world->round};
    const int event = problem_logged_event(problem, run, world->round), played = log->arm[event];
    double u;
    rng_uniform(&rng, 1, &u);
    arm[b] = u < logged_target(log, event, played) ? played : (played + 1) % problem->arms;
    for (int k = 0; k < problem->arms && probability; k++)
      probability[b * problem->arms + k] = logged_target(log, event, k);
  }
  return STATUS_OK;
}

const PolicyOps policy_target = {
    .name = "target",
    .summary = "a policy of your own in a replay study, known by its probabilities in the log",
    .reference = "docs/decisions.md",
    .check = target_policy_check,
    .choose = target_policy_choose,
    .weighs = true};
