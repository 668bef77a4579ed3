/* The earth mover's distance, or 1-Wasserstein distance, between two clouds of points with uniform weights
 * and Euclidean ground cost (Rubner, Tomasi and Guibas, IJCV 40, 2000; Peyre and Cuturi 2019, section 2.3):
 *
 *     EMD(x, y) = min sum_ij f_ij |x_i - y_j|,   sum_j f_ij = 1/n,   sum_i f_ij = 1/m,   f >= 0.
 *
 * Exact: an assignment problem when n = m, a transportation problem otherwise. */
#ifndef METRIC_EMD_H
#define METRIC_EMD_H

#include "core/status.h"

typedef struct Emd Emd;

/* Room for clouds of up to `most_points`: 10 most_points^2 bytes. The caller ends with emd_destroy, also
 * after an error. */
Status emd_create(int most_points, Emd **out);
void emd_destroy(Emd *emd);

/* The distance between x[d, n] and y[d, m]. Every answer is certified: the dual objective, a lower bound,
 * must reach it up to rounding, or the program stops. STATUS_INPUT when a point is not finite. The first call
 * with a pair of unequal sizes other than the last such pair allocates, about 100 bytes for each pair of
 * points. */
Status emd_distance(Emd *emd, int d, int n, const double *x, int m, const double *y, double *out);

#endif
