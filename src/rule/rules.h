/* The registry's list: one line for each rule. `name` is the name in study files; rule_NAME is the
 * descriptor, defined in the file that the comment names. */
#pragma once

#include "rule/rule.h"

#define RULE_LIST(ENTRY)                                                                                     \
  ENTRY(thompson) /* index.c */                                                                              \
  ENTRY(bayes_ucb) /* index.c */                                                                             \
  ENTRY(greedy) /* index.c */

#define RULE_DECLARE(name) extern const RuleOps rule_##name;
RULE_LIST(RULE_DECLARE)
#undef RULE_DECLARE
