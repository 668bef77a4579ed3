#include "rule/rule_parts.h"

RuleParts rule_parts(const Rule *rule) {
  ASSERT(rule->propensity_draws > 0);
  return (RuleParts){.key = rule->key, .left = rule->propensity_draws};
}

/* Returns room for the draws of the part with `before` draws before it. */
static double *rule_parts_room(const Rule *rule, const RuleChoice *choice, int before) {
  return rule->kept ? rule->kept + (size_t)rule->sampler.d * (size_t)choice->history->runs * (size_t)before
                    : rule->theta;
}

bool rule_parts_draw(RuleParts *parts, Rule *rule, const RuleChoice *choice, int64_t *fallbacks) {
  if (parts->left == 0) return false;
  double *theta = rule_parts_room(rule, choice, rule->propensity_draws - parts->left);
  parts->draws = parts->left < RULE_PROPENSITY_PART ? parts->left : RULE_PROPENSITY_PART;
  parts->left -= parts->draws;
  parts->theta = theta;
  if (rule->settled) return true;
  parts->key = rng_subkey(parts->key, RNG_PROPENSITY);
  RngLanes rng = rule_streams(rule, choice->round, choice->history->runs, parts->draws);
  rng.key = parts->key;
  sampler_sample(&rule->sampler, choice->history, rng, parts->draws, theta, fallbacks);
  return true;
}

void rule_parts_index(const RuleParts *parts, const Rule *rule, const RuleChoice *choice, int b, int arm,
                      double *index) {
  const bool per_arm = rule->per_arm;
  const size_t d = (size_t)rule->sampler.d, k = per_arm ? (size_t)choice->arms.count : 1,
               m = (size_t)parts->draws, of_history = (size_t)choice->history->runs, first = (size_t)b * k;
  const double *phi = choice->features + first + (size_t)arm * (per_arm ? 1 : d * of_history);
  const double *theta = parts->theta + (first + (per_arm ? (size_t)arm : 0)) * m;
  for (size_t n = 0; n < m; n++) index[n] = 0;
  for (size_t i = 0; i < d; i++, phi += of_history, theta += of_history * m)
    for (size_t n = 0; n < m; n++) index[n] += *phi * theta[n];
}
