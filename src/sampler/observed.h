/* Draws of one history under a mixture of isotropic Gaussians, in the few coordinates that matter.
 *
 * In an orthonormal basis whose first rows are the directions that the observations see, the evidence is
 * diagonal (model/history/history_subspace.h), and so is every component of the prior, so that samplers need
 * no matrices (sampler/diagonal.h). Directions in which neither the evidence nor the means of the components
 * differ from 0 are Gaussian and independent of all others, if the variances are the same: they are left out,
 * and drawn at the end. With K components and r observed directions m <= r + K - 1 coordinates remain,
 * whatever d. With different variances all d remain. */
#pragma once

#include "sampler/sampler.h"

/* Returns whether a method draws in this way from this prior with this likelihood; `options` may be NULL. */
bool observed_fits(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood,
                   const Config *options);
/* Draws theta[d, B M] as the op `sample` does. Draws for which there was no memory are NAN. */
void observed_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                     int64_t *fallbacks);
