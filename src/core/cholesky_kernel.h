/* Cholesky factors of many small matrices, lane last, behind linalg_cholesky_lanes; one version for each
 * instruction level (core/simd.h). */
#pragma once

#include <stddef.h>

/* Replaces a by L in its lower triangle, element (i, j) of lane n at a[(i d + j) stride + n]; adds bad pivots
 * (linalg.h) to jitters[lanes], unless that is NULL. */
void cholesky_kernel_factor(int d, int lanes, size_t stride, double *a, int *jitters);
