/* Rules that give each arm a number and take the largest: a draw of its reward (Thompson 1933), its mean
 * (greedy), or an upper quantile of its reward under the posterior (Bayes-UCB: Kaufmann, Cappe and Garivier
 * 2012). The quantile is that of a Gaussian with the posterior's mean and covariance, E[r_a] + z_t sd[r_a],
 * with
 *
 *     z_t = Phi^-1(1 - 1 / (2 (1 + alpha (n - t)))),   t = 0 .. n - 1 choices made, of n,
 *
 * which explores less towards the end, when a reward has few rounds left in which to be of use. If rewards
 * are not linear in phi' theta the quantile is that of phi' theta, which orders the arms just as the
 * quantiles of their mean reward do. Means are not ordered alike: of two arms with the same E[phi' theta]
 * below 0 the less certain one has more clicks. */
#include "rule/rules.h"

#include "core/special.h"
#include "io/config/config_rows.h"
#include "rule/rule_index.h"
#include "sampler/unknown_noise.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- the rules */

static Status bayes_ucb_create(Rule *self) {
  if (self->horizon > 0 || !config_is(self->sampler.setup.options, "quantile", "auto")) return STATUS_OK;
  return status_set(STATUS_INPUT, "rule bayes_ucb needs to know how many choices there will be: set its "
                                  "option horizon or a constant quantile");
}

/* Returns alpha. Where rewards are not linear in phi' theta less exploration suffices (docs/decisions.md has
 * both constants beside others). */
static double bayes_ucb_alpha(const Rule *self) {
  const Config *options = self->sampler.setup.options;
  if (!config_is(options, "bayes_ucb_alpha", "auto")) return config_real(options, "bayes_ucb_alpha");
  return likelihood_is_linear(self->sampler.setup.likelihood) ? 0.1 : 0.03;
}

/* Returns z_t. */
static double bayes_ucb_quantile(const Rule *self, int choices) {
  const Config *options = self->sampler.setup.options;
  const double left = choices < self->horizon ? self->horizon - choices : 0;
  if (config_is(options, "quantile", "auto"))
    return special_upper_quantile(0.5 / (1 + bayes_ucb_alpha(self) * left));
  const double quantile = config_real(options, "quantile");
  return quantile >= 0.5 ? special_upper_quantile(1 - quantile) : -special_upper_quantile(quantile);
}

const RuleOps rule_thompson = {.name = "thompson",
                               .summary = "the arm that is best under one draw of theta",
                               .reference = "Thompson 1933"};

static const ConfigKey bayes_ucb_keys[] = {
    {REAL("bayes_ucb_alpha", 0, 1e6, "auto",
          "for rule bayes_ucb: larger values explore more; with k rounds left the quantile is 1 - 1 / (2 (1 "
          "+ alpha k)); auto: 0.1 with Gaussian rewards, 0.03 with clicks and counts"),
     .words = "auto"},
    {REAL("quantile", 1e-12, 1 - 1e-12, "auto",
          "for rule bayes_ucb: constant quantile; auto: from bayes_ucb_alpha and the rounds left"),
     .words = "auto"},
    {INT("horizon", 1, 1000000000, "study",
         "for rule bayes_ucb: total number of choices; study: its rounds; outside a study, set this or a "
         "quantile"),
     .words = "study"},
    {.name = NULL}};

const RuleOps rule_bayes_ucb = {
    .name = "bayes_ucb",
    .summary =
        "the arm with the highest upper quantile of its mean reward, closer to the median towards the end",
    .reference = "Kaufmann, Cappe and Garivier 2012",
    .moments = true,
    .keys = bayes_ucb_keys,
    .create = bayes_ucb_create,
    .quantile = bayes_ucb_quantile};

const RuleOps rule_greedy = {.name = "greedy",
                             .summary = "the arm with the largest posterior mean reward: never explores",
                             .reference = "Bastani, Bayati and Khosravi 2021",
                             .moments = true,
                             .reward = true};

/* ---- the registry and its options */

