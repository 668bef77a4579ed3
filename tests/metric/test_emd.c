/* The earth mover's distance against POT (golden/emd.py), all permutations, and its own invariances. */
#include "harness.h"

#include "core/rng.h"
#include "emd_golden.h"
#include "metric/assignment.h"
#include "metric/emd.h"

#include <float.h>
#include <string.h>

/* Checks golden values to a part in 1e9, for the rounding of POT's potentials; exchanging the clouds to a
 * part in 1e12. */
static void test_golden(void) {
  SCRATCH_ARENA(memory);
  EmdGolden golden = emd_golden_open();
  Emd *emd;
  CHECK_OK(emd_create(&memory, 300, &emd));
  int equal = 0;
  for (int c = 0; c < golden.cases; c++) {
    EmdCase pair = emd_golden_case(&golden, c);
    double distance, swapped;
    if (pair.n != pair.m) continue;
    CHECK_OK(emd_distance(emd, &(Clouds){pair.d, pair.n, pair.m, pair.x, pair.y}, &distance));
    CHECK_NEAR(distance, pair.emd, 1e-9 * pair.emd);
    CHECK_OK(emd_distance(emd, &(Clouds){pair.d, pair.m, pair.n, pair.y, pair.x}, &swapped));
    CHECK_NEAR(swapped, distance, 1e-12 * pair.emd);
    equal++;
  }
  CU_ASSERT(equal >= 17);
  emd_golden_close(&golden);
}

enum { FEW = 6 };

/* Returns the least total length of all ways to match x[2, n] and y[2, n] from the k-th on. */
static double least_by_permutation(int n, const double *x, const double *y, int k, bool *used) {
  if (k == n) return 0;
  double least = INFINITY;
  for (int j = 0; j < n; j++) {
    if (used[j]) continue;
    used[j] = true;
    double length = hypot(x[k] - y[j], x[n + k] - y[n + j]) + least_by_permutation(n, x, y, k + 1, used);
    least = length < least ? length : least;
    used[j] = false;
  }
  return least;
}

/* Compares with all permutations; half of the problems have points on a grid of nine places, so ties and
 * equal points abound. */
static void test_permutations(void) {
  SCRATCH_ARENA(memory);
  Emd *emd;
  CHECK_OK(emd_create(&memory, FEW, &emd));
  Rng rng = {.key = rng_key(5, RNG_TEST)};
  for (int repeat = 0; repeat < 400; repeat++) {
    int n = 1 + repeat % FEW;
    double x[2 * FEW], y[2 * FEW], distance;
    bool used[FEW] = {false};
    rng_uniform(&rng, 2 * n, x);
    rng_uniform(&rng, 2 * n, y);
    for (int k = 0; k < 2 * n && repeat % 2; k++) x[k] = floor(3 * x[k]), y[k] = floor(3 * y[k]);
    CHECK_OK(emd_distance(emd, &(Clouds){2, n, n, x, y}, &distance));
    CHECK_NEAR(distance, least_by_permutation(n, x, y, 0, used) / n, 1e-14);
  }
}

/* Returns the dual objective of v, per row, with the best u for it, and the mean cost. */
static double dual_objective(int n, int stride, const double *cost, const double *v, double *mean) {
  double sum = 0;
  *mean = 0;
  for (int i = 0; i < n; i++) {
    double least = INFINITY;
    for (int j = 0; j < n; j++) {
      const double c = cost[i * stride + j];
      least = fmin(least, c - v[j]);
      *mean += c / n / n;
    }
    sum += (least + v[i]) / n;
  }
  return sum;
}

/* Checks reduced rows against plain loops, on costs with many equal ones. */
static void test_reduced_rows(void) {
  enum { MOST = 100 };
  static _Alignas(64) double c[MOST + ASSIGNMENT_LANES], v[MOST + ASSIGNMENT_LANES];
  Rng rng = {.key = rng_key(9, RNG_TEST)};
  for (int n = 2; n <= MOST; n++) {
    double least = INFINITY, second = INFINITY;
    int column = -1;
    memset(c, 0, sizeof c);
    for (int j = 0; j < n; j++) {
      c[j] = (double)rng_index(&rng, 20), v[j] = (double)rng_index(&rng, 20);
      const double value = c[j] - v[j];
      if (value < least)
        second = least, least = value, column = j;
      else
        second = fmin(second, value);
    }
    const int stride = assignment_stride(n);
    for (int j = n; j < stride; j++) c[j] = INFINITY;
    const AssignmentLeast found = assignment_two_least(stride, c, v);
    CU_ASSERT(found.value == least && found.second == second && found.column == column);
    CU_ASSERT(assignment_cost_least(stride, c, v) == least);
  }
}

/* Checks the auction: it ends with every row within epsilon of its best column, so its prices miss the
 * optimum by at most epsilon for each row, which has come down to 0.15 of the mean cost divided by n, and by
 * a fifth of it, to which costs are rounded; also where all points are far from all others, or one cloud is
 * shifted. */
