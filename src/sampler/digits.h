/* Draws for runs whose Gaussian evidence is so precise, compared with what it leaves to the prior in some
 * direction, that the sums of a sampler keep no digits of the prior (history_digits). They come from the
 * posterior under the prior's mixture or its companion (mixture_posterior.h), which keeps its digits. */
#pragma once

#include "sampler/sampler.h"

/* Where the draws of a run come from: the sampler itself, or what it promises anyway, its exact posterior
 * under a mixture; that posterior, in place of the sampler; or arithmetic that has lost the prior. All but
 * the first are fallbacks. */
typedef enum { DRAWN_AS_PROMISED, DRAWN_FROM_MIXTURE, DRAWN_WITHOUT_DIGITS } DrawnFrom;

/* Returns this for a run with such evidence. */
DrawnFrom digits_drawn_from(const Sampler *sampler, PriorDigits digits);
/* Replaces theta[d, B M] in the runs that need it, and sets fallbacks[B] there: one for each draw, in place
 * of those of the draws that are discarded. */
void digits_replace(const Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks);
/* Adds one to fallbacks[B] of each run in which moments are not those of the posterior for the same reason.
 */
void digits_count_moments(const Sampler *sampler, const History *history, int64_t *fallbacks);
