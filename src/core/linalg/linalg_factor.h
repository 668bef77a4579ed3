/* Factorisations of many small symmetric matrices at once, lane last (linalg_lanes.h), and what is solved
 * with them; compiled once for each instruction level (core/simd.h). Above LINALG_BATCH_DIMENSION, or
 * LINALG_TILE_DIMENSION for Cholesky factors of several lanes, each lane goes to LAPACK. linalg_plain.h has
 * the Cholesky factors in plain loops. */
#pragma once

/* Decomposes N symmetric matrices A = Q diag(w) Q'. a[d, d, N] is read; q[d, d, N] gets the eigenvectors in
 * its columns, w[d, N] the eigenvalues in no particular order. A diagonal matrix gives Q = I exactly. Uses
 * cyclic Jacobi, or dsyevd above LINALG_BATCH_DIMENSION. Non-finite input gives non-finite output. */
void linalg_factor_eigen(int d, int lanes, const double *a, double *q, double *w);

/* Computes A = Q diag(w) Q', both triangles, of q[d, d, N] and w[d, N]; a[d, d, N] must not overlap them. */
void linalg_factor_spectral(int d, int lanes, const double *q, const double *w, double *a);

/* Factors A = L L' for N symmetric positive definite matrices, in place: a[d, d, N] gets L in its lower
 * triangle (the rest is left alone). Jitter: a pivot that is not above zero is replaced by 2^-52 times the
 * largest diagonal entry (2^-1000 when that is zero) and the column below it by zeros, so that L stays
 * finite, and one is added to jitters[lane] (NULL: not counted). */
void linalg_factor_cholesky(int d, int lanes, double *a, int *jitters);

/* Solves with L from linalg_factor_cholesky, in place on x[d, N]: L y = x; L' y = x; both (A y = x). */
void linalg_factor_forward(int d, int lanes, const double *l, double *x);
void linalg_factor_backward(int d, int lanes, const double *l, double *x);
void linalg_factor_solve(int d, int lanes, const double *l, double *x);
/* Does the same with one L[d, d] for all lanes, such as draws of one posterior. */
void linalg_factor_forward_shared(int d, int lanes, const double *l, double *x);
void linalg_factor_backward_shared(int d, int lanes, const double *l, double *x);
/* Computes A^-1 from the same factor: inverse[d, d, N], both triangles. */
void linalg_factor_inverse(int d, int lanes, const double *l, double *inverse);

/* Orthonormalises the vectors e[count, d, N], count <= d, by modified Gram-Schmidt; length[count, N] gets the
 * lengths that they had before. */
void linalg_factor_orthonormalise(int count, int d, int lanes, double *e, double *length);
