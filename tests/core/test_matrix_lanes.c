/* Products, inverses, Cholesky factors and bounds of small matrices, lane last, against their definitions,
 * for every shape of a tile: dimensions and lanes that are multiples of its sizes and others. */
#include "harness.h"
#include "levels.h"

#include "core/linalg/linalg.h"
#include "core/linalg/linalg_kernel.h"
#include "core/linalg/linalg_plain.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LEVELS(linalg_factor_cholesky);

enum { D = 21, LANES = 21 }; /* at most */
static const int DIMENSIONS[] = {1, 2, 3, 4, 5, 7, 8, 12, 20, 21};
static const int COUNTS[] = {1, 3, 8, 16, 21};

static double a[D * D * LANES], b[D * D * LANES], c[D * D * LANES], expected[D * D * LANES];

static void each_shape(void (*check)(int d, int lanes)) {
  Rng rng = {.key = rng_key(3, RNG_TEST)};
  for (size_t i = 0; i < sizeof DIMENSIONS / sizeof *DIMENSIONS; i++)
    for (size_t n = 0; n < sizeof COUNTS / sizeof *COUNTS; n++) {
      const int d = DIMENSIONS[i], lanes = COUNTS[n];
      rng_normal(&rng, d * d * lanes, a);
      rng_normal(&rng, d * d * lanes, b);
      memset(c, 0xff, sizeof c);
      check(d, lanes);
    }
}

/* Returns entry (i, j) of lane n, or that of the transpose. */
static double at(const double *x, int d, int lanes, bool transposed, int i, int j, int n) {
  return x[(transposed ? j * d + i : i * d + j) * lanes + n];
}

/* Checks c against the product of plain loops, to d roundings of terms below 30. */
static void check_product(int d, int lanes, bool transpose_a, const double *right, bool transpose_right) {
  const MatrixShape shape = {.rows = d, .columns = d, .depth = d, .lanes = lanes};
  linalg_plain_product(shape, a, linalg_kernel_order(d, transpose_a), right,
                       linalg_kernel_order(d, transpose_right), false, expected);
  for (int k = 0; k < d * d * lanes; k++) CHECK_NEAR(c[k], expected[k], 1e-15 * 30 * d);
}

/* Checks C += A B of rectangles, [d, 3] and [3, d], taken from a and b. */
static void check_added(int d, int lanes) {
  enum { DEPTH = 3 };
  const MatrixShape shape = {.rows = d, .columns = d, .depth = DEPTH, .lanes = lanes};
  const MatrixOrder of_a = linalg_kernel_order(DEPTH, false), of_b = linalg_kernel_order(d, false);
  if (d < DEPTH) return;
  for (int k = 0; k < d * d * lanes; k++) c[k] = expected[k] = 1;
  linalg_kernel_product(shape, a, of_a, b, of_b, MATRIX_ADDED, c);
  linalg_plain_product(shape, a, of_a, b, of_b, true, expected);
  for (int k = 0; k < d * d * lanes; k++) CHECK_NEAR(c[k], expected[k], 1e-15 * 30 * d);
}

static void check_products(int d, int lanes) {
  linalg_lanes_product(d, lanes, a, b, c);
  check_product(d, lanes, false, b, false);
  linalg_lanes_product_transposed(d, lanes, a, b, c);
  check_product(d, lanes, true, b, false);
  linalg_lanes_product_by_transposed(d, lanes, a, b, c);
  check_product(d, lanes, false, b, true);
  check_added(d, lanes);
}

static void check_gram(int d, int lanes) {
  linalg_lanes_gram(d, lanes, a, c);
  check_product(d, lanes, true, a, false);
  for (int n = 0; n < lanes; n++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < i; j++)
        CU_ASSERT_TRUE(at(c, d, lanes, false, i, j, n) == at(c, d, lanes, false, j, i, n));
}

/* Checks that the bits are the same at every place among other lanes; a single lane of more than 16
 * dimensions goes to BLAS, so two of them. */
static void check_alone(int d, int lanes) {
  if (lanes < 2) return;
  linalg_lanes_product(d, lanes, a, b, c);
  for (int n = 0; n + 1 < lanes; n++) {
    double left[D * D * 2], right[D * D * 2], pair[D * D * 2];
    for (int k = 0; k < d * d; k++)
      for (int m = 0; m < 2; m++)
        left[2 * k + m] = a[k * lanes + n + m], right[2 * k + m] = b[k * lanes + n + m];
    linalg_lanes_product(d, 2, left, right, pair);
    for (int k = 0; k < d * d; k++) CU_ASSERT_TRUE(pair[2 * k] == c[k * lanes + n]);
  }
}

/* Checks A A^-1 = I, by the product; random matrices of these sizes have condition numbers up to some
 * thousand. */
static void check_inverse(int d, int lanes) {
  memcpy(b, a, sizeof b);
  linalg_lanes_invert(d, lanes, b, c);
  linalg_lanes_product(d, lanes, a, c, b);
  for (int n = 0; n < lanes; n++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) CHECK_NEAR(at(b, d, lanes, false, i, j, n), i == j, 1e-10);
}

