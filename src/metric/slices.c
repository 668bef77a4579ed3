#include "metric/slices.h"

#include "core/simd.h"
#include "metric/coupling.h"

#include <math.h>
#include <stddef.h>

SIMD_CLONES
void slices_project(int d, int n, const double *restrict x, const double *restrict direction,
                    double *restrict out) {
  for (size_t i = 0; i < (size_t)n * SLICES; i++) out[i] = 0;
  for (int k = 0; k < d; k++) {
    const double *restrict row = x + (size_t)k * (size_t)n;
    for (int i = 0; i < n; i++)
      for (int lane = 0; lane < SLICES; lane++)
        out[(size_t)i * SLICES + lane] += direction[k * SLICES + lane] * row[i];
  }
}

/* Puts the smaller one of each pair of first[count], second[count] into the first, the larger into the
 * second. */
static inline void exchange_values(size_t count, double *restrict first, double *restrict second) {
  for (size_t i = 0; i < count; i++) {
    const double a = first[i], b = second[i];
    first[i] = a < b ? a : b;
    second[i] = a < b ? b : a;
  }
}

/* Sorts the slices. The pairs of a pass are i and i + apart with (i & p) = r: runs of p rows, of which
 * each second one takes part. */
SIMD_CLONES
void slices_sort(int n, double *values) {
  int half = 1;
  while (2 * half < n) half *= 2;
  for (int p = half; p > 0; p /= 2)
    for (int q = half, r = 0, apart = p;; apart = q - p, q /= 2, r = p) {
      for (int i = r; i + apart < n; i += 2 * p) {
        const int rows = n - apart - i < p ? n - apart - i : p;
        exchange_values((size_t)rows * SLICES, values + (size_t)i * SLICES,
                        values + (size_t)(i + apart) * SLICES);
      }
      if (q == p) break;
    }
}

void slices_distance(int n, const double *x, int m, const double *y, double *out) {
  const double units = (double)n * m;
  for (int lane = 0; lane < SLICES; lane++) out[lane] = 0;
  for (Coupling at = coupling_begin(n, m); at.mass > 0; coupling_next(&at)) {
    const double share = at.mass / units;
    const double *of_x = x + (size_t)at.i * SLICES, *of_y = y + (size_t)at.j * SLICES;
    for (int lane = 0; lane < SLICES; lane++) out[lane] += share * fabs(of_x[lane] - of_y[lane]);
  }
}
