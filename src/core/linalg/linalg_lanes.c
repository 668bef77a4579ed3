#include "core/linalg/linalg_lanes.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/linalg_kernel.h"

#include <cblas.h>
#include <stdlib.h>

/* A matrix, or its transpose, as a factor of a product. */
typedef struct {
  const double *entries; /* [d, d, lanes] */
  bool transposed;
} MatrixFactor;

static MatrixFactor factor_of(const double *entries) { return (MatrixFactor){.entries = entries}; }
static MatrixFactor factor_transposed(const double *entries) {
  return (MatrixFactor){.entries = entries, .transposed = true};
}

static void linalg_lanes_multiply_factors(int d, int lanes, MatrixFactor a, MatrixFactor b,
                                          MatrixResult result, double *c) {
  const MatrixShape shape = {d, d, d, lanes};
  if (linalg_lanes_is_single(d, lanes))
    linalg_product(d, a.transposed, a.entries, b.transposed, b.entries, c);
  else
    linalg_kernel_product(shape, a.entries, linalg_kernel_order(d, a.transposed), b.entries,
                          linalg_kernel_order(d, b.transposed), result, c);
}

void linalg_lanes_product(int d, int lanes, const double *a, const double *b, double *c) {
  linalg_lanes_multiply_factors(d, lanes, factor_of(a), factor_of(b), MATRIX_PLAIN, c);
}

void linalg_lanes_product_by_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  linalg_lanes_multiply_factors(d, lanes, factor_of(a), factor_transposed(b), MATRIX_PLAIN, c);
}

void linalg_lanes_product_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  linalg_lanes_multiply_factors(d, lanes, factor_transposed(a), factor_of(b), MATRIX_PLAIN, c);
}

void linalg_lanes_gram(int d, int lanes, const double *a, double *c) {
  linalg_lanes_multiply_factors(d, lanes, factor_transposed(a), factor_of(a), MATRIX_SYMMETRIC, c);
  if (!linalg_lanes_is_single(d, lanes)) return;
  for (int i = 0; i < d; i++) /* BLAS may round the two halves differently */
    for (int j = 0; j < i; j++) c[(size_t)j * (size_t)d + (size_t)i] = c[(size_t)i * (size_t)d + (size_t)j];
}

void linalg_lanes_invert(int d, int lanes, const double *a, double *inverse) {
  const size_t size = (size_t)d * (size_t)d;
  double *own = malloc(2 * size * sizeof *own);
  ASSERT(own);
  for (int n = 0; n < lanes; n++) {
    lanes_copy(d * d, 1, a + n, lanes, own, 1);
    if (!linalg_invert(d, own, own + size))
      for (size_t k = size; k < 2 * size; k++) own[k] = NAN;
    lanes_copy(d * d, 1, own + size, 1, inverse + n, lanes);
  }
  free(own);
}

void linalg_lanes_coarse_bound(int d, int lanes, const double *a, double *bound) {
  linalg_kernel_dot(d * d, lanes, a, a, bound);
  for (int n = 0; n < lanes; n++) bound[n] = sqrt(bound[n]);
}

/* Computes the moment bound; bound[n] holds the Frobenius norm at first. */
void linalg_lanes_moment_bound(int d, int lanes, const double *a, double *bound) {
  linalg_lanes_coarse_bound(d, lanes, a, bound);
  for (int n = 0; n < lanes; n++) {
    double trace = 0;
    for (int i = 0; i < d; i++) trace += a[i * (d + 1) * lanes + n];
    bound[n] = linalg_kernel_moment_bound(d, trace, bound[n] * bound[n]);
  }
}

/* Computes square = A A of symmetric matrices. */
static void linalg_lanes_square(int d, int lanes, const double *a, double *square) {
  linalg_lanes_multiply_factors(d, lanes, factor_of(a), factor_of(a), MATRIX_SYMMETRIC, square);
}

/* Computes the fine bound, a vector of lanes after the other, so that its powers stay in a cache. The matrix
 * is scaled to norm 1 first, so that no power overflows. */
