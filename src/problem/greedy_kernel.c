/* Scores and their running maximum, VECTORS vectors of runs at a time: neither is ever stored. Compiled once
 * for each instruction level (core/simd.h). */
#include "problem/greedy_kernel.h"

#include "core/matrix_tile.h"

#include <math.h>
#include <stddef.h>

enum { VECTORS = 4, LANES = VECTORS * SIMD_DOUBLES };

typedef long long Integer __attribute__((vector_size(8 * SIMD_DOUBLES)));

/* Vector v of `count` runs; beyond them it is 0. */
TILE_INLINE Real load(const double *from, int count, int v) {
  const int left = count - v * SIMD_DOUBLES;
  Real x = {0};
  if (count == LANES || left >= SIMD_DOUBLES)
    tile_load(SIMD_DOUBLES, from + v * SIMD_DOUBLES, &x);
  else if (left > 0)
    tile_load(left, from + v * SIMD_DOUBLES, &x);
  return x;
}

TILE_INLINE void best_of_vectors(int count, int arms, int d, size_t stride, const double *features,
                                 const double *theta, int *arm) {
  Real top[VECTORS];
  Integer taken[VECTORS];
  for (int v = 0; v < VECTORS; v++) top[v] = (Real){0} - INFINITY, taken[v] = (Integer){0};
  for (int k = 0; k < arms; k++, features += (size_t)d * stride) {
    Real score[VECTORS];
    for (int v = 0; v < VECTORS; v++) score[v] = (Real){0};
    for (int i = 0; i < d; i++)
      for (int v = 0; v < VECTORS; v++)
        score[v] +=
            load(features + (size_t)i * stride, count, v) * load(theta + (size_t)i * stride, count, v);
    for (int v = 0; v < VECTORS; v++) {
      const Integer better = score[v] > top[v];
      top[v] = (Real)((better & (Integer)score[v]) | (~better & (Integer)top[v]));
      taken[v] = (better & k) | (~better & taken[v]);
    }
  }
  for (int n = 0; n < count; n++) arm[n] = (int)taken[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
}

void SIMD_NAME(greedy_kernel)(int arms, int d, int runs, const double *features, const double *theta,
                              int *arm) {
  int b = 0;
  for (; b + LANES <= runs; b += LANES)
    best_of_vectors(LANES, arms, d, (size_t)runs, features + b, theta + b, arm + b);
  if (b < runs) best_of_vectors(runs - b, arms, d, (size_t)runs, features + b, theta + b, arm + b);
}
