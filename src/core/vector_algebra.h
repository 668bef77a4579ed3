/* The algebra of small matrices for SPECIAL_VECTOR lanes at once, written as for one: every number is a
 * vector, a[d, d] is d^2 of them, row by row. For functions marked SIMD_CLONES, into every version of which
 * it is inlined; core/linalg.h has the same for whole blocks of lanes, in more passes. */
#ifndef CORE_VECTOR_ALGEBRA_H
#define CORE_VECTOR_ALGEBRA_H

#include "core/special.h"

#include <stddef.h>
#include <string.h>

#define STRIP_INLINE static inline __attribute__((always_inline))

/* Lanes n .. n + count - 1 of blocks whose lane is last. */
typedef struct {
  size_t first, count, lanes;
} Strip;

/* for (Strip strip = strip_begin(lanes); strip.count > 0; strip_next(&strip)), the last one with what is left
 * of the lanes. */
STRIP_INLINE Strip strip_at(size_t first, size_t lanes) {
  const size_t left = lanes - first;
  return (Strip){first, left < SPECIAL_VECTOR ? left : SPECIAL_VECTOR, lanes};
}
STRIP_INLINE Strip strip_begin(int lanes) { return strip_at(0, (size_t)lanes); }
STRIP_INLINE void strip_next(Strip *strip) { *strip = strip_at(strip->first + strip->count, strip->lanes); }

/* to[rows] <- from[rows, lanes], zeros in lanes beyond the last; and back. */
STRIP_INLINE void strip_load(Strip strip, int rows, const double *from, SpecialReal *to) {
  for (int k = 0; k < rows; k++, from += strip.lanes) {
    SpecialReal x = {0};
    if (strip.count == SPECIAL_VECTOR)
      memcpy(&x, from + strip.first, sizeof x);
    else
      memcpy(&x, from + strip.first, strip.count * sizeof *from);
    to[k] = x;
  }
}
STRIP_INLINE void strip_store(Strip strip, int rows, const SpecialReal *from, double *to) {
  for (int k = 0; k < rows; k++, to += strip.lanes) {
    const SpecialReal x = from[k];
    if (strip.count == SPECIAL_VECTOR)
      memcpy(to + strip.first, &x, sizeof x);
    else
      memcpy(to + strip.first, &x, strip.count * sizeof *to);
  }
}

/* y = A x; y = A' x. */
STRIP_INLINE void strip_multiply(int d, const SpecialReal *a, const SpecialReal *x, SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = a[i * d] * x[0];
    for (int j = 1; j < d; j++) sum += a[i * d + j] * x[j];
    y[i] = sum;
  }
}
STRIP_INLINE void strip_multiply_transposed(int d, const SpecialReal *a, const SpecialReal *x,
                                            SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = a[i] * x[0];
    for (int j = 1; j < d; j++) sum += a[j * d + i] * x[j];
    y[i] = sum;
  }
}

/* The lower triangle of A = L L' <- L, and inverse[d] <- 1 / L_ii. A pivot that is not above zero is jittered
 * as in linalg_cholesky_lanes, and adds one to jitters. */
STRIP_INLINE void strip_cholesky(int d, SpecialReal *a, SpecialReal *inverse, SpecialReal *jitters) {
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

/* The lower triangle of L <- L^-1, with inverse[d] from strip_cholesky. */
STRIP_INLINE void strip_invert_triangle(int d, SpecialReal *l, const SpecialReal *inverse) {
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
STRIP_INLINE void strip_lower(int d, const SpecialReal *l, const SpecialReal *x, SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = l[i * d] * x[0];
    for (int j = 1; j <= i; j++) sum += l[i * d + j] * x[j];
    y[i] = sum;
  }
}
STRIP_INLINE void strip_lower_transposed(int d, const SpecialReal *l, const SpecialReal *x, SpecialReal *y) {
  for (int i = 0; i < d; i++) {
    SpecialReal sum = l[i * d + i] * x[i];
    for (int j = i + 1; j < d; j++) sum += l[j * d + i] * x[j];
    y[i] = sum;
  }
}

/* sum += factor log of the product of the diagonal of A, whose elements lie between 1e-30 and 1e30. */
STRIP_INLINE void strip_add_log_diagonal(int d, double factor, const SpecialReal *a, SpecialReal *sum) {
  enum { TOGETHER = 8 };
  for (int first = 0; first < d; first += TOGETHER) {
    SpecialReal product = a[first * d + first];
    for (int i = first + 1; i < d && i < first + TOGETHER; i++) product *= a[i * d + i];
    special_log(&product);
    *sum += factor * product;
  }
}

#endif
