/* Sliced Wasserstein distances of order 1 between two clouds of points with uniform weights, for dimensions
 * or sizes where the exact distance (metric/emd.h) is too expensive. Like it, they have order 1, so they
 * bound it from below:
 *
 *     W1(direction) = int |F^-1(q) - G^-1(q)| dq,   F, G: the distributions of direction' x, direction' y.
 *
 * Rabin, Peyre, Delon and Bernot 2011; Bonneel, Rabin, Peyre and Pfister, JMIV 51, 2015 (the mean over
 * directions); Deshpande et al., CVPR 2019 (the largest). */
#pragma once

#include "core/arena.h"
#include "core/rng.h"
#include "metric/clouds.h"

typedef struct Wasserstein Wasserstein;

/* Allocates memory for clouds of up to `most_points` in up to `most_dimension` dimensions. */
Status wasserstein_create(Arena *memory, int most_dimension, int most_points, Wasserstein **out);

/* Returns the mean of W1 over `directions` directions, uniform on the sphere, between two clouds. The stream
 * `rng` names the directions: d normals for each, normalised. */
double wasserstein_sliced(Wasserstein *wasserstein, const Clouds *clouds, int directions, Rng rng);

/* Returns the largest W1: starts from the best of the same directions and moves uphill along the gradient,
 * halving the step, until nothing is gained. This is a local maximum, so a lower bound on the largest. */
double wasserstein_max_sliced(Wasserstein *wasserstein, const Clouds *clouds, int directions, Rng rng);

/* Sorts each column of values[n, WASSERSTEIN_SLICES], smallest first; no value is NaN. A network of
 * comparisons, whose order does not depend on the values, so that all lanes do the same. */
enum { WASSERSTEIN_SLICES = 8 };
void wasserstein_sort_slices(int n, double *values);