static const RuleOps *const RULES[] = {
#define RULE_ENTRY(name) &rule_##name,
    RULE_LIST(RULE_ENTRY)
#undef RULE_ENTRY
        NULL};

const RuleOps *rule_method(int index) { return RULES[index]; }
static const char *rule_name(int index) { return RULES[index] ? RULES[index]->name : NULL; }

const RuleOps *rule_of(const Config *options) {
  int i = 0;
  while (!config_is(options, "rule", RULES[i]->name)) i++;
  return RULES[i];
}

static const ConfigKey SHARED[] = {
    {WORD("rule", "thompson", "how to choose an arm by the posterior: a rule of `thompson list rules`"),
     .word = rule_name},
    {INT("rule_draws", 2, 100000, "64",
         "draws from which a rule computes mean and covariance if the sampler has no closed form")},
    {REAL("floor", 0, 0.5, "0",
          "minimum probability of every arm, at most 1 / arms: with probability arms * floor the arm is "
          "drawn uniformly")},
    {INT("propensity_draws", 1, 1000000, "1000",
         "draws from which the probabilities of arms are estimated when they are requested (event logs)")},
    {.name = NULL}};

enum { KEYS = 16 };
static ConfigKey joined[KEYS];

static void rule_join_keys(void) {
  config_join_keys(SHARED, NULL, KEYS, joined);
  for (int i = 0; RULES[i]; i++) config_join_keys(RULES[i]->keys, NULL, KEYS, joined);
}

const ConfigKey *rule_keys(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, rule_join_keys);
  return joined;
}

const ConfigKey *rule_shared_keys(void) { return SHARED; }

/* Returns whether an option has another value than its default. */
static bool rule_option_is_set(const Config *options, const ConfigKey *key) {
  char value[80];
  config_show(options, key->name, sizeof value, value);
  return strcmp(value, key->fallback) != 0;
}

/* Checks that no option of a rule is set that is not chosen. */
static Status rule_check_others(const Config *options, const RuleOps *rule) {
  for (int i = 0; RULES[i]; i++) {
    const ConfigKey *key = RULES[i]->keys;
    if (RULES[i] == rule || !key) continue;
    while (key->name && !rule_option_is_set(options, key)) key++;
    if (key->name)
      return status_set(STATUS_INPUT, "option %s belongs to rule: %s, but this policy has rule: %s",
                        key->name, RULES[i]->name, rule->name);
  }
  return STATUS_OK;
}

/* Checks that no other option of `bayes_ucb` is set if its quantile is constant. */
static Status rule_check_quantile(const Config *options) {
  if (config_is(options, "quantile", "auto")) return STATUS_OK;
  for (const ConfigKey *key = bayes_ucb_keys; key->name; key++)
    if (strcmp(key->name, "quantile") != 0 && rule_option_is_set(options, key))
      return status_set(STATUS_INPUT, "option %s has no effect beside a constant quantile: give one of them",
                        key->name);
  return STATUS_OK;
}

Status rule_check(const Config *options, const Likelihood *likelihood) {
  const RuleOps *rule = rule_of(options);
  TRY(rule_check_others(options, rule));
  if (rule == &rule_bayes_ucb) TRY(rule_check_quantile(options));
  if (!likelihood_has_network(likelihood)) return STATUS_OK;
  if (config_real(options, "floor") > 0)
    return status_set(STATUS_INPUT, "option floor needs a mean reward that depends on phi' theta");
  if (rule == &rule_thompson) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "rule %s needs a mean reward that depends on phi' theta; model: network is for rule: "
                    "thompson",
                    rule->name);
}

Status rule_check_arms(const Config *options, int arms) {
  const double floor = config_real(options, "floor");
  if (floor * arms <= 1 + 1e-9) return STATUS_OK;
  return status_set(STATUS_INPUT, "option floor=%g: %d arms cannot all have this probability", floor, arms);
}

/* Returns M: the draws that the rule takes at a time. */
static int decision_rule_draws(const RuleOps *rule, const Config *options, bool closed) {
  return rule->moments && !closed ? (int)config_int(options, "rule_draws") : 1;
}