static void test_auction(void) {
  SCRATCH_ARENA(memory);
  enum { N = 200, D = 2 };
  static _Alignas(64) double cost[N * (N + ASSIGNMENT_LANES)], v[N + ASSIGNMENT_LANES];
  static double x[D * N], y[D * N];
  static const double shifts[] = {0, 0.5, 1e4};
  const int stride = assignment_stride(N);
  Rng rng = {.key = rng_key(8, RNG_TEST)};
  Emd *emd;
  Assignment *assignment;
  CHECK_OK(emd_create(&memory, N, &emd));
  CHECK_OK(assignment_create(&memory, N, &assignment));
  for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
    double distance, mean, least = INFINITY;
    rng_normal(&rng, D * N, x);
    rng_normal(&rng, D * N, y);
    for (int i = 0; i < N; i++) x[i] += shifts[s];
    for (int i = 0; i < N * stride; i++) cost[i] = INFINITY;
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        cost[i * stride + j] = hypot(x[i] - y[j], x[N + i] - y[N + j]);
        least = fmin(least, cost[i * stride + j]);
      }
    CHECK_OK(emd_distance(emd, &(Clouds){D, N, N, x, y}, &distance));
    assignment_solve(assignment, N, cost, NULL, v);
    const double dual = dual_objective(N, stride, cost, v, &mean);
    CU_ASSERT(dual <= distance * (1 + 1e-12));
    CU_ASSERT(distance - dual <= 0.18 * (mean - least) / N);
  }
}

/* Checks closed forms. Equal clouds in another order: exactly 0. A shift of every point by s: |s|, because
 * the triangle inequality gives both bounds. */
static void test_closed_forms(void) {
  SCRATCH_ARENA(memory);
  enum { N = 200, D = 4 };
  static double x[D * N], y[D * N], scaled_x[D * N], scaled_y[D * N];
  Emd *emd;
  double distance, again;
  CHECK_OK(emd_create(&memory, N, &emd));
  Rng rng = {.key = rng_key(7, RNG_TEST)};
  rng_normal(&rng, D * N, x);
  for (int k = 0; k < D; k++)
    for (int i = 0; i < N; i++) y[k * N + i] = x[k * N + (77 * i + 5) % N];
  CHECK_OK(emd_distance(emd, &(Clouds){D, N, N, x, y}, &distance));
  CU_ASSERT_EQUAL(distance, 0);
  for (int i = 0; i < N; i++) y[i] += 3, y[3 * N + i] -= 4;
  CHECK_OK(emd_distance(emd, &(Clouds){D, N, N, x, y}, &distance));
  CHECK_NEAR(distance, 5, 1e-13);
  CHECK_OK(emd_distance(emd, &(Clouds){D, N, N, x, y}, &again));
  CU_ASSERT(memcmp(&distance, &again, sizeof again) == 0);
  for (int e = -1000; e <= 1000; e += 500) { /* at the edges of the range of a double */
    for (int k = 0; k < D * N; k++) scaled_x[k] = ldexp(x[k], e), scaled_y[k] = ldexp(y[k], e);
    CHECK_OK(emd_distance(emd, &(Clouds){D, N, N, scaled_x, scaled_y}, &distance));
    CHECK_NEAR(ldexp(distance, -e), 5, 1e-13);
  }
}

/* Checks unequal sizes: the first points of the larger cloud represent it. */
static void test_unequal_sizes(void) {
  SCRATCH_ARENA(memory);
  Emd *emd;
  double x[6] = {0, 1, 100, 0, 0, 100}, y[4] = {1, 0, 2, 0}, distance;
  CHECK_OK(emd_create(&memory, 3, &emd));
  CHECK_OK(emd_distance(emd, &(Clouds){2, 3, 2, x, y}, &distance));
  CHECK_NEAR(distance, 1, 1e-15); /* |(0, 0) - (0, 0)| and |(1, 0) - (1, 2)| */
  CHECK_OK(emd_distance(emd, &(Clouds){2, 2, 3, y, x}, &distance));
  CHECK_NEAR(distance, 1, 1e-15);
}

static void test_not_finite(void) {
  SCRATCH_ARENA(memory);
  Emd *emd;
  double x[3] = {0, 1, NAN}, y[3] = {1, 2, INFINITY}, distance;
  CHECK_OK(emd_create(&memory, 3, &emd));
  CHECK_FAILS(emd_distance(emd, &(Clouds){1, 3, 2, x, y}, &distance), STATUS_INPUT, "not finite");
  CHECK_FAILS(emd_distance(emd, &(Clouds){1, 2, 3, x, y}, &distance), STATUS_INPUT, "not finite");
  CHECK_OK(emd_distance(emd, &(Clouds){1, 2, 2, x, y}, &distance));
  CHECK_NEAR(distance, 1, 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"golden", test_golden},
                         {"permutations", test_permutations},
                         {"rows of reduced costs", test_reduced_rows},
                         {"auction", test_auction},
                         {"closed forms", test_closed_forms},
                         {"unequal sizes", test_unequal_sizes},
                         {"not finite", test_not_finite},
                         CU_TEST_INFO_NULL};
  return harness_run("emd", tests);
}
