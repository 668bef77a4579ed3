/* Products, inverses and norms of many small matrices at once: a[d, d, N] holds N matrices, lane last,
 * element (i, j) of lane n at a[(i * d + j) * N + n], so that one instruction works on many lanes. The result
 * for a lane does not depend on the others. One large matrix (linalg_lanes_is_single) goes to BLAS and
 * LAPACK. Where matrices are said to be symmetric, both triangles are stored. */
#pragma once

#include <stdbool.h>

enum { LINALG_BATCH_DIMENSION = 16, LINALG_TILE_DIMENSION = 128 };

/* Returns whether this is one large matrix, a job for BLAS. */
static inline bool linalg_lanes_is_single(int d, int lanes) {
  return lanes == 1 && d > LINALG_BATCH_DIMENSION;
}

/* Computes c = A B, or A' B; c must not overlap a or b. */
void linalg_lanes_product(int d, int lanes, const double *a, const double *b, double *c);
void linalg_lanes_product_transposed(int d, int lanes, const double *a, const double *b, double *c);
/* Computes c = A'A, symmetric to the last bit. */
void linalg_lanes_gram(int d, int lanes, const double *a, double *c);
/* Computes c = A B'. */
void linalg_lanes_product_by_transposed(int d, int lanes, const double *a, const double *b, double *c);

/* Computes y[d, N] = Q x and y = Q' x for each lane; y must not overlap x. */
void linalg_lanes_multiply(int d, int lanes, const double *q, const double *x, double *y);
void linalg_lanes_multiply_transposed(int d, int lanes, const double *q, const double *x, double *y);
/* Computes the same, bit for bit, with one Q[d, d] for all lanes, transposed on request. */
void linalg_lanes_multiply_shared(int d, int lanes, bool transpose, const double *q, const double *x,
                                  double *y);

/* Quadratic functions b' x - x' A x / 2 of symmetric matrices[d, d, N] and vectors[d, N]. */
typedef struct {
  const double *matrix, *vector;
} LanesQuadratic;

/* Computes out[N] += factor (b' x - x' A x / 2), and image[d, N] = A x, which must not overlap the others. */
void linalg_lanes_add_quadratic(int d, int lanes, double factor, LanesQuadratic of, const double *x,
                                double *image, double *out);

/* Multiplies each of `count` vectors x[count, d, N] by M, or by M'; out must not overlap x or m. */
void linalg_lanes_multiply_vectors(int count, int d, int lanes, const double *x, bool by_transpose,
                                   const double *m, double *out);
/* Computes sum[d, d, N] += x y' of each of `count` pairs of vectors [count, d, N]. */
void linalg_lanes_add_outer(int count, int d, int lanes, const double *x, const double *y, double *sum);

/* Computes a[d, d, N] <- M a M', or M' a M, symmetric to the last bit. Scratch: half[d, d, N]. */
void linalg_lanes_congruence(int d, int lanes, bool transposed, const double *m, double *a, double *half);

/* Computes inverse[d, d, N] lane by lane (linalg_invert), which is slow and for rare use; a singular matrix
 * gives NaN. */
void linalg_lanes_invert(int d, int lanes, const double *a, double *inverse);

/* Computes upper bounds on the largest |eigenvalue| of symmetric matrices, bound[N]. `coarse` is the
 * Frobenius norm, at most sqrt(d) times too large; `fine` is (sum of eigenvalues^8)^(1/8), at most d^(1/8)
 * times too large, from two products: scratch[2, d, d, N]. `moment` bounds the largest eigenvalue by the mean
 * and variance of all (linalg_kernel_moment_bound). */
void linalg_lanes_coarse_bound(int d, int lanes, const double *a, double *bound);
void linalg_lanes_moment_bound(int d, int lanes, const double *a, double *bound);
void linalg_lanes_fine_bound(int d, int lanes, const double *a, double *bound, double *scratch);

/* Computes a <- (A + A') / 2. */
void linalg_lanes_symmetrise(int d, int lanes, double *a);
