/* A posterior for each arm (VITS paper, Section 5): the disjoint model, in which each arm has its own
 * theta_k* and learns only from its own rewards. In every round the rule gives all K arms an index, such as
 * phi_k' theta_k of a draw, and the arm with the highest one is taken.
 *
 * Arm k of run n is run n K + k of the sampler and of the history. A sampler that carries a state from round
 * to round has a twin of B runs: the states of the arms that were just taken are copied to it, updated with
 * their observations, and copied back, so that a round costs B updates instead of B K. The streams of the
 * twin are those of the bandit's runs. A restless sampler (Langevin chains) moves all B K states in every
 * round. */
#include "policy/policy.h"
#include "rule/rule.h"
#include "sampler/cost.h"

typedef struct {
  Rule rule; /* of B K runs */
  /* For a sampler that carries a state: */
  Sampler moving; /* of B runs */
  History taken; /* the observations of the arms that were just taken, B runs */
  double *context; /* [d, B K], the context of each arm's run */
  double *index; /* [B K] */
  int *only; /* [B K], the only arm of each */
  int64_t *fallbacks; /* [B K] */
} PerArm;

static Status per_arm_policy_create(Policy *self) {
  Arena *memory = self->memory;
  const PolicySetup *setup = &self->setup;
  const int64_t arms = setup->problem->arms, lanes = arms * setup->runs;
  PerArm *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  if (lanes > INT32_MAX || ((int64_t)setup->first_run + setup->runs) * arms > UINT32_MAX)
    return status_set(STATUS_INPUT,
                      "posterior: per_arm needs a random stream for each arm of each run, and %lld arms in "
                      "run %lld are too many",
                      (long long)arms, (long long)setup->first_run + setup->runs);
  ALLOCATE(memory, state->context, setup->problem->d * lanes);
  ALLOCATE_ARRAYS(memory, lanes, state->index, state->only, state->fallbacks);
  SamplerSetup sampler = policy_sampler_setup(setup);
  sampler.runs = (int)lanes;
  sampler.first_run *= (uint32_t)arms;
  TRY(rule_create(memory, self->method.sampler, &sampler, setup->problem->rounds, setup->weighs,
                  &state->rule));
  if (!self->method.sampler->carry) return STATUS_OK;
  const SamplerSetup few = policy_sampler_setup(setup);
  TRY(sampler_create(memory, self->method.sampler, &few, &state->moving));
  TRY(history_create(memory, setup->problem->d, few.runs, few.likelihood, &state->taken));
  return history_reserve(&state->taken, setup->problem->rounds);
}

/* Adds the fallbacks of all arms to those of their runs and clears them. */
static void policy_collect_arm_fallbacks(Policy *self, int64_t *fallbacks) {
  PerArm *state = self->state;
  const int arms = self->setup.problem->arms, lanes = self->setup.runs * arms;
  for (int n = 0; n < lanes; n++) {
    fallbacks[n / arms] += state->fallbacks[n];
    state->fallbacks[n] = 0;
  }
}

/* Copies the features of arm k, or the context that all arms share, to the lanes of the arm. */
static void per_arm_policy_copy_context(PerArm *state, const World *world, int k) {
  const int d = world->problem->d, runs = world->runs, arms = world->problem->arms;
  const double *from = world->features + (world->problem->per_arm ? 0 : (size_t)k * (size_t)(d * runs));
  for (int i = 0; i < d; i++)
    for (int b = 0; b < runs; b++)
      state->context[((size_t)i * (size_t)runs + (size_t)b) * (size_t)arms + (size_t)k] = from[i * runs + b];
}

static Status per_arm_policy_choose(Policy *self, const World *world, const History *history, int *arm,
                                    int64_t *fallbacks) {
  PerArm *state = self->state;
  const int arms = self->setup.problem->arms;
  for (int k = 0; k < arms; k++) per_arm_policy_copy_context(state, world, k);
  rule_choose(&state->rule, history, world->round, (int)world->round - 1, 1, state->context, state->only,
              state->index, state->fallbacks);
  policy_collect_arm_fallbacks(self, fallbacks);
  for (int b = 0; b < self->setup.runs; b++) {
    const double *index = state->index + (size_t)b * (size_t)arms;
    arm[b] = 0;
    for (int k = 1; k < arms; k++)
      if (index[k] > index[arm[b]]) arm[b] = k;
  }
  rule_explore(&state->rule, world->round, self->setup.runs, arms, true, arm);
  return STATUS_OK;
}

static Status per_arm_policy_weigh(Policy *self, const World *world, const History *history,
                                   double *probability, int *arm, int64_t *fallbacks) {
  PerArm *state = self->state;
  const int arms = self->setup.problem->arms;
  for (int k = 0; k < arms; k++) per_arm_policy_copy_context(state, world, k);
  rule_probabilities(&state->rule, history, world->round, (int)world->round - 1, arms, true, state->context,
                     probability, state->fallbacks);
  policy_collect_arm_fallbacks(self, fallbacks);
  rule_pick(&state->rule, world->round, self->setup.runs, arms, true, probability, arm);
  return STATUS_OK;
}

static void per_arm_policy_observe(Policy *self, const History *history, int64_t *fallbacks) {
  PerArm *state = self->state;
  const SamplerOps *ops = self->method.sampler;
  const int *latest = history_latest_runs(history);
  if (ops->restless) {
    sampler_observe(&state->rule.sampler, history, state->fallbacks);
    policy_collect_arm_fallbacks(self, fallbacks);
  }
  if (!ops->carry) return;
  for (int b = 0; b < self->setup.runs; b++)
    sampler_carry(&state->rule.sampler, latest[b], &state->moving, b);
  history_gather(history, latest, &state->taken);
  sampler_observe(&state->moving, &state->taken, fallbacks);
  for (int b = 0; b < self->setup.runs; b++)
    sampler_carry(&state->moving, b, &state->rule.sampler, latest[b]);
}

/* Returns the cost of K indices, and of one observation for the arm that was taken, or of K if all of them
 * move. */
static double per_arm_policy_cost(const PolicyMethod *method, const PolicyWork *work) {
  const double arms = work->arms;
  SamplerWork drawn = work->sampler;
  drawn.runs *= arms, drawn.rows /= arms, drawn.rounds /= arms;
  SamplerWork observed = drawn;
  observed.drawn = 0;
  const double observe = cost_round(method->sampler, &observed),
               choose = rule_cost(method->sampler, &drawn, 1) - observe;
  return (method->sampler->restless ? arms : 1) * observe + arms * choose;
}

const PolicyOps policy_per_arm = {.create = per_arm_policy_create,
                                  .choose = per_arm_policy_choose,
                                  .weigh = per_arm_policy_weigh,
                                  .cost = per_arm_policy_cost,
                                  .observe = per_arm_policy_observe};
