/* Symmetric factorisations and products of many small matrices at once: a[d, d, N] holds N matrices, lane
 * last, element (i, j) of lane n at a[(i * d + j) * N + n], so that one instruction works on many lanes. The
 * result for a lane does not depend on the others. Compiled once for each instruction level (core/simd.h).
 *
 * These loops are used up to LINALG_BATCH_DIMENSION, and for Cholesky factors of several lanes up to
 * LINALG_TILE_DIMENSION; in higher dimensions each lane goes to LAPACK. Where matrices are said to be
 * symmetric, both triangles are stored. */
#pragma once

#include <stdbool.h>

enum { LINALG_BATCH_DIMENSION = 16, LINALG_TILE_DIMENSION = 128 };

/* Returns whether this is one large matrix, a job for BLAS. */
static inline bool linalg_is_single(int d, int lanes) { return lanes == 1 && d > LINALG_BATCH_DIMENSION; }

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
