/* Policies that sample: any sampler forms a belief, and a rule turns it into an arm. With the rule `thompson`
 * this is Algorithm 3 of the DiffTS paper: draw theta from the posterior and take the best arm.
 *
 * With a posterior for each arm (VITS paper, Section 5), the disjoint model, each arm has its own theta_k*
 * and learns only from its own rewards. In every round the rule gives all K arms an index, such as phi_k'
 * theta_k of a draw, and the arm with the highest one is taken. Arm k of run n is run n K + k of the sampler
 * and of the history. A sampler that carries a state from round to round has a twin of B runs: the states of
 * the arms that were just taken are copied to it, updated with their observations, and copied back, so that a
 * round costs B updates instead of B K. The streams of the twin are those of the bandit's runs. A restless
 * sampler (Langevin chains) moves all B K states in every round. */
#include "model/network/network_kernel.h"
#include "policy/policies.h"
#include "rule/rule.h"

/* ---- the rule for a network */

/* Runs whose weights and features are gathered together: the number of values in a cache line. */
enum { TOGETHER = VECTOR_LANES };

Status policy_network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out) {
  const size_t d = (size_t)shape->width[0];
  *out = (NetworkArms){.shape = *shape, .lanes = (arms + NETWORK_GRAIN - 1) / NETWORK_GRAIN * NETWORK_GRAIN};
  ALLOCATE(memory, out->theta, TOGETHER * network_parameters(shape));
  ALLOCATE(memory, out->features, TOGETHER * d * (size_t)out->lanes);
  ALLOCATE(memory, out->score, out->lanes);
  ALLOCATE(memory, out->index, arms);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  return STATUS_OK;
}

/* Copies row[runs] of runs first .. first + count - 1 to to[count], whose entries are `stride` apart. */
static inline void policy_network_copy_runs(const double *row, size_t first, size_t count, size_t stride,
                                            float *to) {
  for (size_t r = 0; r < count; r++) to[r * stride] = (float)row[first + r];
}

void policy_network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm) {
  const size_t d = (size_t)world->problem->d, runs = (size_t)world->runs, lanes = (size_t)arms->lanes;
  const size_t count = (size_t)world->problem->arms, parameters = network_parameters(&arms->shape);
  const RngLanes ties = world_streams(world, RNG_TIE);
  for (size_t first = 0; first < runs; first += TOGETHER) {
    const size_t together = runs - first < TOGETHER ? runs - first : TOGETHER;
    for (size_t i = 0; i < parameters; i++)
      policy_network_copy_runs(theta + i * runs, first, together, parameters, arms->theta + i);
    for (size_t k = 0; k < count; k++)
      for (size_t i = 0; i < d; i++)
        policy_network_copy_runs(world->features + (k * d + i) * runs, first, together, d * lanes,
                                 arms->features + i * lanes + k);
    for (size_t r = 0; r < together; r++) {
      network_forward(&arms->shape, arms->theta + r * parameters, arms->lanes, arms->features + r * d * lanes,
                      arms->score, arms->workspace);
      for (size_t k = 0; k < count; k++) arms->index[k] = arms->score[k];
      arm[first + r] = ties_best_arm(&ties, (uint32_t)(first + r), world->problem->arms, arms->index, 1);
    }
  }
}

/* ---- the policy */

typedef struct {
  Rule rule; /* of B runs, or of B K */
  NetworkArms network; /* for a network */
  /* With a posterior for each arm: */
  double *context; /* [d, B K], the context of each arm's run */
  int64_t *fallbacks; /* [B K] */
  /* and a sampler that carries a state: */
  Sampler moving; /* of B runs */
  History taken; /* the observations of the arms that were just taken, B runs */
} Sampling;

static Status sampling_policy_create(Policy *self) {
  Arena *memory = self->memory;
  const PolicySetup *setup = &self->setup;
  const Problem *problem = setup->problem;
  const SamplerOps *method = self->method.sampler;
  const bool per_arm = policy_is_per_arm(&self->method, setup->options, problem->per_arm);
  const int64_t arms = per_arm ? problem->arms : 1, lanes = arms * setup->runs;
  const SamplerSetup few = policy_sampler_setup(setup);
  SamplerSetup all = few;
  Sampling *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  if (per_arm && (lanes > INT32_MAX || ((int64_t)setup->first_run + setup->runs) * arms > UINT32_MAX))
    return status_set(STATUS_INPUT,
                      "posterior: per_arm needs a random stream for each arm of each run, and %lld arms in "
                      "run %lld are too many",
                      (long long)arms, (long long)setup->first_run + setup->runs);
  all.runs = (int)lanes;
  all.first_run *= (uint32_t)arms;
  TRY(rule_create(memory, method, &all, problem->rounds, setup->use, &state->rule));
  state->rule.per_arm = per_arm;
  if (likelihood_has_network(setup->likelihood))
    TRY(policy_network_arms_create(memory, &setup->likelihood->network, problem->arms, &state->network));
  if (!per_arm) {
    if (!state->rule.ops->moments) self->sampler = &state->rule.sampler, self->theta = state->rule.theta;
    return STATUS_OK;
  }
  ALLOCATE(memory, state->context, problem->d * lanes);
  ALLOCATE(memory, state->fallbacks, lanes);
  if (!method->carry) return STATUS_OK;
  TRY(sampler_create(memory, method, &few, &state->moving));
  TRY(history_create(memory, problem->d, few.runs, few.likelihood, &state->taken));
  return history_reserve(&state->taken, problem->rounds);
}