Status rule_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, int horizon,
                   RuleUse use, Rule *out) {
  const Config *options = setup->options;
  const RuleOps *ops = rule_of(options);
  const bool closed = sampler_moments_fit(method, setup->prior, setup->likelihood);
  const size_t d = (size_t)setup->prior->d, runs = (size_t)setup->runs;
  SamplerSetup sampler = *setup;
  const int draws = decision_rule_draws(ops, options, closed);
  if (draws > sampler.draws) sampler.draws = draws;
  if (use != RULE_CHOOSES && sampler.draws < RULE_PROPENSITY_PART) sampler.draws = RULE_PROPENSITY_PART;
  *out = (Rule){.ops = ops,
                .horizon = horizon,
                .key = rng_key(setup->seed, RNG_AGENT),
                .pick = rng_key(setup->seed, RNG_PICK),
                .tie = rng_key(setup->seed, RNG_TIE),
                .floor = config_real(options, "floor"),
                .first_run = setup->first_run,
                .draws = draws};
  TRY(rule_check(options, setup->likelihood));
  TRY(sampler_create(memory, method, &sampler, &out->sampler));
  ALLOCATE(memory, out->theta, d * runs * (size_t)sampler.draws);
  if (use != RULE_CHOOSES) {
    out->propensity_draws = (int)config_int(options, "propensity_draws");
    out->gaussian = sampler_is_gaussian(&out->sampler) && !out->sampler.guard && method->exact &&
                    sampler_has_moments(method, true, true) && !unknown_noise_asked(options);
  }
  if (use == RULE_SETTLES && !ops->moments)
    ALLOCATE(memory, out->kept, d * runs * (size_t)out->propensity_draws);
  ALLOCATE(memory, out->arm, runs);
  ALLOCATE(memory, out->top, runs);
  if (ops->moments || out->gaussian) {
    ALLOCATE(memory, out->mean, d * runs);
    ALLOCATE(memory, out->covariance, d * d * runs);
  }
  if (ops->reward && !likelihood_is_linear(setup->likelihood))
    ALLOCATE_ARRAYS(memory, runs, &out->center, &out->deviation);
  if (!config_is(options, "horizon", "study")) out->horizon = (int)config_int(options, "horizon");
  return ops->create ? ops->create(out) : STATUS_OK;
}

double rule_bytes(const Config *options, int d, double runs, RuleUse use) {
  const bool moments = rule_of(options)->moments;
  const double at_once = use == RULE_CHOOSES ? 1 : RULE_PROPENSITY_PART,
               kept = use == RULE_SETTLES && !moments ? (double)config_int(options, "propensity_draws") : 0,
               covariance = moments ? d : 0;
  return sizeof(double) * d * runs * (at_once + kept + covariance);
}

RngLanes rule_streams(const Rule *rule, uint32_t round, int runs, int draws) {
  return (RngLanes){.key = rule->key,
                    .run = rule->first_run,
                    .draws = (uint32_t)draws,
                    .round = round,
                    .lanes = (uint32_t)(runs * draws),
                    .runs = rule->runs,
                    .rounds = rule->rounds};
}

void rule_draw(Rule *rule, const History *history, uint32_t round, double *theta, int64_t *fallbacks) {
  sampler_sample(&rule->sampler, history, rule_streams(rule, round, history->runs, 1), 1, theta, fallbacks);
}

/* Returns the streams of tickets (ties.h), one lane for each of the B runs: the same whether arms share a
 * posterior or each has its own, which is a run of the sampler. */
static RngLanes rule_ties(const Rule *rule, const RuleChoice *choice) {
  RngLanes ties = rule_streams(rule, choice->round, rule_runs(rule, choice), 1);
  ties.key = rule->tie;
  if (rule->per_arm) ties.run /= (uint32_t)choice->arms.count;
  return ties;
}

/* Computes the belief that the rule needs, and returns what the indices of the arms follow from; with
 * `per_arm`, that is one arm for each run of the history. */
