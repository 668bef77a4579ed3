/* Designs: the sequence of Sobol against SciPy, how evenly scrambled points and Latin hypercubes fill every
 * interval, and what the points of saltelli have in common. */
#include "harness.h"
#include "sobol_golden.h"

#include "core/design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *points_of(DesignKind kind, int points, int dimensions, uint64_t seed) {
  const Design design = {
      .kind = kind, .points = points, .dimensions = dimensions, .key = rng_key(seed, RNG_DESIGN)};
  double *x = malloc((size_t)design_count(&design) * (size_t)dimensions * sizeof *x);
  design_points(&design, x);
  return x;
}

static void sobol_is_that_of_scipy(void) {
  int wrong = 0;
  for (int j = 0; j < GOLDEN_DIMENSIONS; j++) {
    for (uint32_t i = 0; i < UINT32_C(1) << GOLDEN_BITS; i += i < 64 ? 1 : 977) {
      uint32_t sum = 0;
      for (int k = 0; k < GOLDEN_BITS; k++)
        if (i >> k & 1) sum ^= golden_sobol[j][k];
      wrong += design_sobol_digits(j, i) != sum;
    }
  }
  CU_ASSERT_EQUAL(wrong, 0);
}

/* Checks that each of n equal intervals of every coordinate holds one of n points. */
static void check_strata(int n, int d, const double *x) {
  char *seen = malloc((size_t)n);
  int wrong = 0;
  for (int j = 0; j < d; j++) {
    memset(seen, 0, (size_t)n);
    for (int i = 0; i < n; i++) {
      const double value = x[i * d + j];
      wrong += !(value > 0 && value < 1) || seen[(int)(value * n)];
      seen[(int)(value * n)] = 1;
    }
  }
  CU_ASSERT_EQUAL(wrong, 0);
  free(seen);
}

static void every_interval_has_a_point(void) {
  for (int n = 2; n <= 512; n *= 4) {
    double *x = points_of(DESIGN_SOBOL, n, 32, 5);
    check_strata(n, 32, x);
    free(x);
  }
  for (int n = 2; n < 300; n = 3 * n + 1) {
    double *x = points_of(DESIGN_LATIN, n, 40, 5);
    check_strata(n, 40, x);
    free(x);
  }
}

/* The first two coordinates of Sobol are a (0, m, 2)-net, and a scramble keeps that: each of the 2^m
 * rectangles of 2^-a by 2^(a - m) holds one of 2^m points. */
static void scrambled_points_are_a_net(void) {
  enum { M = 8, N = 1 << M };
  double *x = points_of(DESIGN_SOBOL, N, 2, 11);
  for (int a = 0; a <= M; a++) {
    int seen[N] = {0}, wrong = 0;
    for (int i = 0; i < N; i++) {
      const int column = (int)(x[2 * i] * (1 << a)), row = (int)(x[2 * i + 1] * (1 << (M - a)));
      wrong += seen[column << (M - a) | row]++;
    }
    CU_ASSERT_EQUAL(wrong, 0);
  }
  free(x);
}

/* Means of f = prod (1 + 0.5 (x_j - 0.5)) over scrambled points are unbiased: over S seeds, the mean is
 * within 5 of its standard errors of 1. Their variance is below that of as many independent points, by a
 * factor that is above 300 for 256 points in five dimensions; 30 is asked for. */
static void scrambles_are_unbiased(void) {
  enum { SEEDS = 64, N = 256, D = 5 };
  double sum = 0, squares = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    double *x = points_of(DESIGN_SOBOL, N, D, seed), mean = 0;
    for (int i = 0; i < N; i++) {
      double product = 1;
      for (int j = 0; j < D; j++) product *= 1 + 0.5 * (x[i * D + j] - 0.5);
      mean += product / N;
    }
    sum += mean - 1;
    squares += (mean - 1) * (mean - 1);
    free(x);
  }
  const double variance = squares / SEEDS, independent = (pow(1 + 0.25 / 12, D) - 1) / N;
  CU_ASSERT(fabs(sum / SEEDS) < 5 * sqrt(variance / SEEDS));
  CU_ASSERT(variance < independent / 30);
}

static void more_points_begin_with_fewer(void) {
  enum { D = 3 };
  double *few = points_of(DESIGN_SOBOL, 16, D, 7), *many = points_of(DESIGN_SOBOL, 64, D, 7),
         *other = points_of(DESIGN_SOBOL, 16, D, 8);
  CU_ASSERT(memcmp(few, many, 16 * D * sizeof *few) == 0);
  CU_ASSERT(memcmp(few, other, 16 * D * sizeof *few) != 0);
  double *rows = points_of(DESIGN_SALTELLI, 4, D, 7), *more = points_of(DESIGN_SALTELLI, 8, D, 7);
  CU_ASSERT(memcmp(rows, more, 4 * D * (D + 2) * sizeof *rows) == 0);
  free(few), free(many), free(other), free(rows), free(more);
}

static void saltelli_exchanges_one_coordinate(void) {
  enum { N = 16, D = 4 };
  const Design design = {.kind = DESIGN_SALTELLI, .points = N, .dimensions = D};
  double *x = points_of(DESIGN_SALTELLI, N, D, 3), *sobol = points_of(DESIGN_SOBOL, N, 2 * D, 3);
  int wrong = 0;
  CU_ASSERT_EQUAL(design_count(&design), N * (D + 2));
  for (int i = 0; i < N; i++) {
    const double *group = x + i * (D + 2) * D, *a = sobol + i * 2 * D, *b = a + D;
    for (int k = 0; k < D + 2; k++)
      for (int j = 0; j < D; j++) wrong += group[k * D + j] != (k == D + 1 || k == j + 1 ? b : a)[j];
  }
  CU_ASSERT_EQUAL(wrong, 0);
  free(x), free(sobol);
}

int main(void) {
  CU_TestInfo tests[] = {{"sobol is that of SciPy", sobol_is_that_of_scipy},
                         {"every interval has a point", every_interval_has_a_point},
                         {"scrambled points are a net", scrambled_points_are_a_net},
                         {"scrambles are unbiased", scrambles_are_unbiased},
                         {"more points begin with fewer", more_points_begin_with_fewer},
                         {"saltelli exchanges one coordinate", saltelli_exchanges_one_coordinate},
                         CU_TEST_INFO_NULL};
  return harness_run("design", tests);
}
