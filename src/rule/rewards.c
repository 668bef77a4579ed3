/* What a belief says about the reward of each arm, for people who explain or watch its choices. */
#include "core/moments.h"
#include "rule/rule_parts.h"

void rule_rewards(Rule *rule, const RuleChoice *choice, Moments *rewards, int64_t *fallbacks) {
  const Likelihood *likelihood = rule->sampler.setup.likelihood;
  const int arms = choice->arms.count, runs = choice->history->runs;
  double index[RULE_PROPENSITY_PART], reward[RULE_PROPENSITY_PART];
  RuleParts parts = rule_parts(rule);
  ASSERT(!rule->per_arm);
  for (int i = 0; i < runs * arms; i++) rewards[i] = (Moments){0};
  while (rule_parts_draw(&parts, rule, choice, fallbacks))
    for (int b = 0; b < runs; b++)
      for (int k = 0; k < arms; k++) {
        Moments *of_arm = &rewards[b * arms + k];
        rule_parts_index(&parts, rule, choice, b, k, index);
        likelihood->ops->mean(likelihood, parts.draws, index, reward);
        *of_arm = moments_join(*of_arm, moments_of(parts.draws, reward));
      }
}
