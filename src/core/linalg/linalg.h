/* Linear algebra on one matrix at a time, row-major a[d, d], over BLAS and LAPACK. Other layouts have their
 * own files:
 *
 *   linalg_lanes.h, linalg_factor.h   many small matrices, lane last: a[d, d, N]
 *   linalg_real.h                     those of eight runs, in kernels: Real a[d, d]
 *   dense.h                           one that is too large for a copy per draw, or for one rank */
#pragma once

#include "core/linalg/linalg_factor.h"
#include "core/linalg/linalg_lanes.h"
#include "core/status.h"

/* Limits BLAS to one thread from now on, unless OPENBLAS_NUM_THREADS is set: ranks are the only parallelism.
 * (OpenBLAS reads that variable before main, when it is too late to set it; other BLAS libraries are left
 * alone.) */
void linalg_one_thread(void);

/* Computes the Cholesky factor in the lower triangle, and leaves the rest alone; returns false when A is not
 * positive definite. */
bool linalg_try_cholesky(int d, double *a);
/* Computes the same with zeros above the triangle. Returns STATUS_INPUT, with a message, when A is not
 * positive definite. */
Status linalg_cholesky(int d, double *a);
/* Computes A^-1, full and symmetric, from its Cholesky factor: inverse[d, d]. */
void linalg_inverse(int d, const double *cholesky, double *inverse);
/* Computes L <- L^-1 of a lower triangular l[d, d]; the zeros above stay. */
void linalg_invert_triangle(int d, double *l);
/* Computes c = A B, with A or B transposed on request; c must not overlap a or b. */
void linalg_product(int d, bool transpose_a, const double *a, bool transpose_b, const double *b, double *c);
/* Computes inverse[d, d] of a[d, d] by LU factorisation with pivoting; returns false if a pivot is zero. */
bool linalg_invert(int d, const double *a, double *inverse);
/* Adds A A' with a[d, k] to the lower triangle of square[d, d]. */
void linalg_add_square(int d, int k, const float *a, float *square);
/* Returns log det A from its Cholesky factor. */
double linalg_log_determinant(int d, const double *cholesky);
/* Computes A = Q diag(w) Q', w ascending, eigenvectors in the columns of q[d, d]. STATUS_INTERNAL when
 * LAPACK fails. */
Status linalg_eigen(int d, const double *a, double *q, double *w);
/* Computes mean[d] of x[d, n]. */
void linalg_mean(int d, int n, const double *x, double *mean);
/* Computes mean[d] and covariance[d, d] (divided by n) of x[d, n]. */
void linalg_moments(int d, int n, const double *x, double *mean, double *covariance);
