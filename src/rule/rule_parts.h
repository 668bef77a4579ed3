/* The `propensity_draws` draws of a round, in parts that bound the memory, each from separate streams.
 *
 *   RuleParts parts = rule_parts(rule);
 *   while (rule_parts_draw(&parts, rule, choice, fallbacks))
 *     for (...) rule_parts_index(&parts, rule, choice, b, arm, index);
 */
#pragma once

#include "rule/rule.h"

typedef struct {
  RngKey key; /* of the present part */
  int draws; /* in it: M */
  const double *theta; /* [d, B M], its draws */
  int left; /* draws after it */
} RuleParts;

/* Returns the state before the first part. */
RuleParts rule_parts(const Rule *rule);
/* Makes the draws of the next part, or finds those of a settled belief; returns false after the last one. */
bool rule_parts_draw(RuleParts *parts, Rule *rule, const RuleChoice *choice, int64_t *fallbacks);
/* Computes index[M] <- phi' theta of an arm in run b of B under the M draws of a part. */
void rule_parts_index(const RuleParts *parts, const Rule *rule, const RuleChoice *choice, int b, int arm,
                      double *index);
