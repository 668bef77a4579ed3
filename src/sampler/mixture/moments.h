/* Mean and covariance of a mixture, whose components are taken in one after the other, lane last: no
 * difference of large numbers is taken, however narrow the components are. */
#pragma once

#include <stdbool.h>

/* Computes share[lanes]: that of the next component in all weights so far, its own among them, from its
 * log_weight. Updates total[lanes], the sum of the weights in units of exp(largest[lanes]); `first`: it
 * begins. */
void moments_share(int lanes, bool first, const double *log_weight, double *largest, double *total,
                   double *share);
/* Replaces mean[d, lanes] and covariance[d, d, lanes], rows `stride` apart, by those of a mixture of what
 * they are of, with weight 1 - share[lanes], and of a component with its own mean and covariance, rows
 * `own_stride` apart, with weight share. With share 1 nothing is read of what they were. */
void moments_merge(int d, int lanes, const double *share, const double *own_mean,
                   const double *own_covariance, int own_stride, double *mean, double *covariance,
                   int stride);
