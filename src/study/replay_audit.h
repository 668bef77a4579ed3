/* What a log says of its own propensities and rewards, for the replay study (study/replay.c).
 *
 * If the propensities are right, and the log can show all that the policy does, weights have mean 1: those of
 * `replay` too, which are 1 / p for the events whose arm it chooses, and 0 for others. So do, if an arm
 * is possible in each of the events that have it, 1 / p for those that played it and 0 for the rest of them.
 * The standard error of a mean weight m is taken under this hypothesis, with E[w^2] = mean of w^2 / m if m >
 * 1, and mean of w^2 + (1 - m) max w if m < 1, as if what is missing were large weights; both are exact if
 * the positive weights are all the same.
 */
#pragma once

#include "core/moments.h"
#include "problem/problem_logged.h"

/* Sums over events. */
typedef struct {
  double total, squares, largest; /* of weights */
  double events; /* number of events */
  double size; /* effective sample size */
} ReplayWeights;

/* Adds the weight of one more event. */
void replay_audit_add_weight(ReplayWeights *of, double w);
/* Computes standard error and range of a mean weight that should be 1. The range is four standard errors, but
 * 2% at least, so that rounded propensities are let through; above 1 it has the second term of Bernstein's
 * inequality, because a few large weights may have come together by chance. */
void replay_audit_range(const ReplayWeights *of, double *se, double *low, double *high);

/* What a log says of its propensities, and of the rewards that there are. */
typedef struct {
  double arm, arm_weight; /* ESTIMATES_ARM, ESTIMATES_ARM_WEIGHT */
  bool arm_0_absent;
  double least, most; /* a range of rewards */
  double spread; /* their variance, divided by that of rewards of the same mean at the ends of the range */
  Moments rewards;
} ReplayAudit;

/* Judges a log; `unlisted`: the number of arms is not given. */
Status replay_audit_log(const EventLog *log, bool unlisted, ReplayAudit *out);
/* Computes Wilson's interval of a mean reward of `size` events (E. B. Wilson, JASA 22, 209, 1927). Returns
 * the number of 0/1 rewards of the rarer kind that would say as much. */
double replay_audit_interval(const ReplayAudit *audit, double mean, double size, double *low, double *high);
