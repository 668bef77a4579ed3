/* Projections of clouds of points on SLICES directions at once, a direction a lane: they are sorted by a
 * network of comparisons, whose order does not depend on the values, so that all lanes go the same way. */
#pragma once

enum { SLICES = 8 };

/* Computes out[n, SLICES] = x' direction of x[d, n] and direction[d, SLICES]. */
void slices_project(int d, int n, const double *x, const double *direction, double *out);
/* Sorts each column of values[n, SLICES], the smallest first; no value is NaN. Merge exchange: Batcher
 * 1968; Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M. */
void slices_sort(int n, double *values);
/* Computes out[SLICES]: W1 between the columns of x[n, SLICES] and y[m, SLICES], both sorted. */
void slices_distance(int n, const double *x, int m, const double *y, double *out);
