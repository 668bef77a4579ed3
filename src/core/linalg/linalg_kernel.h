/* Kernels of linalg_lanes.h, for many small matrices, lane last: products, inverses and sums; compiled once
 * for each instruction level (core/simd.h). All levels compute the same sums in the same order.
 * linalg_plain.h has the product in plain loops. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Row and column strides of a matrix, {d, 1}, or of its transpose, {1, d}. */
typedef struct {
  size_t row, column;
} MatrixOrder;

/* Returns the strides of a matrix with rows of d entries, or of its transpose. */
static inline MatrixOrder linalg_kernel_order(int d, bool transposed) {
  return transposed ? (MatrixOrder){1, (size_t)d} : (MatrixOrder){(size_t)d, 1};
}

/* Returns a bound on the largest of d eigenvalues, from their sum and the sum of their squares: mean + sqrt(d
 * - 1) standard deviations (Wolkowicz and Styan 1980, Theorem 2.1). It is never above the Frobenius norm, and
 * exact when all the others are equal. */
static inline double linalg_kernel_moment_bound(int d, double sum, double squares) {
  const double mean = sum / d, variance = squares / d - mean * mean;
  return mean + sqrt((d - 1) * (variance > 0 ? variance : 0));
}

/* The shape of a product: rows and columns of c, columns of A, lanes. */
typedef struct {
  int rows, columns, depth, lanes;
} MatrixShape;

/* What to do with a product: C = A B; C += A B; C = A B, known to be symmetric and computed from its lower
 * triangle. */
typedef enum { MATRIX_PLAIN, MATRIX_ADDED, MATRIX_SYMMETRIC } MatrixResult;

/* Computes c[rows, columns, lanes] from A and B, whose strides are those of one lane. */
void linalg_kernel_product(MatrixShape shape, const double *a, MatrixOrder of_a, const double *b,
                           MatrixOrder of_b, MatrixResult result, double *c);
/* Computes y[d, lanes] = Q x with one Q[d, d] for all lanes. */
void linalg_kernel_shared(int d, int lanes, const double *q, MatrixOrder of_q, const double *x, double *y);
/* Computes out[lanes], the sum of x y over the rows of x and y[rows, lanes]. */
void linalg_kernel_dot(int rows, int lanes, const double *x, const double *y, double *out);
/* Computes out[lanes] += factor (b' x - x' image / 2) of b, x, image[d, lanes]. */
void linalg_kernel_add_quadratic(int d, int lanes, double factor, const double *b, const double *x,
                                 const double *image, double *out);
/* Computes a[d, d, lanes] <- A^-1 for symmetric positive definite matrices, without pivoting and in half the
 * operations of linalg_lanes_invert. Needs linalg_kernel_scratch(d) doubles of scratch, aligned to
 * MEMORY_ALIGNMENT. */
static inline size_t linalg_kernel_scratch(int d) { return (size_t)d * 2 * 4 * 8; }
void linalg_kernel_invert(int d, int lanes, double *a, double *scratch);
