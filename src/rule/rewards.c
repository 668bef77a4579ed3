/* What a belief says about the reward of each arm, for people who explain or watch its choices. */
#include "rule/rule_parts.h"

#include <math.h>

/* Adds the n mean rewards `reward` to the mean and the sum of squared deviations of `before` earlier ones
 * (Chan, Golub and LeVeque 1983). */
static void rule_add_rewards(int before, int n, const double *reward, double *mean, double *squares) {
  double center = 0, part = 0;
  for (int i = 0; i < n; i++) center += reward[i] / n;
  for (int i = 0; i < n; i++) part += (reward[i] - center) * (reward[i] - center);
  const double step = center - *mean, share = (double)n / (before + n);
  *mean += share * step;
  *squares += part + step * step * share * before;
}

void rule_rewards(Rule *rule, const RuleChoice *choice, double *mean, double *deviation, int64_t *fallbacks) {
  const Likelihood *likelihood = rule->sampler.setup.likelihood;
  const int arms = choice->arms, runs = choice->history->runs, draws = rule->propensity_draws;
  const size_t entries = (size_t)runs * (size_t)arms;
  double index[RULE_PROPENSITY_PART], reward[RULE_PROPENSITY_PART];
  RuleParts parts = rule_parts(rule);
  ASSERT(!rule->per_arm);
  for (size_t i = 0; i < entries; i++) mean[i] = deviation[i] = 0;
  while (rule_parts_draw(&parts, rule, choice, fallbacks)) {
    const int before = draws - parts.left - parts.draws;
    for (int b = 0; b < runs; b++)
      for (int k = 0; k < arms; k++) {
        const size_t at = (size_t)b * (size_t)arms + (size_t)k;
        rule_parts_index(rule, choice, parts.draws, b, k, index);
        likelihood->ops->mean(likelihood, parts.draws, index, reward);
        rule_add_rewards(before, parts.draws, reward, &mean[at], &deviation[at]);
      }
  }
  for (size_t i = 0; i < entries; i++) deviation[i] = sqrt(deviation[i] / draws);
}
