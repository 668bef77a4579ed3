/* Draws where the evidence of Gaussian rewards is so precise, beside what it leaves to the prior in some
 * direction, that the sums of a sampler have no digits of the latter: from the posterior of the mixture in
 * the place of the prior, in square-root form. With a mixture for a prior these are exact; they are those of
 * `mixts` with the same random numbers. */
#pragma once

#include "sampler/sampler.h"

/* Returns whether the target is the posterior with these options, which may be NULL. */
bool stand_in_targets_posterior(const Config *options);
/* Returns whether such draws may take the place of the sampler's own: its target is the posterior, and it
 * does not work in square-root form itself. */
bool stand_in_fits(const Sampler *sampler);
/* Returns whether this ratio (precise_hidden) is beyond the digits of a sampler that works with sums. */
bool stand_in_needed(double hidden);
/* Replaces theta[d, B M] in the runs that need it, and counts a fallback for each of them. */
void stand_in_replace(const Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                      int64_t *fallbacks);
