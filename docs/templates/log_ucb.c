/* Upper confidence bounds that rise with the logarithm of time (UCB1: Auer, Cesa-Bianchi and Fischer 2002),
 * with the posterior's standard deviation of a reward as its width. */
#include "rule/rules.h"

#include <math.h>

/* Returns sqrt(2 log(1 + t)) after t choices. */
static double log_ucb_quantile(const Rule *self, int choices) {
  (void)self;
  return sqrt(2 * log1p(choices));
}

const RuleOps rule_log_ucb = {.name = "log_ucb",
                              .summary = "the arm with the largest mean + sqrt(2 log t) sd of its reward",
                              .reference = "Auer et al. 2002",
                              .moments = true,
                              .quantile = log_ucb_quantile};