/* Checks A A^-1 = I for A = I + G'G / d, whose condition number is about 5; symmetric to the last bit. */
static void check_definite(int d, int lanes) {
  const size_t matrix = (size_t)(d * d * lanes);
  static _Alignas(64) double work[D * 64];
  CU_ASSERT_TRUE(linalg_kernel_scratch(D) <= sizeof work / sizeof *work);
  linalg_lanes_gram(d, lanes, a, c);
  for (size_t k = 0; k < matrix; k++) c[k] = c[k] / d + (k / (size_t)lanes % (size_t)(d + 1) == 0);
  memcpy(b, c, matrix * sizeof *b);
  linalg_kernel_invert(d, lanes, b, work);
  for (int n = 0; n < lanes; n++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        double sum = 0;
        for (int k = 0; k < d; k++) sum += at(c, d, lanes, false, i, k, n) * at(b, d, lanes, false, k, j, n);
        CHECK_NEAR(sum, i == j, 1e-12);
        CU_ASSERT_TRUE(at(b, d, lanes, false, i, j, n) == at(b, d, lanes, false, j, i, n));
      }
}

/* Checks that the Rayleigh quotient of any vector, here of 20 power iterations, is below the bounds, and that
 * the fine bound is at most d^(1/8) above the largest eigenvalue. */
static void check_bounds(int d, int lanes) {
  double coarse[LANES], moment[LANES], fine[LANES],
      *scratch = calloc((size_t)(2 * d * d * lanes), sizeof *scratch);
  linalg_lanes_gram(d, lanes, a, c);
  linalg_lanes_coarse_bound(d, lanes, c, coarse);
  linalg_lanes_moment_bound(d, lanes, c, moment);
  linalg_lanes_fine_bound(d, lanes, c, fine, scratch);
  for (int n = 0; n < lanes; n++) {
    double x[D], top = 0;
    for (int i = 0; i < d; i++) x[i] = b[i];
    for (int power = 0; power < 20; power++) {
      double y[D], length = 0, before = 0;
      for (int i = 0; i < d; i++) {
        y[i] = 0;
        for (int j = 0; j < d; j++) y[i] += at(c, d, lanes, false, i, j, n) * x[j];
        length += y[i] * y[i], before += x[i] * x[i];
      }
      top = sqrt(length / before);
      for (int i = 0; i < d; i++) x[i] = y[i] / sqrt(length);
    }
    CU_ASSERT_TRUE(fine[n] >= top * (1 - 1e-12) && coarse[n] >= fine[n] * (1 - 1e-12));
    CU_ASSERT_TRUE(moment[n] >= top * (1 - 1e-12) && coarse[n] >= moment[n] * (1 - 1e-12));
    CU_ASSERT_TRUE(fine[n] <= 1.1 * top * pow(d, 0.125)); /* the iterations are within 10% of the top */
  }
  free(scratch);
}

/* Checks that factors at every instruction level are those of plain loops: the same bits where products and
 * sums are fused, else to some roundings. The Gram matrix of square Gaussian ones has a condition number of
 * about d^2; one lane is not definite. */
static void check_cholesky(int d, int lanes) {
  typedef void (*Kernel)(int d, int lanes, double *a, int *jitters);
  const Kernel kernels[] = {linalg_factor_cholesky_v1, linalg_factor_cholesky_v3, linalg_factor_cholesky_v4};
  const int levels = runnable_levels();
  const size_t size = (size_t)(d * d * lanes) * sizeof *a;
  int jitters[LANES] = {0};
  linalg_lanes_gram(d, lanes, a, c);
  for (int i = 0; i < d && lanes > 2; i++) c[(i * d + i) * lanes + 2] = i % 3 ? 1 : -1;
  for (int i = 0; i < d * d; i++) /* both halves of other lanes as they are, of this one the diagonal */
    if (i % (d + 1) && lanes > 2) c[i * lanes + 2] = 0;
  memcpy(b, c, size);
  linalg_plain_cholesky(d, lanes, b, jitters);
  for (int level = 0; level < levels; level++) {
    int counted[LANES] = {0};
    memcpy(a, c, size);
    kernels[level](d, lanes, a, counted);
    for (int n = 0; n < lanes; n++) CU_ASSERT_EQUAL(counted[n], jitters[n]);
    for (int i = 0; i < d * d * lanes; i++) CHECK_NEAR(a[i], b[i], 1e-9 * d);
#ifndef SIMD_ONE_VERSION
    if (level > 0 && !linalg_lanes_is_single(d, lanes)) CU_ASSERT(memcmp(a, b, size) == 0);
#endif
  }
}

static void test_products(void) { each_shape(check_products); }
static void test_gram(void) { each_shape(check_gram); }
static void test_alone(void) { each_shape(check_alone); }
static void test_inverse(void) { each_shape(check_inverse); }
static void test_definite(void) { each_shape(check_definite); }
static void test_bounds(void) { each_shape(check_bounds); }
static void test_cholesky(void) { each_shape(check_cholesky); }

int main(void) {
  CU_TestInfo tests[] = {{"products", test_products},
                         {"a product that is symmetric", test_gram},
                         {"a lane does not notice the others", test_alone},
                         {"inverses", test_inverse},
                         {"inverses of definite matrices", test_definite},
                         {"bounds on eigenvalues", test_bounds},
                         {"Cholesky factors are those of plain loops", test_cholesky},
                         CU_TEST_INFO_NULL};
  return harness_run("matrix_lanes", tests);
}
