/* Algebra of the small matrices of eight runs (core/real.h): a[d, d] row by row, one number for each run in
 * an entry. linalg_factor.h and linalg_lanes.h have the same for any number of lanes, in more passes. */
#pragma once

#include "core/real.h"

/* Computes `count` entries of y = A x, or of y = A' x with row = 1 and column = d, from a on; entry i has the
 * matrix's entries a[i row + j column]. They are summed side by side, so that each x[j] is loaded once for
 * all, and in the order that one entry by itself would have. */
INLINE void linalg_real_entries(int d, const int count, int row, int column, const Real *a, const Real *x,
                                Real *y) {
  for (int i = 0; i < count; i++) y[i] = a[i * row] * x[0];
  for (int j = 1; j < d; j++)
    for (int i = 0; i < count; i++) y[i] += a[i * row + j * column] * x[j];
}

INLINE void linalg_real_all_entries(int d, int row, int column, const Real *a, const Real *x, Real *y) {
  enum { TOGETHER = 4 };
  const int whole = d / TOGETHER * TOGETHER;
  for (int first = 0; first < whole; first += TOGETHER) {
    Real sum[TOGETHER];
    linalg_real_entries(d, TOGETHER, row, column, a + first * row, x, sum);
    for (int i = 0; i < TOGETHER; i++) y[first + i] = sum[i];
  }
  for (int i = whole; i < d; i++) {
    Real sum;
    linalg_real_entries(d, 1, row, column, a + i * row, x, &sum);
    y[i] = sum;
  }
}

/* Computes y = A x, or (below) y = A' x. */
INLINE void linalg_real_multiply(int d, const Real *a, const Real *x, Real *y) {
  linalg_real_all_entries(d, d, 1, a, x, y);
}
INLINE void linalg_real_multiply_transposed(int d, const Real *a, const Real *x, Real *y) {
  linalg_real_all_entries(d, 1, d, a, x, y);
}

/* Factors the lower triangle of A = L L' into L, with inverse[d] <- 1 / L_ii. A pivot that is not above
 * zero is jittered as in linalg_factor_cholesky, and adds one to jitters. */
INLINE void linalg_real_cholesky(int d, Real *a, Real *inverse, Real *jitters) {
  Real least = real_of(0x1p-1000);
  for (int i = 0; i < d; i++) least = real_max(0x1p-52 * a[i * d + i], least);
  for (int j = 0; j < d; j++) {
    Real pivot = a[j * d + j];
    for (int k = 0; k < j; k++) pivot -= a[j * d + k] * a[j * d + k];
    const Mask good = real_above(pivot, real_of(0));
    const Real kept = real_choose(good, pivot, least), root = real_inverse_root(kept);
    *jitters += real_choose(good, real_of(0), real_of(1));
    a[j * d + j] = kept * root;
    inverse[j] = root;
    for (int i = j + 1; i < d; i++) {
      Real sum = a[i * d + j];
      for (int k = 0; k < j; k++) sum -= a[i * d + k] * a[j * d + k];
      a[i * d + j] = (Real)((Mask)(sum * root) & good);
    }
  }
}

/* Inverts the lower triangle of L in place, with inverse[d] from linalg_real_cholesky. */
INLINE void linalg_real_invert_triangle(int d, Real *l, const Real *inverse) {
  for (int j = 0; j < d; j++) {
    l[j * d + j] = inverse[j];
    for (int i = j + 1; i < d; i++) {
      Real sum = l[i * d + j] * inverse[j];
      for (int k = j + 1; k < i; k++) sum += l[i * d + k] * l[k * d + j];
      l[i * d + j] = -sum * inverse[i];
    }
  }
}

/* Computes y = L x, or (below) y = L' x, for a lower triangle L. */
INLINE void linalg_real_lower(int d, const Real *l, const Real *x, Real *y) {
  for (int i = 0; i < d; i++) {
    Real sum = l[i * d] * x[0];
    for (int j = 1; j <= i; j++) sum += l[i * d + j] * x[j];
    y[i] = sum;
  }
}
INLINE void linalg_real_lower_transposed(int d, const Real *l, const Real *x, Real *y) {
  for (int i = 0; i < d; i++) {
    Real sum = l[i * d + i] * x[i];
    for (int j = i + 1; j < d; j++) sum += l[j * d + i] * x[j];
    y[i] = sum;
  }
}

/* Adds `factor` times the log of the product of `count` numbers, every `step`-th of x, which lie between
 * 1e-30 and 1e30. */
INLINE void linalg_real_add_log(int count, double factor, int step, const Real *x, Real *sum) {
  enum { TOGETHER = 8 };
  for (int first = 0; first < count; first += TOGETHER) {
    Real product = x[first * step];
    for (int i = first + 1; i < count && i < first + TOGETHER; i++) product *= x[i * step];
    *sum += factor * real_log(product);
  }
}
