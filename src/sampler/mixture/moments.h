/* Mean and covariance of a mixture, whose components are merged one after the other, lane last. Large numbers
 * are never subtracted from each other, however narrow the components are. */
#pragma once

/* Merges a component with weight share[lanes], whose own mean and covariance have rows `own_stride` apart,
 * into mean[d, lanes] and covariance[d, d, lanes], rows `stride` apart, of weight 1 - share. With share 1 the
 * old values do not matter. */
void mixture_posterior_merge_moments(int d, int lanes, const double *share, const double *own_mean,
                                     const double *own_covariance, int own_stride, double *mean,
                                     double *covariance, int stride);
