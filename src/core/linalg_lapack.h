/* Internal to core/linalg: what linalg_lanes.c hands to BLAS and LAPACK above LINALG_BATCH_DIMENSION, and the
 * batched Cholesky factorisation that jitters a lane where LAPACK's stops. */
#ifndef CORE_LINALG_LAPACK_H
#define CORE_LINALG_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

void linalg_lapack_eigen_lanes(int d, int lanes, const double *a, double *q, double *w);
void linalg_lapack_cholesky_lanes(int d, int lanes, double *a, int *jitters);
/* One matrix: L x = x or L' x = x; y = Q x or y = Q' x. */
void linalg_blas_solve_triangle(int d, bool transposed, const double *l, double *x);
void linalg_blas_multiply(int d, bool transposed, const double *q, const double *x, double *y);

/* linalg_cholesky_lanes by plain loops, element (i, j) of lane n at a[(i d + j) stride + n]. */
void linalg_cholesky_strided(int d, int lanes, size_t stride, double *a, int *jitters);

#endif
