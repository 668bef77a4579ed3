/* How surprising a history is under a prior: the prior-predictive p-value (Box 1980) of its marginal
 * likelihood under the prior over that under the wide Gaussian of a guard (prior_wide_create), which is its
 * rank among histories that are simulated from the prior at the same features. Both marginal likelihoods are
 * those of mixtures (prior_stand_in), and are approximated if rewards are not Gaussian
 * (mixture_approximation.h); theta is drawn from the prior itself, so that the p-value is uniform under the
 * prior however rough the mixtures and approximations are. It is exact if features do not depend on rewards,
 * and approximate in a bandit, where they do. */
#pragma once

#include "core/rng.h"
#include "model/history/history.h"
#include "model/prior/prior.h"

typedef struct Alarm Alarm;

/* Whether a p-value is available for this prior and likelihood after this many observations: if rewards are
 * not Gaussian, after at most ALARM_ROWS, as each of them is simulated. */
enum { ALARM_ROWS = 10000 };
bool alarm_fits(const Prior *prior, const Likelihood *likelihood, int observations);
/* Returns the number of simulated histories behind the p-values that are shown to users: 999, or 199 if rows
 * are simulated one by one. */
int alarm_histories(const Likelihood *likelihood);
/* Returns whether all simulated histories have one precision, so that their posteriors share matrices: a
 * p-value then takes hardly longer than a posterior. */
bool alarm_shares_precision(const Likelihood *likelihood);
/* Creates an alarm from `draws` simulated histories, each of at most `observations`; prior and likelihood
 * must outlive it. */
Status alarm_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, int observations,
                    int draws, uint64_t seed, Alarm **out);
/* Sets the covariance[d, d] that b, the vector of the evidence, has given theta, if that is not the
 * precision: for evidence of which parts were discounted. It must outlive the alarm. */
void alarm_set_noise(Alarm *self, const double *covariance);
/* Returns the p-value of a run of the history, from 1 / (draws + 1), the smallest that this many draws can
 * show, to 1. The run must have observations, kept one by one (history_observation) unless the likelihood is
 * conjugate. Streams: RNG_ALARM, run = stream_run, round = history->rounds. */
double alarm_p_value(Alarm *self, const History *history, int run, uint32_t stream_run);
/* Computes the p-value of a history of one run, after an observation at least, from alarm_histories simulated
 * ones. If it has seen few directions of a mixture, what it says about these is all that is judged, and the
 * wide Gaussian is that of these directions. */
Status alarm_judge(const Prior *prior, const History *history, uint64_t seed, double *p_value);
