#include "core/matrix_lanes.h"

#include "core/linalg.h"
#include "core/matrix_kernel.h"
#include "core/simd.h"
#include "core/tiling.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

bool matrix_lanes_is_single(int d, int lanes) { return lanes == 1 && d > LINALG_BATCH_DIMENSION; }

static MatrixOrder order(int d, bool transposed) {
  return transposed ? (MatrixOrder){1, (size_t)d} : (MatrixOrder){(size_t)d, 1};
}

/* Multiplies A or A' by B or B'. */
static void multiply(int d, int lanes, bool transposed_a, const double *a, bool transposed_b, const double *b,
                     MatrixResult result, double *c) {
  const MatrixShape shape = {d, d, d, lanes};
  if (matrix_lanes_is_single(d, lanes))
    linalg_product(d, transposed_a, a, transposed_b, b, c);
  else
    matrix_kernel_product(shape, a, order(d, transposed_a), b, order(d, transposed_b), result, c);
}

void matrix_lanes_product(int d, int lanes, const double *a, const double *b, double *c) {
  multiply(d, lanes, false, a, false, b, MATRIX_PLAIN, c);
}

void matrix_lanes_product_by_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  multiply(d, lanes, false, a, true, b, MATRIX_PLAIN, c);
}

void matrix_lanes_product_transposed(int d, int lanes, const double *a, const double *b, double *c) {
  multiply(d, lanes, true, a, false, b, MATRIX_PLAIN, c);
}

void matrix_lanes_gram(int d, int lanes, const double *a, double *c) {
  multiply(d, lanes, true, a, false, a, MATRIX_SYMMETRIC, c);
  if (!matrix_lanes_is_single(d, lanes)) return;
  for (int i = 0; i < d; i++) /* BLAS may round the two halves differently */
    for (int j = 0; j < i; j++) c[(size_t)j * (size_t)d + (size_t)i] = c[(size_t)i * (size_t)d + (size_t)j];
}

/* Swaps rows x and y in the lanes where `swap` is set. */
INLINE void swap_rows(size_t d, size_t stride, int count, const int *swap, double *restrict x,
                      double *restrict y) {
  for (size_t j = 0; j < d; j++)
    for (int n = 0; n < count; n++) {
      double x_n = x[j * stride + (size_t)n], y_n = y[j * stride + (size_t)n];
      x[j * stride + (size_t)n] = swap[n] ? y_n : x_n;
      y[j * stride + (size_t)n] = swap[n] ? x_n : y_n;
    }
}

/* Subtracts factor from, along a row. */
INLINE void eliminate_row(size_t d, size_t stride, int count, const double *factor,
                          const double *restrict from, double *restrict to) {
  for (size_t j = 0; j < d; j++)
    for (int n = 0; n < count; n++) to[j * stride + (size_t)n] -= factor[n] * from[j * stride + (size_t)n];
}

INLINE void scale_row(size_t d, size_t stride, int count, const double *factor, double *row) {
  for (size_t j = 0; j < d; j++)
    for (int n = 0; n < count; n++) row[j * stride + (size_t)n] *= factor[n];
}

/* Inverts up to VECTOR_LANES lanes. Row pivoting without a search: every later row takes the pivot's place
 * where its entry is larger. */
INLINE void invert_vector(int count, size_t d, size_t stride, double *a, double *inverse) {
  const size_t row = d * stride;
  double least[VECTOR_LANES], factor[VECTOR_LANES];
  int swap[VECTOR_LANES];
  for (int n = 0; n < count; n++) least[n] = 0x1p-1000;
  for (size_t i = 0; i < d * d; i++)
    for (int n = 0; n < count; n++) {
      double size = 0x1p-52 * fabs(a[i * stride + (size_t)n]);
      least[n] = size > least[n] ? size : least[n];
      inverse[i * stride + (size_t)n] = i % (d + 1) == 0;
    }
  for (size_t k = 0; k < d; k++) {
    double *pivot = a + k * row + k * stride;
    for (size_t i = k + 1; i < d; i++) {
      const double *entry = a + i * row + k * stride;
      for (int n = 0; n < count; n++) swap[n] = fabs(entry[n]) > fabs(pivot[n]);
      swap_rows(d, stride, count, swap, a + k * row, a + i * row);
      swap_rows(d, stride, count, swap, inverse + k * row, inverse + i * row);
    }
    for (int n = 0; n < count; n++) factor[n] = 1 / (fabs(pivot[n]) > 0 ? pivot[n] : least[n]);
    scale_row(d, stride, count, factor, a + k * row);
    scale_row(d, stride, count, factor, inverse + k * row);
    for (size_t i = 0; i < d; i++) {
      if (i == k) continue;
      memcpy(factor, a + i * row + k * stride, (size_t)count * sizeof *factor);
      eliminate_row(d, stride, count, factor, a + k * row, a + i * row);
      eliminate_row(d, stride, count, factor, inverse + k * row, inverse + i * row);
    }
  }
}

