/* The earth mover's distance, or 1-Wasserstein distance, between two clouds of n points with uniform weights
 * and Euclidean ground cost (Rubner, Tomasi and Guibas, IJCV 40, 2000; Peyre and Cuturi 2019, section 2.3):
 *
 *     EMD(x, y) = min sum_ij f_ij |x_i - y_j|,   sum_j f_ij = sum_i f_ij = 1/n,   f >= 0,
 *
 * which is an assignment problem, solved exactly. */
#pragma once

#include "core/arena.h"
#include "metric/clouds.h"

typedef struct Emd Emd;

/* Allocates memory for clouds of up to `most_points`: 10 most_points^2 bytes. */
Status emd_create(Arena *memory, int most_points, Emd **out);

/* Computes the distance between two clouds; if their sizes differ, between the first min(n, m) points of
 * each. Every answer is certified: the dual objective, a lower bound, must reach it up to rounding, or the
 * program stops. Returns STATUS_INPUT if a point is not finite. */
Status emd_distance(Emd *emd, const Clouds *clouds, double *out);
