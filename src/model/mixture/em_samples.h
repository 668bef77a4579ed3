/* Samples of z as the items of EM, started by k-means++ seeding (Arthur and Vassilvitskii 2007).
 *
 * The log density of every component is linear in the features 1, z_i, z_i z_j of z, and the M-step wants the
 * same features summed: with features[F, n] an iteration is two products of matrices and the exponential
 * function between them. What the quadratic form loses by being multiplied out is below 1e-16 z^2 over the
 * floor of the variances, 1e-6 for samples of unit variance (|z|^2 <= n d) by the ten thousand. */
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

/* Copies, from z[d, n], the samples first, first + 1, .., `items` of them, after the last one from the
 * start again; at most `components` at a time. */
Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out);

/* Returns the operations of an E-step for each sample and component; those of a sample alone are shared. */
double em_samples_cost(int d, double components);
