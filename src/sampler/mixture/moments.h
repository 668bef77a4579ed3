/* Mean and covariance of a prior; and of a mixture, whose components are merged one after the other, lane
 * last. Large numbers are never subtracted from each other, however narrow the components are. */
#pragma once

#include "model/prior/prior.h"

/* Computes mean[d] and covariance[d, d] of a prior: in closed form or, if it has none, from draws that use
 * these streams. */
Status moments_of_prior(const Prior *prior, RngLanes rng, double *mean, double *covariance);

/* Merges a component with weight share[lanes], whose own mean and covariance have rows `own_stride` apart,
 * into mean[d, lanes] and covariance[d, d, lanes], rows `stride` apart, of weight 1 - share. With share 1 the
 * old values do not matter. */
void mixture_posterior_merge_moments(int d, int lanes, const double *share, const double *own_mean,
                                     const double *own_covariance, int own_stride, double *mean,
                                     double *covariance, int stride);