static IndexedArms rule_indexed_arms(Rule *rule, const RuleChoice *choice, int64_t *fallbacks) {
  const RuleOps *ops = rule->ops;
  const History *history = choice->history;
  const uint32_t round = choice->round;
  const int runs = history->runs;
  if (ops->moments && !rule->settled)
    sampler_moments(&rule->sampler, history, rule_streams(rule, round, runs, rule->draws), rule->theta,
                    rule->mean, rule->covariance, fallbacks);
  if (!ops->moments) rule_draw(rule, history, round, rule->theta, fallbacks);
  return (IndexedArms){.arms = rule->per_arm ? (ArmSet){.count = 1} : choice->arms,
                       .d = rule->sampler.d,
                       .runs = runs,
                       .features = choice->features,
                       .mean = ops->moments ? rule->mean : rule->theta,
                       .covariance = ops->quantile ? rule->covariance : NULL,
                       .z = ops->quantile ? ops->quantile(rule, choice->choices) : 0,
                       .ties = rule_ties(rule, choice)};
}

/* Computes reward[runs of the history], the mean rewards of indexed arm k. */
static void rule_mean_rewards(const Rule *rule, const IndexedArms *of, int k, double *reward) {
  IndexedArms one = *of;
  one.arms = (ArmSet){.count = 1};
  one.features += (size_t)k * (size_t)of->d * (size_t)of->runs;
  rule_index(&one, rule->arm, rule->center, NULL);
  one.covariance = rule->covariance;
  one.z = 1;
  rule_index(&one, rule->arm, rule->deviation, NULL);
  for (int b = 0; b < of->runs; b++) rule->deviation[b] -= rule->center[b];
  likelihood_average(rule->sampler.setup.likelihood, of->runs, rule->center, rule->deviation, reward);
}

/* Does what rule_index does, for mean rewards that are not phi' theta itself; index[B, K] may be NULL. */
static void rule_index_rewards(Rule *rule, const IndexedArms *of, int *arm, double *index) {
  for (int b = 0; b < of->runs; b++) {
    rule->top[b] = -INFINITY;
    arm[b] = 0;
  }
  for (int k = 0; k < of->arms.count; k++) {
    double *reward = rule->deviation;
    rule_mean_rewards(rule, of, k, reward);
    for (int b = 0; b < of->runs; b++) {
      if (!arms_has(of->arms, b, k)) reward[b] = NAN;
      if (index) index[(size_t)b * (size_t)of->arms.count + (size_t)k] = reward[b];
      const bool tie = reward[b] == rule->top[b];
      if (!(reward[b] > rule->top[b] || (tie && ties_arm_wins(&of->ties, (uint32_t)b, k, arm[b])))) continue;
      rule->top[b] = reward[b];
      arm[b] = k;
    }
  }
}

/* Chooses arm[runs of the history], sets rule->top, and index[B, K] unless it is NULL. */
static void rule_index_arms(Rule *rule, const IndexedArms *of, int *arm, double *index) {
  if (rule->center)
    rule_index_rewards(rule, of, arm, index);
  else
    rule_index(of, arm, rule->top, index);
}

void rule_choose(Rule *rule, const RuleChoice *choice, int *arm, int64_t *fallbacks) {
  const IndexedArms of = rule_indexed_arms(rule, choice, fallbacks);
  const int runs = rule_runs(rule, choice), arms = choice->arms.count;
  double *top = rule->top;
  rule_index_arms(rule, &of, rule->per_arm ? rule->arm : arm, NULL);
  if (!rule->per_arm) return;
  for (int b = 0; b < runs; b++, top += arms) {
    arms_withhold(choice->arms, b, 1, top);
    arm[b] = ties_best_arm(&of.ties, (uint32_t)b, arms, top, 1);
  }
}

void rule_share(Rule *rule, const RuleChoice *choice, double *share, int64_t *fallbacks) {
  const IndexedArms of = rule_indexed_arms(rule, choice, fallbacks);
  const int runs = rule_runs(rule, choice), arms = choice->arms.count;
  rule_index_arms(rule, &of, rule->arm, share);
  for (int b = 0; b < runs; b++, share += arms) {
    arms_withhold(choice->arms, b, 1, share);
    ties_share(arms, share, 1, share);
  }
}