/* Adds the fallbacks of all arms to those of their runs and clears them. */
static void sampling_collect_arm_fallbacks(Policy *self, int64_t *fallbacks) {
  Sampling *state = self->state;
  const int arms = self->setup.problem->arms, lanes = self->setup.runs * arms;
  for (int n = 0; n < lanes; n++) {
    fallbacks[n / arms] += state->fallbacks[n];
    state->fallbacks[n] = 0;
  }
}

/* Copies the features of every arm, or the context that all arms share, to the run of the arm. */
static void sampling_copy_contexts(Sampling *state, const World *world) {
  const int d = world->problem->d, runs = world->runs, arms = world->problem->arms;
  for (int k = 0; k < arms; k++) {
    const double *from = world->features + (world->problem->per_arm ? 0 : (size_t)k * (size_t)(d * runs));
    for (int i = 0; i < d * runs; i++) state->context[(size_t)i * (size_t)arms + (size_t)k] = from[i];
  }
}

static RuleChoice sampling_rule_choice(const Sampling *state, const World *world, const History *history) {
  return (RuleChoice){.history = history,
                      .round = world->round,
                      .choices = (int)world->round - 1,
                      .arms = world_arms(world),
                      .features = state->rule.per_arm ? state->context : world->features};
}

static Status sampling_policy_choose(Policy *self, const World *world, const History *history,
                                     double *probability, int *arm, int64_t *fallbacks) {
  Sampling *state = self->state;
  Rule *rule = &state->rule;
  const RuleChoice choice = sampling_rule_choice(state, world, history);
  int64_t *own = rule->per_arm ? state->fallbacks : fallbacks;
  if (rule->per_arm) sampling_copy_contexts(state, world);
  if (likelihood_has_network(self->setup.likelihood)) {
    rule_draw(rule, history, world->round, rule->theta, own);
    policy_network_arms_best(&state->network, world, rule->theta, arm);
  } else if (probability) {
    rule_probabilities(rule, &choice, probability, own);
    rule_pick(rule, world->round, world->runs, choice.arms.count, probability, arm);
  } else {
    rule_choose(rule, &choice, arm, own);
    rule_explore(rule, world->round, world->runs, choice.arms, arm);
  }
  if (rule->per_arm) sampling_collect_arm_fallbacks(self, fallbacks);
  self->elsewhere = prior_seconds_elsewhere(self->setup.prior);
  return prior_check(self->setup.prior);
}

static void sampling_policy_settle(Policy *self, const World *world, const History *history,
                                   int64_t *fallbacks) {
  Sampling *state = self->state;
  const RuleChoice choice = sampling_rule_choice(state, world, history);
  rule_settle(&state->rule, &choice, state->rule.per_arm ? state->fallbacks : fallbacks);
  if (state->rule.per_arm) sampling_collect_arm_fallbacks(self, fallbacks);
}

static void sampling_policy_observe(Policy *self, const History *history, int64_t *fallbacks) {
  Sampling *state = self->state;
  Sampler *sampler = &state->rule.sampler;
  const SamplerOps *ops = sampler->ops;
  if (!state->rule.per_arm) {
    sampler_observe(sampler, history, fallbacks);
    return;
  }
  const int *latest = history_latest_runs(history);
  if (ops->restless) {
    sampler_observe(sampler, history, state->fallbacks);
    sampling_collect_arm_fallbacks(self, fallbacks);
  }
  if (!ops->carry) return;
  for (int b = 0; b < self->setup.runs; b++) sampler_carry(sampler, latest[b], &state->moving, b);
  history_gather(history, latest, &state->taken);
  sampler_observe(&state->moving, &state->taken, fallbacks);
  for (int b = 0; b < self->setup.runs; b++) sampler_carry(&state->moving, b, sampler, latest[b]);
}

const PolicyOps policy_sampling = {.create = sampling_policy_create,
                                   .choose = sampling_policy_choose,
                                   .weighs = true,
                                   .settle = sampling_policy_settle,
                                   .observe = sampling_policy_observe};
