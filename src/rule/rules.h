/* The registry's list: one line for each rule. rule_NAME is its descriptor, defined in rule.c or in a file of
 * its own. */
#pragma once

#include "rule/rule.h"

#define RULE_LIST(ENTRY)                                                                                     \
  ENTRY(thompson)                                                                                            \
  ENTRY(bayes_ucb)                                                                                           \
  ENTRY(greedy)

#define RULE_DECLARE(name) extern const RuleOps rule_##name;
RULE_LIST(RULE_DECLARE)
#undef RULE_DECLARE
