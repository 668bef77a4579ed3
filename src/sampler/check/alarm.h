/* How surprising a history is under a prior: the prior-predictive p-value (Box 1980) of its marginal
 * likelihood under the prior over that under the wide Gaussian of a guard (wide.h), its rank among histories
 * that are simulated from the prior at the same features. Both are those of mixtures (prior_stand_in), with
 * other than Gaussian rewards by Laplace approximations, and theta is of the prior itself, so that the
 * p-value is uniform under the prior whatever mixtures and approximations are worth. That is exact where
 * features do not depend on rewards, and approximate in a bandit, where they do. */
#pragma once

#include "core/rng.h"
#include "model/history/history.h"
#include "model/prior/prior.h"

typedef struct Alarm Alarm;

/* Whether it can be told for such a prior and likelihood after so many observations: with other than Gaussian
 * rewards of up to ALARM_ROWS, as each of them is simulated. */
enum { ALARM_ROWS = 10000 };
bool alarm_fits(const Prior *prior, const Likelihood *likelihood, int observations);
/* Returns from how many simulated histories people are told a p-value: 999, or 199 where rows are simulated
 * one by one. */
int alarm_histories(const Likelihood *likelihood);
/* Creates an alarm from `draws` simulated histories, of at most so many observations each; prior and
 * likelihood outlive it. */
Status alarm_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, int observations,
                    int draws, uint64_t seed, Alarm **out);
/* Returns the p-value of a run of the history, which has observations, kept one by one
 * (history_observation) unless the likelihood is conjugate: from 1 / (draws + 1), the least that so many
 * can show, to 1. Streams: RNG_ALARM, run = stream_run, round = history->rounds. */
double alarm_p_value(Alarm *self, const History *history, int run, uint32_t stream_run);
