/* Small dense linear algebra for many matrices at once, over BLAS and LAPACK.
 *
 * Batched arrays have the lane last: a[d, d, N] holds N matrices, element (i, j) of lane n at a[(i * d + j) *
 * N + n], so that one instruction works on many lanes. Batched loops are used up to LINALG_BATCH_DIMENSION,
 * and for Cholesky factors of several lanes up to LINALG_TILE_DIMENSION; in higher dimensions each lane goes
 * to LAPACK. Where matrices are said to be symmetric, both triangles are stored. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

enum { LINALG_BATCH_DIMENSION = 16, LINALG_TILE_DIMENSION = 128 };

/* Returns whether this is one large matrix, a job for BLAS. */
static inline bool linalg_is_single(int d, int lanes) { return lanes == 1 && d > LINALG_BATCH_DIMENSION; }

/* Limits BLAS to one thread from now on, unless OPENBLAS_NUM_THREADS is set: ranks are the only parallelism.
 * (OpenBLAS reads that variable before main, when it is too late to set it; other BLAS libraries are left
 * alone.) */
void linalg_one_thread(void);

/* Decomposes N symmetric matrices A = Q diag(w) Q'. a[d, d, N] is read; q[d, d, N] gets the eigenvectors in
 * its columns, w[d, N] the eigenvalues in no particular order. A diagonal matrix gives Q = I exactly. Uses
 * cyclic Jacobi, or dsyevd above LINALG_BATCH_DIMENSION. Non-finite input gives non-finite output. */
void linalg_eigen_lanes(int d, int lanes, const double *a, double *q, double *w);

/* Computes A = Q diag(w) Q', both triangles, of q[d, d, N] and w[d, N]; a[d, d, N] must not overlap them. */
void linalg_spectral_lanes(int d, int lanes, const double *q, const double *w, double *a);

/* Factors A = L L' for N symmetric positive definite matrices, in place: a[d, d, N] gets L in its lower
 * triangle (the rest is left alone). Jitter: a pivot that is not above zero is replaced by 2^-52 times the
 * largest diagonal entry (2^-1000 when that is zero) and the column below it by zeros, so that L stays
 * finite, and one is added to jitters[lane] (NULL: not counted). */
void linalg_cholesky_lanes(int d, int lanes, double *a, int *jitters);

/* Solves with L from linalg_cholesky_lanes, in place on x[d, N]: L y = x; L' y = x; both (A y = x). */
void linalg_forward_lanes(int d, int lanes, const double *l, double *x);
void linalg_backward_lanes(int d, int lanes, const double *l, double *x);
void linalg_solve_lanes(int d, int lanes, const double *l, double *x);
/* Computes A^-1 from the same factor: inverse[d, d, N], both triangles. */
void linalg_inverse_lanes(int d, int lanes, const double *l, double *inverse);

/* Computes y[d, N] = Q x and y = Q' x for each lane; y must not overlap x. */
void linalg_multiply_lanes(int d, int lanes, const double *q, const double *x, double *y);
void linalg_multiply_transposed_lanes(int d, int lanes, const double *q, const double *x, double *y);
/* Computes the same, bit for bit, with one Q[d, d] for all lanes, transposed on request. */
void linalg_multiply_shared(int d, int lanes, bool transpose, const double *q, const double *x, double *y);

/* Computes out[N] += factor (b' x - x' A x / 2), and image[d, N] = A x, which must not overlap the others. */
void linalg_add_quadratic_lanes(int d, int lanes, double factor, const double *a, const double *b,
                                const double *x, double *image, double *out);

/* Orthonormalises the vectors e[count, d, N], count <= d, by modified Gram-Schmidt; length[count, N] gets the
 * lengths that they had before. */
void linalg_orthonormalise_lanes(int count, int d, int lanes, double *e, double *length);

/* One matrix, row-major a[d, d]. */
/* Computes the Cholesky factor in the lower triangle, zeros above. Returns STATUS_INPUT when A is not
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
