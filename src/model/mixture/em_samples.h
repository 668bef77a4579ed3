/* Samples of z as the items of EM, started by k-means++ seeding (Arthur and Vassilvitskii 2007).
 *
 * The log density of every component is linear in the features 1, z_i, z_i z_j of z, and the M-step needs the
 * sums of the same features: with features[F, n] an iteration is two matrix products with the exponential
 * function between them. Multiplying out the quadratic form loses less than 1e-16 z^2 divided by the floor of
 * the variances: 1e-6 for ten thousand samples of unit variance (|z|^2 <= n d).
 *
 * In many dimensions features take more memory than caches have, and nearly every sample belongs to one
 * component. Then the densities are |L_c^-1 (z - m_c)|^2, with the Cholesky factor L_c, and the sums are
 * those of each component's own samples. */
#pragma once

#include "model/mixture/em.h"

typedef struct {
  EmData data;
  bool wide; /* no features */
  int padded; /* items, padded to whole chunks of CHUNK_SAMPLES */
  double *z; /* [d, padded]; zero in the padding */
  double *share; /* [C, CHUNK_SAMPLES]; if wide [C, padded] */
  double *features, *coefficient; /* [F, CHUNK_SAMPLES], [C, F]; unless wide */
  double *part, *square; /* [d, CHUNK_SAMPLES], [d, d]; if wide */
  double *distance; /* [padded]: to the nearest centre; if wide also the largest log density */
  double *total; /* [padded]: sums of shares before they are divided by them; if wide */
  int *nearest; /* [padded] */
  double *centre; /* [d] */
} EmSamples;

/* Copies `items` of the samples z[d, n], from `first` on and wrapping around after the last one. A fit to
 * them can have at most `components` components. */
Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out);
