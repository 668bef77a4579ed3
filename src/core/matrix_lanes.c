#include "core/matrix_lanes.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "core/matrix_kernel.h"

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

static void matrix_lanes_multiply(int d, int lanes, MatrixFactor a, MatrixFactor b, MatrixResult result,
                                  double *c) {
  const MatrixShape shape = {d, d, d, lanes};
  if (linalg_is_single(d, lanes))
    linalg_product(d, a.transposed, a.entries, b.transposed, b.entries, c);
  else
    matrix_kernel_product(shape, a.entries, matrix_order(d, a.transposed), b.entries,
                          matrix_order(d, b.transposed), result, c);
}

void matrix_lanes_product(int d, int lanes, const double *a, const double *b, double *c) {
  matrix_lanes_multiply(d, lanes, factor_of(a), factor_of(b), MATRIX_PLAIN, c);
}

void matrix_lanes_product_by_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  matrix_lanes_multiply(d, lanes, factor_of(a), factor_transposed(b), MATRIX_PLAIN, c);
}

void matrix_lanes_product_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  matrix_lanes_multiply(d, lanes, factor_transposed(a), factor_of(b), MATRIX_PLAIN, c);
}

void matrix_lanes_gram(int d, int lanes, const double *a, double *c) {
  matrix_lanes_multiply(d, lanes, factor_transposed(a), factor_of(a), MATRIX_SYMMETRIC, c);
  if (!linalg_is_single(d, lanes)) return;
  for (int i = 0; i < d; i++) /* BLAS may round the two halves differently */
    for (int j = 0; j < i; j++) c[(size_t)j * (size_t)d + (size_t)i] = c[(size_t)i * (size_t)d + (size_t)j];
}

void matrix_lanes_invert(int d, int lanes, const double *a, double *inverse) {
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

void matrix_lanes_coarse_bound(int d, int lanes, const double *a, double *bound) {
  matrix_kernel_dot(d * d, lanes, a, a, bound);
  for (int n = 0; n < lanes; n++) bound[n] = sqrt(bound[n]);
}

/* Computes the moment bound; bound[n] holds the Frobenius norm at first. */
void matrix_lanes_moment_bound(int d, int lanes, const double *a, double *bound) {
  matrix_lanes_coarse_bound(d, lanes, a, bound);
  for (int n = 0; n < lanes; n++) {
    double trace = 0;
    for (int i = 0; i < d; i++) trace += a[i * (d + 1) * lanes + n];
    bound[n] = matrix_moment_bound(d, trace, bound[n] * bound[n]);
  }
}

/* Computes the fine bound. The matrix is scaled to norm 1 first, so that no power overflows. */
SIMD_CLONES
void matrix_lanes_fine_bound(int d, int lanes, const double *a, double *bound, double *scratch) {
  double *square = scratch, *fourth = scratch + d * d * lanes;
  matrix_lanes_coarse_bound(d, lanes, a, bound);
  for (int i = 0; i < d * d; i++)
    for (int n = 0; n < lanes; n++) fourth[i * lanes + n] = a[i * lanes + n] / (bound[n] > 0 ? bound[n] : 1);
  matrix_lanes_multiply(d, lanes, factor_of(fourth), factor_of(fourth), MATRIX_SYMMETRIC, square);
  matrix_lanes_multiply(d, lanes, factor_of(square), factor_of(square), MATRIX_SYMMETRIC, fourth);
  double *norm = square;
  matrix_lanes_coarse_bound(d, lanes, fourth, norm);
  for (int n = 0; n < lanes; n++) bound[n] *= sqrt(sqrt(norm[n]));
}

SIMD_CLONES
void matrix_lanes_symmetrise(int d, int lanes, double *a) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < i; j++) {
      double *restrict low = a + (i * d + j) * lanes;
      double *restrict high = a + (j * d + i) * lanes;
      for (int n = 0; n < lanes; n++) low[n] = high[n] = 0.5 * (low[n] + high[n]);
    }
}

void matrix_lanes_multiply_vectors(int count, int d, int lanes, const double *x, bool by_transpose,
                                   const double *m, double *out) {
  const MatrixShape shape = {count, d, d, lanes};
  if (!linalg_is_single(d, lanes)) {
    matrix_kernel_product(shape, x, matrix_order(d, false), m, matrix_order(d, !by_transpose), MATRIX_PLAIN,
                          out);
    return;
  }
  for (int k = 0; k < count; k++)
    if (by_transpose)
      linalg_multiply_transposed_lanes(d, 1, m, x + k * d, out + k * d);
    else
      linalg_multiply_lanes(d, 1, m, x + k * d, out + k * d);
}

void matrix_lanes_add_outer(int count, int d, int lanes, const double *x, const double *y, double *sum) {
  const MatrixShape shape = {d, d, count, lanes};
  matrix_kernel_product(shape, x, matrix_order(d, true), y, matrix_order(d, false), MATRIX_ADDED, sum);
}

/* Computes the congruence: half = a M', with row i of a as one vector per lane, and then a = M half. */
void matrix_lanes_congruence(int d, int lanes, bool transposed, const double *m, double *a, double *half) {
  for (int i = 0; i < d; i++)
    linalg_multiply_shared(d, lanes, transposed, m, a + i * d * lanes, half + i * d * lanes);
  linalg_multiply_shared(d, d * lanes, transposed, m, half, a);
  matrix_lanes_symmetrise(d, lanes, a);
}
