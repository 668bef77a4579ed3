/* How surprising a history is under a prior: the prior-predictive p-value (Box 1980) of its marginal
 * likelihood over its largest likelihood,
 *
 *     log Z(b, Lambda) - b' Lambda^+ b / 2,
 *
 * its rank among histories that are simulated from the prior at the same features. Z is that of the mixture
 * that stands for the prior (prior_stand_in), and theta of the prior itself, so that the p-value is uniform
 * under the prior whatever the mixture is worth. That is exact where features do not depend on rewards, and
 * approximate in a bandit, where they do. For Gaussian rewards. */
#ifndef SAMPLER_ALARM_H
#define SAMPLER_ALARM_H

#include "core/rng.h"
#include "model/history.h"
#include "model/prior.h"

typedef struct Alarm Alarm;

/* Whether it can be told for such a prior and likelihood. */
bool alarm_fits(const Prior *prior, const Likelihood *likelihood);
/* From `draws` simulated histories; prior and likelihood outlive it. */
Status alarm_create(Arena *memory, const Prior *prior, const Likelihood *likelihood, int draws, uint64_t seed,
                    Alarm **out);
/* The p-value of a run of the history, which has observations: from 1 / (draws + 1), the least that so many
 * can show, to 1. Streams: RNG_ALARM, run = stream_run, round = history->rounds. */
double alarm_p_value(Alarm *self, const History *history, int run, uint32_t stream_run);

#endif
