/* Products, inverses and norms of many small square matrices at once: a[d, d, N], lane last (core/linalg.h
 * has the symmetric factorisations). The result for a lane does not depend on the others. One large matrix
 * (linalg_is_single) goes to BLAS and LAPACK. */
#pragma once

#include <stdbool.h>

/* Computes c = A B, or A' B; c must not overlap a or b. */
void matrix_lanes_product(int d, int lanes, const double *a, const double *b, double *c);
void matrix_lanes_product_transposed(int d, int lanes, const double *a, const double *b, double *c);
/* Computes c = A'A, symmetric to the last bit. */
void matrix_lanes_gram(int d, int lanes, const double *a, double *c);
/* Computes c = A B'. */
void matrix_lanes_product_by_transposed(int d, int lanes, const double *a, const double *b, double *c);

/* Multiplies each of `count` vectors x[count, d, N] by M, or by M'; out must not overlap x or m. */
void matrix_lanes_multiply_vectors(int count, int d, int lanes, const double *x, bool by_transpose,
                                   const double *m, double *out);
/* Computes sum[d, d, N] += x y' of each of `count` pairs of vectors [count, d, N]. */
void matrix_lanes_add_outer(int count, int d, int lanes, const double *x, const double *y, double *sum);

/* Computes a[d, d, N] <- M a M', or M' a M, symmetric to the last bit. Scratch: half[d, d, N]. */
void matrix_lanes_congruence(int d, int lanes, bool transposed, const double *m, double *a, double *half);

/* Computes inverse[d, d, N] lane by lane (linalg_invert), which is slow and for rare use; a singular matrix
 * gives NaN. */
void matrix_lanes_invert(int d, int lanes, const double *a, double *inverse);

/* Computes upper bounds on the largest |eigenvalue| of symmetric matrices, bound[N]. `coarse` is the
 * Frobenius norm, at most sqrt(d) times too large; `fine` is (sum of eigenvalues^8)^(1/8), at most d^(1/8)
 * times too large, from two products: scratch[2, d, d, N]. `moment` bounds the largest eigenvalue by the mean
 * and variance of all (matrix_moment_bound). */
void matrix_lanes_coarse_bound(int d, int lanes, const double *a, double *bound);
void matrix_lanes_moment_bound(int d, int lanes, const double *a, double *bound);
void matrix_lanes_fine_bound(int d, int lanes, const double *a, double *bound, double *scratch);

/* Computes a <- (A + A') / 2. */
void matrix_lanes_symmetrise(int d, int lanes, double *a);
