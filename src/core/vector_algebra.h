/* The algebra of small matrices for VECTOR_LANES lanes at once, written as for one: every number is a
 * vector, a[d, d] is d^2 of them, row by row. For functions marked SIMD_CLONES, into every version of which
 * it is inlined; core/linalg.h has the same for any number of lanes, in more passes. */
#ifndef CORE_VECTOR_ALGEBRA_H
#define CORE_VECTOR_ALGEBRA_H

#include "core/special.h"

#include <stddef.h>
#include <string.h>

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* Lanes n .. n + count - 1 of arrays whose lane is last. */
typedef struct {
  size_t first, count, lanes;
} VectorLanes;

/* for (VectorLanes at = vector_begin(lanes); at.count > 0; vector_next(&at)), the last one with what is left
 * of the lanes. */
VECTOR_INLINE VectorLanes vector_at(size_t first, size_t lanes) {
  const size_t left = lanes - first;
  return (VectorLanes){first, left < VECTOR_LANES ? left : VECTOR_LANES, lanes};
}
VECTOR_INLINE VectorLanes vector_begin(int lanes) { return vector_at(0, (size_t)lanes); }
VECTOR_INLINE void vector_next(VectorLanes *at) { *at = vector_at(at->first + at->count, at->lanes); }

/* to[rows] <- from[rows, lanes], zeros in lanes beyond the last; and back. */
VECTOR_INLINE void vector_load(VectorLanes at, int rows, const double *from, SpecialReal *to) {
  for (int k = 0; k < rows; k++, from += at.lanes) {
    SpecialReal x = {0};
    if (at.count == VECTOR_LANES)
      memcpy(&x, from + at.first, sizeof x);
    else
      memcpy(&x, from + at.first, at.count * sizeof *from);
    to[k] = x;
  }
}
VECTOR_INLINE void vector_store(VectorLanes at, int rows, const SpecialReal *from, double *to) {
  for (int k = 0; k < rows; k++, to += at.lanes) {
    const SpecialReal x = from[k];
    if (at.count == VECTOR_LANES)
      memcpy(to + at.first, &x, sizeof x);
    else
      memcpy(to + at.first, &x, at.count * sizeof *to);
  }
}

/* y = A x; y = A' x. */
VECTOR_INLINE void vector_multiply(int d, const SpecialReal *a, const SpecialReal *x, SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = a[i * d] * x[0];
    for (int j = 1; j < d; j++) sum += a[i * d + j] * x[j];
    y[i] = sum;
  }
}
VECTOR_INLINE void vector_multiply_transposed(int d, const SpecialReal *a, const SpecialReal *x,
                                              SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = a[i] * x[0];
    for (int j = 1; j < d; j++) sum += a[j * d + i] * x[j];
    y[i] = sum;
  }
}

/* The lower triangle of A = L L' <- L, and inverse[d] <- 1 / L_ii. A pivot that is not above zero is jittered
 * as in linalg_cholesky_lanes, and adds one to jitters. */
VECTOR_INLINE void vector_cholesky(int d, SpecialReal *a, SpecialReal *inverse, SpecialReal *jitters) {
  SpecialReal least = {0};
  least += 0x1p-1000;
  for (int i = 0; i < d; i++) {
    const SpecialReal scaled = 0x1p-52 * a[i * d + i];
    const SpecialBits larger = scaled > least;
    least = (SpecialReal)(((SpecialBits)scaled & larger) | ((SpecialBits)least & ~larger));
  }
  for (int j = 0; j < d; j++) {
    SpecialReal pivot = a[j * d + j];
    for (int k = 0; k < j; k++) pivot -= a[j * d + k] * a[j * d + k];
    const SpecialBits good = pivot > 0;
    SpecialReal root = (SpecialReal)(((SpecialBits)pivot & good) | ((SpecialBits)least & ~good));
    const SpecialReal kept = root;
    special_inverse_root(&root);
    *jitters += (SpecialReal)((SpecialBits)((SpecialReal){0} + 1) & ~good);
    a[j * d + j] = kept * root;
    inverse[j] = root;
    for (int i = j + 1; i < d; i++) {
      SpecialReal sum = a[i * d + j];
      for (int k = 0; k < j; k++) sum -= a[i * d + k] * a[j * d + k];
      a[i * d + j] = (SpecialReal)((SpecialBits)(sum * root) & good);
    }
  }
}

/* The lower triangle of L <- L^-1, with inverse[d] from vector_cholesky. */
VECTOR_INLINE void vector_invert_triangle(int d, SpecialReal *l, const SpecialReal *inverse) {
  for (int j = 0; j < d; j++) {
    l[j * d + j] = inverse[j];
    for (int i = j + 1; i < d; i++) {
      SpecialReal sum = l[i * d + j] * inverse[j];
      for (int k = j + 1; k < i; k++) sum += l[i * d + k] * l[k * d + j];
      l[i * d + j] = -sum * inverse[i];
    }
  }
}

/* y = L x and y = L' x of a lower triangle. */
VECTOR_INLINE void vector_lower(int d, const SpecialReal *l, const SpecialReal *x, SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = l[i * d] * x[0];
    for (int j = 1; j <= i; j++) sum += l[i * d + j] * x[j];
    y[i] = sum;
  }
}
VECTOR_INLINE void vector_lower_transposed(int d, const SpecialReal *l, const SpecialReal *x,
                                           SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = l[i * d + i] * x[i];
    for (int j = i + 1; j < d; j++) sum += l[j * d + i] * x[j];
    y[i] = sum;
  }
}

/* sum += factor log of the product of `count` numbers, every `step`-th of x, that lie between 1e-30 and 1e30.
 */
VECTOR_INLINE void vector_add_log(int count, double factor, int step, const SpecialReal *x,
                                  SpecialReal *sum) {
  enum { TOGETHER = 8 };
  for (int first = 0; first < count; first += TOGETHER) {
    SpecialReal product = x[first * step];
    for (int i = first + 1; i < count && i < first + TOGETHER; i++) product *= x[i * step];
    special_log(&product);
    *sum += factor * product;
  }
}

/* The same of the diagonal of A. */
VECTOR_INLINE void vector_add_log_diagonal(int d, double factor, const SpecialReal *a, SpecialReal *sum) {
  vector_add_log(d, factor, d + 1, a, sum);
}

#endif
