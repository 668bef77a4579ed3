/* Samples of z as the items of EM, started by k-means++ seeding (Arthur and Vassilvitskii 2007).
 *
 * The log density of every component is linear in the features 1, z_i, z_i z_j of z, and the M-step needs the
 * sums of the same features: with features[F, n] an iteration is two matrix products with the exponential
 * function between them. Multiplying out the quadratic form loses less than 1e-16 z^2 divided by the floor of
 * the variances: 1e-6 for ten thousand samples of unit variance (|z|^2 <= n d). */
#pragma once

#include "model/mixture/em.h"

typedef struct {
  EmData data;
  int chunk, padded; /* samples in a pass, at most CHUNK_SAMPLES; items, padded to whole chunks */
  double *z; /* [d, padded]; zero in the padding */
  double *features, *coefficient, *share; /* [F, chunk], [C, F], [C, chunk] */
  double *distance; /* [padded], to the nearest centre */
  int *nearest; /* [padded] */
  double *centre; /* [d] */
} EmSamples;

/* Copies `items` of the samples z[d, n], from `first` on and wrapping around after the last one. A fit to
 * them can have at most `components` components. */
Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out);

/* Returns the operations of an E-step per sample and component; those per sample are divided among the
 * components. */
double em_samples_cost(int d, double components);
