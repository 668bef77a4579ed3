/* Internal to core/linalg: what linalg_lanes.c hands to BLAS and LAPACK above LINALG_BATCH_DIMENSION. */
#pragma once

#include <stdbool.h>

void linalg_lapack_eigen_lanes(int d, int lanes, const double *a, double *q, double *w);
void linalg_lapack_cholesky_lanes(int d, int lanes, double *a, int *jitters);
/* Solves, for one matrix, L x = x or L' x = x. Multiplies, for one matrix, y = Q x or y = Q' x. */
void linalg_blas_solve_triangle(int d, bool transposed, const double *l, double *x);
void linalg_blas_multiply(int d, bool transposed, const double *q, const double *x, double *y);
