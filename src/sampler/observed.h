/* Draws of one history in the few coordinates that matter, under a mixture of isotropic Gaussians.
 *
 * Let the rows of U be orthonormal: first the directions that the observations see
 * (model/history/history_subspace.h), then those in which the means of the components differ. In the other
 * directions theta is Gaussian, the same under all components, and independent of everything else, if all
 * variances are the same: they are left out, and drawn at the end. With K components and r observed
 * directions m <= r + K - 1 coordinates x = U theta remain, whatever d. With different variances all d
 * remain.
 *
 * The posterior of x is a problem like any other: a mixture of isotropic Gaussians as the prior, and the same
 * observations, so that the sampler itself draws from it. With a conjugate likelihood the evidence of x is
 * diagonal, as is every component, and samplers that know this need no matrices (SamplerOps.vectors).
 *
 * Under any other mixture a sampler that draws from the posterior itself (SamplerOps.projects) gets the
 * observed directions alone, if they are at most half of all, and sampler/unseen.h adds the rest. */
#pragma once

#include "sampler/sampler.h"

/* Returns whether a sampler of this setup draws in this way. */
bool observed_fits(const SamplerOps *method, const SamplerSetup *setup);
/* Returns STATUS_INPUT with a sentence if a sampler that draws in this way makes matrices, one for each draw
 * of a chunk, that need too much memory. It reads only d, `isotropic` and the chain of the prior, which need
 * not be fitted. */
Status observed_check_size(const SamplerOps *method, const SamplerSetup *setup);
/* Returns STATUS_INPUT with a sentence if the sampler cannot be created, or needs too much memory. */
Status observed_check(const SamplerOps *method, const SamplerSetup *setup);
/* Draws theta[d, B M] as the op `sample` does. Draws for which there was no memory are NAN. */
void observed_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                     int64_t *fallbacks);
/* Does the work of sampler_marginal, and returns whether it could. */
bool observed_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value, double *error,
                       int64_t *fallbacks);