SIMD_CLONES
static void invert(int d, int lanes, double *a, double *inverse) {
  for (int n = 0; n < lanes; n += VECTOR_LANES) {
    if (lanes - n >= VECTOR_LANES)
      invert_vector(VECTOR_LANES, (size_t)d, (size_t)lanes, a + n, inverse + n);
    else
      invert_vector(lanes - n, (size_t)d, (size_t)lanes, a + n, inverse + n);
  }
}

void matrix_lanes_invert(int d, int lanes, double *a, double *inverse) {
  if (!matrix_lanes_is_single(d, lanes) || !linalg_invert(d, a, inverse)) invert(d, lanes, a, inverse);
}

void matrix_lanes_coarse_bound(int d, int lanes, const double *a, double *bound) {
  matrix_kernel_dot(d * d, lanes, a, a, bound);
  for (int n = 0; n < lanes; n++) bound[n] = sqrt(bound[n]);
}

/* Computes the moment bound; bound[n] holds the Frobenius norm. */
void matrix_lanes_moment_bound(int d, int lanes, const double *a, double *bound) {
  matrix_lanes_coarse_bound(d, lanes, a, bound);
  for (int n = 0; n < lanes; n++) {
    double trace = 0;
    for (int i = 0; i < d; i++) trace += a[i * (d + 1) * lanes + n];
    bound[n] = matrix_moment_bound(d, trace, bound[n] * bound[n]);
  }
}

/* Computes the fine bound. The matrix is brought to norm 1 first, so that no power overflows. */
SIMD_CLONES
void matrix_lanes_fine_bound(int d, int lanes, const double *a, double *bound, double *scratch) {
  double *square = scratch, *fourth = scratch + d * d * lanes;
  matrix_lanes_coarse_bound(d, lanes, a, bound);
  for (int i = 0; i < d * d; i++)
    for (int n = 0; n < lanes; n++) fourth[i * lanes + n] = a[i * lanes + n] / (bound[n] > 0 ? bound[n] : 1);
  multiply(d, lanes, false, fourth, false, fourth, MATRIX_SYMMETRIC, square);
  multiply(d, lanes, false, square, false, square, MATRIX_SYMMETRIC, fourth);
  double *norm = square;
  matrix_lanes_coarse_bound(d, lanes, fourth, norm);
  for (int n = 0; n < lanes; n++) bound[n] *= sqrt(sqrt(norm[n]));
}

SIMD_CLONES
void matrix_lanes_symmetrise(int d, int lanes, double *a) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < i; j++) {
      double *restrict low = a + (i * d + j) * lanes, *restrict high = a + (j * d + i) * lanes;
      for (int n = 0; n < lanes; n++) low[n] = high[n] = 0.5 * (low[n] + high[n]);
    }
}

SIMD_CLONES
void matrix_lanes_apply(int d, int lanes, bool transposed, const double *m, const double *restrict x,
                        double *restrict out) {
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < lanes; n++) out[i * lanes + n] = 0;
    for (int j = 0; j < d; j++) {
      const double m_ij = transposed ? m[j * d + i] : m[i * d + j];
      for (int n = 0; n < lanes; n++) out[i * lanes + n] += m_ij * x[j * lanes + n];
    }
  }
}

void matrix_lanes_multiply_rows(int count, int d, int lanes, const double *x, bool by_transpose,
                                const double *m, double *out) {
  const MatrixShape shape = {count, d, d, lanes};
  if (!matrix_lanes_is_single(d, lanes))
    matrix_kernel_product(shape, x, order(d, false), m, order(d, !by_transpose), MATRIX_PLAIN, out);
  for (int k = 0; k < count && matrix_lanes_is_single(d, lanes); k++)
    (by_transpose ? linalg_multiply_transposed_lanes : linalg_multiply_lanes)(d, 1, m, x + k * d,
                                                                              out + k * d);
}

void matrix_lanes_add_outer(int count, int d, int lanes, const double *x, const double *y, double *sum) {
  const MatrixShape shape = {d, d, count, lanes};
  matrix_kernel_product(shape, x, order(d, true), y, order(d, false), MATRIX_ADDED, sum);
}

/* Computes the congruence; row i of a, transposed, is lane after lane a vector. */
void matrix_lanes_congruence(int d, int lanes, bool transposed, const double *m, double *a, double *half) {
  for (int i = 0; i < d; i++)
    matrix_lanes_apply(d, lanes, transposed, m, a + i * d * lanes, half + i * d * lanes);
  matrix_lanes_apply(d, d * lanes, transposed, m, half, a);
  matrix_lanes_symmetrise(d, lanes, a);
}
