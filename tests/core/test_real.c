/* The algebra of eight runs (core/real.h) against that of many lanes (core/linalg/linalg.h) and against
 * definitions. */
#include "harness.h"

#include "core/linalg/linalg.h"
#include "core/linalg/linalg_real.h"
#include "core/real.h"
#include "core/rng.h"

enum { MOST = 5, LANES = 11 }; /* eight lanes, and three */

/* Fills in a[d, d, LANES], symmetric and positive definite. */
static void fill(int d, double *a) {
  double g[MOST * MOST * LANES];
  RngLanes rng = {.key = rng_key(3, RNG_TEST), .draws = 1, .lanes = LANES};
  rng_lanes_normal(&rng, d * d, g);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      for (int n = 0; n < LANES; n++) {
        double sum = i == j;
        for (int k = 0; k < d; k++) sum += g[(i * d + k) * LANES + n] * g[(j * d + k) * LANES + n];
        a[(i * d + j) * LANES + n] = sum;
      }
}

/* Checks L as linalg_factor_cholesky has it, W L = I, and the logarithm of its diagonal. */
static void test_cholesky(void) {
  for (int d = 1; d <= MOST; d++) {
    double a[MOST * MOST * LANES], l[MOST * MOST * LANES], w[MOST * MOST * LANES], log_sum[LANES];
    fill(d, a);
    for (RealLanes at = real_begin(LANES); at.count > 0; real_next(&at)) {
      Real x[MOST * MOST], inverse[MOST], jitters = {0}, sum = {0};
      real_load(at, d * d, a, x);
      linalg_real_cholesky(d, x, inverse, &jitters);
      real_store(at, d * d, x, l);
      linalg_real_add_log(d, -2, d + 1, x, &sum);
      real_store(at, 1, &sum, log_sum);
      linalg_real_invert_triangle(d, x, inverse);
      real_store(at, d * d, x, w);
      for (size_t k = 0; k < at.count; k++) CU_ASSERT_EQUAL(jitters[k], 0);
    }
    linalg_factor_cholesky(d, LANES, a, NULL);
    for (int n = 0; n < LANES; n++) {
      double expected = 0;
      for (int i = 0; i < d; i++) {
        expected -= 2 * log(a[(i * d + i) * LANES + n]);
        for (int j = 0; j <= i; j++) {
          double sum = 0;
          for (int k = j; k <= i; k++) sum += w[(i * d + k) * LANES + n] * a[(k * d + j) * LANES + n];
          CHECK_NEAR(l[(i * d + j) * LANES + n], a[(i * d + j) * LANES + n], 1e-13);
          CHECK_NEAR(sum, i == j, 1e-13);
        }
      }
      CHECK_NEAR(log_sum[n], expected, 1e-13);
    }
  }
}

/* Checks products with a matrix, its transpose and its lower triangle, on columns of the identity. */
static void test_multiply(void) {
  enum { D = 3 };
  Real a[D * D], unit[D], out[D];
  for (int i = 0; i < D * D; i++)
    for (int n = 0; n < VECTOR_LANES; n++) a[i][n] = 10 * i + n;
  for (int j = 0; j < D; j++) {
    for (int i = 0; i < D; i++) unit[i] = (Real){0} + (i == j);
    for (int n = 0; n < VECTOR_LANES; n++)
      for (int i = 0; i < D; i++) {
        linalg_real_multiply(D, a, unit, out);
        CU_ASSERT_EQUAL(out[i][n], a[i * D + j][n]);
        linalg_real_multiply_transposed(D, a, unit, out);
        CU_ASSERT_EQUAL(out[i][n], a[j * D + i][n]);
        linalg_real_lower(D, a, unit, out);
        CU_ASSERT_EQUAL(out[i][n], j <= i ? a[i * D + j][n] : 0);
        linalg_real_lower_transposed(D, a, unit, out);
        CU_ASSERT_EQUAL(out[i][n], i <= j ? a[j * D + i][n] : 0);
      }
  }
}

/* Checks jitter: [[1, 1], [1, 1]] and [[4, 2], [2, -3]] are not positive definite; the other lanes are
 * unaffected. */
static void test_jitter(void) {
  double a[4 * VECTOR_LANES];
  int counted[VECTOR_LANES] = {0};
  Real x[4], inverse[2], jitters = {0};
  for (int n = 0; n < VECTOR_LANES; n++) {
    const double lane[3][4] = {{1, 1, 1, 1}, {4, 2, 2, -3}, {4, 2, 2, 5}};
    for (int k = 0; k < 4; k++) a[k * VECTOR_LANES + n] = lane[n < 2 ? n : 2][k];
  }
  real_load(real_begin(VECTOR_LANES), 4, a, x);
  linalg_real_cholesky(2, x, inverse, &jitters);
  linalg_factor_cholesky(2, VECTOR_LANES, a, counted);
  for (int n = 0; n < VECTOR_LANES; n++) {
    CU_ASSERT_EQUAL(jitters[n], n < 2);
    CU_ASSERT_EQUAL(jitters[n], counted[n]);
    for (int k = 0; k < 4; k++)
      if (k != 1) CHECK_NEAR(x[k][n], a[k * VECTOR_LANES + n], 1e-15);
  }
}

/* Checks that what lies beyond the lanes is neither read nor written. */
static void test_last_lanes(void) {
  double from[2 * LANES], to[2 * LANES + 1];
  for (int k = 0; k < 2 * LANES; k++) from[k] = k + 1;
  for (int k = 0; k <= 2 * LANES; k++) to[k] = -1;
  for (RealLanes at = real_begin(LANES); at.count > 0; real_next(&at)) {
    Real x[2];
    real_load(at, 2, from, x);
    for (size_t k = at.count; k < VECTOR_LANES; k++) CU_ASSERT_EQUAL(x[1][k], 0);
    real_store(at, 2, x, to);
  }
  for (int k = 0; k < 2 * LANES; k++) CU_ASSERT_EQUAL(to[k], from[k]);
  CU_ASSERT_EQUAL(to[2 * LANES], -1);
}

int main(void) {
  CU_TestInfo tests[] = {{"Cholesky", test_cholesky},
                         {"products", test_multiply},
                         {"jitter", test_jitter},
                         {"the last lanes", test_last_lanes},
                         CU_TEST_INFO_NULL};
  return harness_run("real", tests);
}