SIMD_CLONES
void linalg_lanes_fine_bound(int d, int lanes, const double *a, double *bound, double *scratch) {
  const int size = d * d;
  linalg_lanes_coarse_bound(d, lanes, a, bound);
  for (int first = 0, count; first < lanes; first += count) {
    count = lanes - first <= VECTOR_LANES + 1 ? lanes - first
                                              : VECTOR_LANES; /* a last single one would go to BLAS */
    double *square = scratch, *fourth = scratch + size * count, *norm = square;
    for (int i = 0; i < size; i++)
      for (int n = 0; n < count; n++) {
        const double scale = bound[first + n] > 0 ? bound[first + n] : 1;
        fourth[i * count + n] = a[i * lanes + first + n] / scale;
      }
    linalg_lanes_square(d, count, fourth, square);
    linalg_lanes_square(d, count, square, fourth);
    linalg_lanes_coarse_bound(d, count, fourth, norm);
    for (int n = 0; n < count; n++) bound[first + n] *= sqrt(sqrt(norm[n]));
  }
}

SIMD_CLONES
void linalg_lanes_symmetrise(int d, int lanes, double *a) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < i; j++) {
      double *restrict low = a + (i * d + j) * lanes;
      double *restrict high = a + (j * d + i) * lanes;
      for (int n = 0; n < lanes; n++) low[n] = high[n] = 0.5 * (low[n] + high[n]);
    }
}

void linalg_lanes_multiply_vectors(int count, int d, int lanes, const double *x, bool by_transpose,
                                   const double *m, double *out) {
  const MatrixShape shape = {count, d, d, lanes};
  if (!linalg_lanes_is_single(d, lanes)) {
    linalg_kernel_product(shape, x, linalg_kernel_order(d, false), m, linalg_kernel_order(d, !by_transpose),
                          MATRIX_PLAIN, out);
    return;
  }
  for (int k = 0; k < count; k++)
    if (by_transpose)
      linalg_lanes_multiply_transposed(d, 1, m, x + k * d, out + k * d);
    else
      linalg_lanes_multiply(d, 1, m, x + k * d, out + k * d);
}

void linalg_lanes_add_outer(int count, int d, int lanes, const double *x, const double *y, double *sum) {
  const MatrixShape shape = {d, d, count, lanes};
  linalg_kernel_product(shape, x, linalg_kernel_order(d, true), y, linalg_kernel_order(d, false),
                        MATRIX_ADDED, sum);
}

/* Computes the congruence: half = a M', with row i of a as one vector per lane, and then a = M half. */
void linalg_lanes_congruence(int d, int lanes, bool transposed, const double *m, double *a, double *half) {
  for (int i = 0; i < d; i++)
    linalg_lanes_multiply_shared(d, lanes, transposed, m, a + i * d * lanes, half + i * d * lanes);
  linalg_lanes_multiply_shared(d, d * lanes, transposed, m, half, a);
  linalg_lanes_symmetrise(d, lanes, a);
}

/* ---- products with vectors */

static void linalg_lanes_multiply_single(int d, bool transposed, const double *q, const double *x,
                                         double *y) {
  cblas_dgemv(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, d, d, 1, q, d, x, 1, 0, y, 1);
}

static void linalg_lanes_multiply_each(int d, int lanes, bool transposed, const double *q, const double *x,
                                       double *y) {
  const MatrixShape shape = {d, 1, d, lanes};
  const MatrixOrder vector = {1, 1};
  if (linalg_lanes_is_single(d, lanes))
    linalg_lanes_multiply_single(d, transposed, q, x, y);
  else
    linalg_kernel_product(shape, q, linalg_kernel_order(d, transposed), x, vector, MATRIX_PLAIN, y);
}

void linalg_lanes_multiply(int d, int lanes, const double *q, const double *x, double *y) {
  linalg_lanes_multiply_each(d, lanes, false, q, x, y);
}

void linalg_lanes_multiply_transposed(int d, int lanes, const double *q, const double *x, double *y) {
  linalg_lanes_multiply_each(d, lanes, true, q, x, y);
}

void linalg_lanes_multiply_shared(int d, int lanes, bool transpose, const double *q, const double *x,
                                  double *y) {
  if (linalg_lanes_is_single(d, lanes))
    linalg_lanes_multiply_single(d, transpose, q, x, y);
  else
    linalg_kernel_shared(d, lanes, q, linalg_kernel_order(d, transpose), x, y);
}

void linalg_lanes_add_quadratic(int d, int lanes, double factor, LanesQuadratic of, const double *x,
                                double *image, double *out) {
  linalg_lanes_multiply(d, lanes, of.matrix, x, image);
  linalg_kernel_add_quadratic(d, lanes, factor, of.vector, x, image, out);
}
