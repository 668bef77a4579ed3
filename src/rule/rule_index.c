/* Indices and their running maximum, VECTORS vectors of runs at a time: neither is ever stored. Compiled once
 * for each instruction level (core/simd.h). */
#include "rule/rule_index.h"

#include "core/matrix_tile.h"

enum { VECTORS = 4, LANES = VECTORS * SIMD_DOUBLES };

/* Loads vector v of `count` runs; lanes beyond them are 0. */
INLINE Real load_runs(const double *from, int count, int v) {
  const int left = count - v * SIMD_DOUBLES;
  Real x = {0};
  if (count == LANES || left >= SIMD_DOUBLES)
    matrix_tile_load(SIMD_DOUBLES, from + v * SIMD_DOUBLES, &x);
  else if (left > 0)
    matrix_tile_load(left, from + v * SIMD_DOUBLES, &x);
  return x;
}

/* Computes square[VECTORS] <- phi' S phi, from the lower triangle: the sum over i of phi_i (2 sum over j < i
 * of S_ij phi_j + S_ii phi_i). It can be below 0 only by rounding, and is then set to 0. */
INLINE void index_square(int count, int d, size_t stride, const double *phi, const double *covariance,
                         Real *square) {
  for (int v = 0; v < VECTORS; v++) square[v] = (Real){0};
  for (int i = 0; i < d; i++, covariance += (size_t)d * stride) {
    Real row[VECTORS];
    for (int v = 0; v < VECTORS; v++) row[v] = (Real){0};
    for (int j = 0; j < i; j++)
      for (int v = 0; v < VECTORS; v++)
        row[v] += load_runs(covariance + (size_t)j * stride, count, v) *
                  load_runs(phi + (size_t)j * stride, count, v);
    for (int v = 0; v < VECTORS; v++) {
      const Real x = load_runs(phi + (size_t)i * stride, count, v);
      square[v] += x * (row[v] + row[v] + x * load_runs(covariance + (size_t)i * stride, count, v));
    }
  }
  for (int v = 0; v < VECTORS; v++) square[v] = real_max(square[v], real_of(0));
}

INLINE void best_of_vectors(int count, int arms, int d, size_t stride, const double *features,
                            const double *mean, const double *covariance, double z, int *arm,
                            double *highest) {
  Real top[VECTORS];
  Mask taken[VECTORS];
  for (int v = 0; v < VECTORS; v++) top[v] = real_of(-INFINITY), taken[v] = (Mask){0};
  for (int k = 0; k < arms; k++, features += (size_t)d * stride) {
    Real index[VECTORS], square[VECTORS];
    for (int v = 0; v < VECTORS; v++) index[v] = (Real){0};
    for (int i = 0; i < d; i++)
      for (int v = 0; v < VECTORS; v++)
        index[v] += load_runs(features + (size_t)i * stride, count, v) *
                    load_runs(mean + (size_t)i * stride, count, v);
    if (covariance) {
      index_square(count, d, stride, features, covariance, square);
      for (int v = 0; v < VECTORS; v++) index[v] += z * real_root(square[v]);
    }
    for (int v = 0; v < VECTORS; v++) {
      const Mask better = index[v] > top[v];
      top[v] = real_choose(better, index[v], top[v]);
      taken[v] = (better & k) | (~better & taken[v]);
    }
  }
  for (int n = 0; n < count; n++) arm[n] = (int)taken[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
  for (int n = 0; n < count && highest; n++) highest[n] = top[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
}

void rule_index(int arms, int d, int runs, const double *features, const double *mean,
                const double *covariance, double z, int *arm, double *top) {
  const size_t stride = (size_t)runs;
  int b = 0;
  for (; b + LANES <= runs; b += LANES)
    if (covariance)
      best_of_vectors(LANES, arms, d, stride, features + b, mean + b, covariance + b, z, arm + b,
                      top ? top + b : NULL);
    else
      best_of_vectors(LANES, arms, d, stride, features + b, mean + b, NULL, 0, arm + b, top ? top + b : NULL);
  if (b < runs)
    best_of_vectors(runs - b, arms, d, stride, features + b, mean + b, covariance ? covariance + b : NULL, z,
                    arm + b, top ? top + b : NULL);
}
