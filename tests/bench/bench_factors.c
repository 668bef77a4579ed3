/* Measures Cholesky factors of 64 matrices, side by side in lanes and one by one by LAPACK, relative to the
 * peak of the core: d^3 / 3 operations each. Usage: bench_factors, which writes JSON for peers.py */
#include "core/clock.h"
#include "core/linalg/linalg.h"
#include "core/simd_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64, MOST = 50, TRIES = 15 };
static const double SECONDS = 0.02; /* minimum of a try */

static double matrices[MOST * MOST * LANES], work[MOST * MOST * LANES];

/* Fills in diagonally dominant matrices: 1 + d on the diagonal, 1 / (1 + |i - j|) off it, each lane scaled by
 * its own factor; lane last, or matrix after matrix. */
static void fill(int d, bool lane_last) {
  for (int n = 0; n < LANES; n++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        matrices[lane_last ? (i * d + j) * LANES + n : (n * d + i) * d + j] =
            (1 + 0.01 * n) * (i == j ? 1 + d : 1.0 / (1 + abs(i - j)));
}

static void factor_lanes(int d) { linalg_factor_cholesky(d, LANES, work, NULL); }

static void factor_singly(int d) {
  for (int n = 0; n < LANES; n++)
    if (linalg_cholesky(d, work + n * d * d) != STATUS_OK) abort();
}

/* Returns the CPU seconds of a factor, less those of the copy that restores the matrices. */
static double seconds_of(int d, void (*factor)(int d), bool lane_last) {
  const size_t bytes = (size_t)(d * d * LANES) * sizeof *work;
  double best[2] = {INFINITY, INFINITY};
  fill(d, lane_last);
  for (int i = 0; i < 2 * TRIES; i++) {
    const bool with = i % 2 == 0;
    const double start = clock_cpu();
    double calls = 0, spent = 0;
    for (; spent < SECONDS; calls++, spent = clock_cpu() - start) {
      memcpy(work, matrices, bytes);
      if (with) factor(d);
    }
    best[with] = fmin(best[with], spent / calls / LANES);
  }
  return best[1] - best[0];
}

int main(void) {
  const int dimensions[] = {5, 10, 20, 50};
  for (int i = 0; i < 4; i++) {
    const int d = dimensions[i];
    const double peak = simd_peak_best(simd_peak_double), operations = pow(d, 3) / 3,
                 lanes = seconds_of(d, factor_lanes, true), singly = seconds_of(d, factor_singly, false);
    printf("%s{\"d\": %d, \"seconds_lanes\": %.6g, \"seconds_lapack\": %.6g, \"lanes_of_peak\": %.6g, "
           "\"lapack_of_peak\": %.6g}",
           i > 0 ? ",\n " : "[", d, lanes, singly, operations / lanes / peak, operations / singly / peak);
  }
  printf("]\n");
  return 0;
}
