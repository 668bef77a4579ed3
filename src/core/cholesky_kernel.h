/* Cholesky factors of many small matrices, lane last: the kernel of linalg_cholesky_lanes, compiled once for
 * each instruction level (core/simd.h). */
#pragma once

#include <stddef.h>

/* Replaces the lower triangle of a by L, with element (i, j) of lane n at a[(i d + j) stride + n]; adds the
 * number of bad pivots (linalg.h) to jitters[lanes], unless it is NULL. */
void cholesky_kernel_factor(int d, int lanes, size_t stride, double *a, int *jitters);
