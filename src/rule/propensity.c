/* Propensities: the probabilities with which a rule takes each arm, and a choice made with exactly these. The
 * share of draws for which an arm is the best only estimates the probability that Thompson sampling takes it;
 * but if the arm is picked by the estimate, then this is its true probability, and estimates of the value of
 * another policy from such logs (Horvitz and Thompson 1952; Dudik et al. 2014) are unbiased with any number
 * of draws. */
#include "rule/rule_parts.h"

#include <math.h>

/* Adds to count[K] the number of draws under which each arm is the best in run b of B; n arms that tie count
 * as 1 / n each. */
static void rule_count_best_arms(const RuleParts *parts, const Rule *rule, const RuleChoice *choice, int b,
                                 double *count) {
  const int arms = choice->arms.count, draws = parts->draws;
  double top[RULE_PROPENSITY_PART], index[RULE_PROPENSITY_PART], tied[RULE_PROPENSITY_PART];
  int best[RULE_PROPENSITY_PART];
  bool ties = false;
  for (int n = 0; n < draws; n++) {
    top[n] = -INFINITY;
    best[n] = 0;
    tied[n] = 1;
  }
  for (int arm = 0; arm < arms; arm++) {
    if (!arms_has(choice->arms, b, arm)) continue;
    rule_parts_index(parts, rule, choice, b, arm, index);
    for (int n = 0; n < draws; n++) {
      tied[n] = index[n] > top[n] ? 1 : tied[n] + (index[n] == top[n]);
      best[n] = index[n] > top[n] ? arm : best[n];
      top[n] = index[n] > top[n] ? index[n] : top[n];
    }
  }
  for (int n = 0; n < draws; n++) {
    if (tied[n] == 1) count[best[n]]++;
    ties |= tied[n] > 1;
  }
  if (!ties) return;
  for (int arm = 0; arm < arms; arm++) {
    if (!arms_has(choice->arms, b, arm)) continue;
    rule_parts_index(parts, rule, choice, b, arm, index);
    for (int n = 0; n < draws; n++) count[arm] += tied[n] > 1 && index[n] == top[n] ? 1 / tied[n] : 0;
  }
}

/* Computes probability[B, K], the shares of draws, which are made in parts, each from separate streams. */
static void rule_weigh_by_draws(Rule *rule, const RuleChoice *choice, double *probability,
                                int64_t *fallbacks) {
  const int arms = choice->arms.count, runs = rule_runs(rule, choice), wanted = rule->propensity_draws;
  const size_t entries = (size_t)runs * (size_t)arms;
  RuleParts parts = rule_parts(rule);
  for (size_t i = 0; i < entries; i++) probability[i] = 0;
  while (rule_parts_draw(&parts, rule, choice, fallbacks))
    for (int b = 0; b < runs; b++)
      rule_count_best_arms(&parts, rule, choice, b, probability + (size_t)b * (size_t)arms);
  for (size_t i = 0; i < entries; i++) probability[i] /= wanted;
}

/* Computes probability[B, 2]: Phi(m / s) for the first arm, m and s^2 the mean and variance of (phi_1 -
 * phi_2)' theta; if s = 0, 1 for the better one, 1 / 2 on ties; 1 for the only arm that a run has. */
static void rule_weigh_two_arms(Rule *rule, const RuleChoice *choice, double *probability,
                                int64_t *fallbacks) {
  const size_t d = (size_t)rule->sampler.d, runs = (size_t)choice->history->runs;
  const double *features = choice->features;
  if (!rule->settled)
    sampler_moments(&rule->sampler, choice->history, (RngLanes){.draws = 0}, NULL, rule->mean,
                    rule->covariance, fallbacks);
  for (size_t b = 0; b < runs; b++) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < d; i++) {
      const double x = features[i * runs + b] - features[(d + i) * runs + b];
      mean += x * rule->mean[i * runs + b];
      for (size_t j = 0; j < d; j++)
        variance += x * (features[j * runs + b] - features[(d + j) * runs + b]) *
                    rule->covariance[(i * d + j) * runs + b];
    }
    double first = variance > 0 ? 0.5 * erfc(-mean / sqrt(2 * variance)) : 0.5 * ((mean > 0) + (mean >= 0));
    if (arms_number(choice->arms, (int)b) == 1) first = arms_has(choice->arms, (int)b, 0);
    probability[2 * b] = first;
    probability[2 * b + 1] = 1 - first;
  }
}

/* Returns whether probabilities have a closed form though the rule draws. */
static bool rule_has_two_arms(const Rule *rule, const RuleChoice *choice) {
  return rule->gaussian && choice->arms.count == 2 && !rule->per_arm;
}

void rule_settle(Rule *rule, const RuleChoice *choice, int64_t *fallbacks) {
  const int runs = choice->history->runs;
  ASSERT(rule->kept || rule->ops->moments);
  if (rule->ops->moments || rule_has_two_arms(rule, choice)) {
    sampler_moments(&rule->sampler, choice->history, rule_streams(rule, choice->round, runs, rule->draws),
                    rule->theta, rule->mean, rule->covariance, fallbacks);
  } else {
    RuleParts parts = rule_parts(rule);
    while (rule_parts_draw(&parts, rule, choice, fallbacks)) continue;
  }
  rule->settled = true;
}

void rule_probabilities(Rule *rule, const RuleChoice *choice, double *probability, int64_t *fallbacks) {
  const int runs = rule_runs(rule, choice);
  ASSERT(rule->propensity_draws > 0);
  if (rule->ops->moments) {
    rule_share(rule, choice, probability, fallbacks);
  } else if (rule_has_two_arms(rule, choice)) {
    rule_weigh_two_arms(rule, choice, probability, fallbacks);
  } else {
    rule_weigh_by_draws(rule, choice, probability, fallbacks);
  }
  for (int b = 0; b < runs; b++, probability += choice->arms.count) {
    const int own = arms_number(choice->arms, b);
    for (int k = 0; k < choice->arms.count; k++)
      probability[k] =
          arms_has(choice->arms, b, k) ? rule->floor + (1 - own * rule->floor) * probability[k] : 0;
  }
}

/* Draws the uniform number by which the arm of run b is picked. */
static double rule_draw_pick_uniform(const Rule *rule, uint32_t round, int arms, int b) {
  Rng rng = {.key = rule->pick,
             .run = rule->runs ? rule->runs[b] : rule->first_run + (uint32_t)(rule->per_arm ? b * arms : b),
             .round = rule->rounds ? rule->rounds[b] : round};
  double u;
  rng_uniform(&rng, 1, &u);
  return u;
}

void rule_pick(const Rule *rule, uint32_t round, int runs, int arms, const double *probability, int *arm) {
  for (int b = 0; b < runs; b++, probability += arms) {
    double left = rule_draw_pick_uniform(rule, round, arms, b);
    arm[b] = 0;
    /* What rounding leaves over goes to the last arm that can be taken. */
    for (int k = 0; k < arms; k++) {
      if (left <= 0) break;
      if (probability[k] > 0) arm[b] = k;
      left -= probability[k];
    }
  }
}

void rule_explore(const Rule *rule, uint32_t round, int runs, ArmSet arms, int *arm) {
  if (rule->floor <= 0) return;
  for (int b = 0; b < runs; b++) {
    const int own = arms_number(arms, b);
    const double u = rule_draw_pick_uniform(rule, round, arms.count, b);
    if (u < own * rule->floor) arm[b] = arms_at(arms, b, (int)fmin(u / rule->floor, own - 1));
  }
}
