/* Products of many small square matrices, lane last, for matrix_lanes.c; one version for each instruction
 * level (core/simd.h). All give the same sums in the same order. */
#ifndef CORE_MATRIX_KERNEL_H
#define CORE_MATRIX_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* Row and column strides of a matrix, {d, 1}, or of its transpose, {1, d}. */
typedef struct {
  size_t row, column;
} MatrixOrder;

/* c[d, d, lanes] = A B; where the product is known to be symmetric, from its lower triangle.
 * a[d, d, lanes] <- A^-1 by Gauss-Jordan elimination in place, without pivoting: for |A - I| < 1. */
#define MATRIX_KERNEL_DECLARE(level)                                                                         \
  void matrix_kernel_product_##level(int d, int lanes, const double *a, MatrixOrder of_a, const double *b,   \
                                     MatrixOrder of_b, bool symmetric, double *c);                           \
  void matrix_kernel_invert_##level(int d, int lanes, double *a);
MATRIX_KERNEL_DECLARE(v1)
MATRIX_KERNEL_DECLARE(v3)
MATRIX_KERNEL_DECLARE(v4)
#undef MATRIX_KERNEL_DECLARE

#endif
