/* Replacement draws for Gaussian evidence that is so precise, compared with what it leaves to the prior in
 * some direction, that the sums of a sampler keep no digits of the prior. They come from the posterior under
 * the mixture that stands in for the prior, in square-root form. If the prior itself is a mixture they are
 * exact, and the same as those of `mixts` with the same random numbers. */
#pragma once

#include "sampler/sampler.h"

/* Returns whether a sampler with these options, which may be NULL, has the posterior as its target. */
bool stand_in_targets_posterior(const Config *options);
/* Returns whether such draws may replace the sampler's: rewards are Gaussian, the prior has a mixture, the
 * target is the posterior, and the sampler does not work in square-root form itself. */
bool stand_in_fits(const Sampler *sampler);
/* Replaces theta[d, B M] in the runs that need it, and counts a fallback for each. */
void stand_in_replace(const Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                      int64_t *fallbacks);
