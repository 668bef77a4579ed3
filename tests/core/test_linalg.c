/* Batched and single linear algebra against LAPACK's dsyev, definitions (A = Q diag(w) Q', A = L L') and
 * closed forms. */
#include "harness.h"

#include "core/linalg/linalg.h"
#include "core/rng.h"

#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

static const int DIMENSIONS[] = {1, 2, 3, 5, 8, 16, 17, 24};
enum { DIMENSION_COUNT = 8, MOST = 24 * 24 };

static Rng test_rng(int stream) { return (Rng){.key = rng_key(7, RNG_TEST), .run = (uint32_t)stream}; }

/* Returns element (i, j) of lane n. */
static double at(int d, int lanes, const double *a, int i, int j, int n) {
  return a[(i * d + j) * lanes + n];
}

static double *new_array(int count) {
  double *array = calloc((size_t)count, sizeof *array);
  if (!array) abort();
  return array;
}

/* Returns a[d, d, lanes]: symmetric, from Gaussian numbers; positive definite when `ridge` is above zero. */
static double *random_symmetric(int d, int lanes, double ridge, int stream) {
  double *a = new_array(d * d * lanes), g[MOST];
  Rng rng = test_rng(stream);
  for (int n = 0; n < lanes; n++) {
    rng_normal(&rng, d * d, g);
    for (int i = 0; i < d; i++) {
      for (int j = 0; j <= i; j++) {
        double sum = ridge > 0 ? (i == j) * ridge : g[i * d + j];
        for (int k = 0; k < d && ridge > 0; k++) sum += g[i * d + k] * g[j * d + k];
        a[(i * d + j) * lanes + n] = a[(j * d + i) * lanes + n] = sum;
      }
    }
  }
  return a;
}

/* Returns the larger of an error so far and |error|; a NaN stays. */
static double worse(double so_far, double error) {
  return isnan(so_far) || fabs(error) <= so_far ? so_far : fabs(error);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Checks reconstruction, orthogonality, and LAPACK's eigenvalues; 1e-13 of the largest eigenvalue is about
 * 100 roundings per row. */
static void check_eigen(int d, int lanes, const double *a, const double *q, const double *w) {
  for (int n = 0; n < lanes; n++) {
    double matrix[MOST], expected[24], sorted[24], tiny = 1e-300;
    for (int k = 0; k < d * d; k++) matrix[k] = a[k * lanes + n];
    CU_ASSERT_EQUAL(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', d, matrix, d, expected), 0);
    double scale = fmax(fabs(expected[0]), fabs(expected[d - 1])) + tiny;
    for (int k = 0; k < d; k++) sorted[k] = w[k * lanes + n];
    qsort(sorted, (size_t)d, sizeof *sorted, compare);
    double wrong_value = 0, wrong_matrix = 0, wrong_basis = 0;
    for (int k = 0; k < d; k++) wrong_value = worse(wrong_value, (sorted[k] - expected[k]) / scale);
    for (int i = 0; i < d; i++) {
      for (int j = 0; j < d; j++) {
        double sum = 0, product = 0;
        for (int k = 0; k < d; k++) {
          sum += at(d, lanes, q, i, k, n) * (w[k * lanes + n] / scale) * at(d, lanes, q, j, k, n);
          product += at(d, lanes, q, k, i, n) * at(d, lanes, q, k, j, n);
        }
        wrong_matrix = worse(wrong_matrix, sum - at(d, lanes, a, i, j, n) / scale);
        wrong_basis = worse(wrong_basis, product - (i == j));
      }
    }
    CHECK_NEAR(wrong_value, 0, 1e-13);
    CHECK_NEAR(wrong_matrix, 0, 1e-13);
    CHECK_NEAR(wrong_basis, 0, 1e-13);
  }
}

static void test_eigen_lanes(void) {
  const int lane_counts[] = {1, 7, 64, 100};
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    for (int l = 0; l < 4; l++) {
      for (int definite = 0; definite < 2; definite++) {
        int d = DIMENSIONS[c], lanes = lane_counts[l];
        double *a = random_symmetric(d, lanes, definite ? 0.01 : 0, d), *q = new_array(d * d * lanes);
        double *w = new_array(d * lanes), *copy = new_array(d * d * lanes);
        memcpy(copy, a, (size_t)(d * d * lanes) * sizeof *a);
        linalg_factor_eigen(d, lanes, a, q, w);
        CU_ASSERT_EQUAL(memcmp(copy, a, (size_t)(d * d * lanes) * sizeof *a), 0);
        check_eigen(d, lanes, a, q, w);
        free(a), free(q), free(w), free(copy);
      }
    }
  }
}

/* Checks that one lane of many gives the same bits as alone. */
static void test_eigen_alone(void) {
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c], lanes = 37;
    double *a = random_symmetric(d, lanes, 0, 50 + d), *q = new_array(d * d * lanes),
           *w = new_array(d * lanes);
    double one[MOST], q_one[MOST], w_one[24];
    linalg_factor_eigen(d, lanes, a, q, w);
    for (int n = 0; n < lanes; n++) {
      for (int k = 0; k < d * d; k++) one[k] = a[k * lanes + n];
      linalg_factor_eigen(d, 1, one, q_one, w_one);
      for (int k = 0; k < d; k++) CU_ASSERT_EQUAL(w_one[k], w[k * lanes + n]);
      for (int k = 0; k < d * d; k++) CU_ASSERT_EQUAL(q_one[k], q[k * lanes + n]);
    }
    free(a), free(q), free(w);
  }
}

/* Checks diagonal matrices exactly; and zero, rank-one, repeated, tiny and huge ones without a floating-point
 * exception. */
static void test_eigen_special(void) {
  enum { LANES = 9 };
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c];
    double *a = new_array(d * d * LANES), *q = new_array(d * d * LANES), *w = new_array(d * LANES), x[24];
    for (int i = 0; i < d; i++) {
      a[(i * d + i) * LANES + 1] = d - i; /* lane 0 stays zero, lane 1 is diagonal */
      a[(i * d + i) * LANES + 2] = i == d / 2 ? 0 : -3e7 * i;
    }
    for (int i = 0; i < d; i++) x[i] = 1 + i % 3;
    for (int i = 0; i < d; i++) {
      for (int j = 0; j < d; j++) {
        double product = x[i] * x[j], *lane = a + (i * d + j) * LANES;
        lane[3] = product; /* rank one */
        lane[4] = 1e-150 * product; /* squares of its entries underflow */
        lane[5] = 1e150 * product; /* and overflow */
        lane[6] = (i == j) + 1e-14; /* nearly repeated eigenvalues */
        lane[7] = product * pow(10, -0.5 * (i + j)); /* graded */
        lane[8] = 1;
      }
    }
    linalg_factor_eigen(d, LANES, a, q, w);
    check_eigen(d, LANES, a, q, w);
    if (d > LINALG_BATCH_DIMENSION) goto done;
    for (int n = 0; n < 3; n++) {
      for (int i = 0; i < d; i++) {
        CU_ASSERT_EQUAL(w[i * LANES + n], at(d, LANES, a, i, i, n));
        for (int j = 0; j < d; j++) CU_ASSERT_EQUAL(at(d, LANES, q, i, j, n), i == j);
      }
    }
  done:
    free(a), free(q), free(w);
  }
}

static void test_eigen_closed_form(void) {
  double a[4] = {2, 1, 1, 2}, q[4], w[2];
  linalg_factor_eigen(2, 1, a, q, w);
  CHECK_NEAR(fmin(w[0], w[1]), 1, 1e-15);
  CHECK_NEAR(fmax(w[0], w[1]), 3, 1e-15);
  for (int k = 0; k < 4; k++) CHECK_NEAR(fabs(q[k]), sqrt(0.5), 1e-15);
}

static void test_cholesky_lanes(void) {
  const int lane_counts[] = {1, 7, 100};
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    for (int m = 0; m < 3; m++) {
      int d = DIMENSIONS[c], lanes = lane_counts[m], jitters[100] = {0};
      double *a = random_symmetric(d, lanes, 0.1, 100 + d), *l = new_array(d * d * lanes),
             *x = new_array(d * lanes);
      double *y = new_array(d * lanes), *b = new_array(d * lanes);
      memcpy(l, a, (size_t)(d * d * lanes) * sizeof *a);
      linalg_factor_cholesky(d, lanes, l, jitters);
      double wrong_factor = 0, wrong_upper = 0;
      for (int n = 0; n < lanes; n++) {
        CU_ASSERT_EQUAL(jitters[n], 0);
        for (int i = 0; i < d; i++) {
          for (int j = 0; j < d; j++) {
            double sum = 0, scale = at(d, lanes, a, i, i, n) + at(d, lanes, a, j, j, n);
            for (int k = 0; k <= (i < j ? i : j); k++)
              sum += at(d, lanes, l, i, k, n) * at(d, lanes, l, j, k, n);
            wrong_factor = worse(wrong_factor, (sum - at(d, lanes, a, i, j, n)) / scale);
            if (j > i) wrong_upper = worse(wrong_upper, at(d, lanes, l, i, j, n) - at(d, lanes, a, i, j, n));
          }
        }
      }
      CHECK_NEAR(wrong_factor, 0, 1e-14);
      CHECK_NEAR(wrong_upper, 0, 0);
      /* The smallest eigenvalue is at least 0.1 and the largest below 200: errors stay under 2000
       * roundings. */
      Rng rng = test_rng(200 + d);
      rng_normal(&rng, d * lanes, b);
      linalg_lanes_multiply(d, lanes, a, b, x);
      linalg_lanes_multiply_transposed(d, lanes, a, b, y);
      for (int k = 0; k < d * lanes; k++) CHECK_NEAR(y[k], x[k], 1e-12);
      for (int n = 0; n < lanes; n++) {
        for (int i = 0; i < d; i++) {
          double sum = 0;
          for (int j = 0; j < d; j++) sum += at(d, lanes, a, i, j, n) * b[j * lanes + n];
          CHECK_NEAR(x[i * lanes + n], sum, 1e-12);
        }
      }
      linalg_factor_solve(d, lanes, l, x);
      for (int k = 0; k < d * lanes; k++) CHECK_NEAR(x[k], b[k], 1e-11);
      /* Forward then L, and backward then L', give back the original. */
      memcpy(x, b, (size_t)(d * lanes) * sizeof *b);
      memcpy(y, b, (size_t)(d * lanes) * sizeof *b);
      linalg_factor_forward(d, lanes, l, x);
      linalg_factor_backward(d, lanes, l, y);
      for (int n = 0; n < lanes; n++) {
        for (int i = 0; i < d; i++) {
          double lower = 0, upper = 0;
          for (int j = 0; j <= i; j++) lower += at(d, lanes, l, i, j, n) * x[j * lanes + n];
          for (int j = i; j < d; j++) upper += at(d, lanes, l, j, i, n) * y[j * lanes + n];
          CHECK_NEAR(lower, b[i * lanes + n], 1e-12);
          CHECK_NEAR(upper, b[i * lanes + n], 1e-12);
        }
      }
      free(a), free(l), free(x), free(y), free(b);
    }
  }
}

/* Checks solves with one factor for all lanes: they give back the original, and no lane depends on how many
 * others there are. */
static void test_solve_shared(void) {
  enum { MANY = 19 };
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    const int d = DIMENSIONS[c];
    double *l = random_symmetric(d, 1, 0.1, 500 + d), *b = new_array(d * MANY), *few = new_array(d * MANY);
    Rng rng = test_rng(550 + d);
    linalg_factor_cholesky(d, 1, l, NULL);
    rng_normal(&rng, d * MANY, b);
    for (int transposed = 0; transposed < 2; transposed++) {
      double *x = new_array(d * MANY);
      memcpy(x, b, (size_t)(d * MANY) * sizeof *b);
      (transposed ? linalg_factor_backward_shared : linalg_factor_forward_shared)(d, MANY, l, x);
      for (int n = 0; n < MANY; n++)
        for (int i = 0; i < d; i++) {
          double sum = 0;
          for (int j = transposed ? i : 0; j < (transposed ? d : i + 1); j++)
            sum += (transposed ? l[j * d + i] : l[i * d + j]) * x[j * MANY + n];
          CHECK_NEAR(sum, b[i * MANY + n], 1e-12);
        }
      for (int lanes = 1; lanes < MANY; lanes += 8) {
        for (int i = 0; i < d; i++) memcpy(few + i * lanes, b + i * MANY, (size_t)lanes * sizeof *b);
        (transposed ? linalg_factor_backward_shared : linalg_factor_forward_shared)(d, lanes, l, few);
        for (int i = 0; i < d; i++)
          CU_ASSERT_EQUAL(memcmp(few + i * lanes, x + i * MANY, (size_t)lanes * sizeof *b), 0);
      }
      free(x);
    }
    free(l), free(b), free(few);
  }
}

/* Checks a transposed product of a matrix that is not symmetric. */
static void test_multiply(void) {
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    for (int lanes = 1; lanes < 20; lanes += 9) {
      int d = DIMENSIONS[c];
      double *q = new_array(d * d * lanes), *x = new_array(d * lanes), *y = new_array(d * lanes);
      Rng rng = test_rng(300 + d);
      rng_normal(&rng, d * d * lanes, q);
      rng_normal(&rng, d * lanes, x);
      for (int transposed = 0; transposed < 2; transposed++) {
        (transposed ? linalg_lanes_multiply_transposed : linalg_lanes_multiply)(d, lanes, q, x, y);
        for (int n = 0; n < lanes; n++) {
          for (int i = 0; i < d; i++) {
            double sum = 0;
            for (int j = 0; j < d; j++)
              sum += (transposed ? at(d, lanes, q, j, i, n) : at(d, lanes, q, i, j, n)) * x[j * lanes + n];
            CHECK_NEAR(y[i * lanes + n], sum, 1e-13 * d);
          }
        }
      }
      free(q), free(x), free(y);
    }
  }
}

/* Checks that one matrix for all lanes gives the same bits as a copy for each: small matrices, and one larger
 * than a packed block. */
static void test_multiply_shared(void) {
  for (int c = 0; c <= DIMENSION_COUNT; c++) {
    for (int lanes = 1; lanes < 20; lanes += 9) {
      const int d = c < DIMENSION_COUNT ? DIMENSIONS[c] : 131;
      double *q = new_array(d * d), *copies = new_array(d * d * lanes), *x = new_array(d * lanes),
             *y = new_array(d * lanes), *expected = new_array(d * lanes);
      Rng rng = test_rng(350 + d);
      rng_normal(&rng, d * d, q);
      rng_normal(&rng, d * lanes, x);
      for (int k = 0; k < d * d * lanes; k++) copies[k] = q[k / lanes];
      for (int transposed = 0; transposed < 2; transposed++) {
        (transposed ? linalg_lanes_multiply_transposed : linalg_lanes_multiply)(d, lanes, copies, x,
                                                                                expected);
        linalg_lanes_multiply_shared(d, lanes, transposed, q, x, y);
        CU_ASSERT_EQUAL(memcmp(y, expected, (size_t)(d * lanes) * sizeof *y), 0);
      }
      free(q), free(copies), free(x), free(y), free(expected);
    }
  }
}

/* Checks that zero, singular and indefinite lanes are counted and stay finite, and that their neighbours are
 * not affected. Jitter is no failure: the message of the last one stays. */
static void test_jitter(void) {
  enum { LANES = 6 };
  double single[LINALG_TILE_DIMENSION * LINALG_TILE_DIMENSION] = {0};
  int single_jitters = 0;
  status_set(STATUS_INPUT, "kept");
  linalg_factor_cholesky(LINALG_TILE_DIMENSION, 1, single, &single_jitters);
  CU_ASSERT_EQUAL(single_jitters, LINALG_TILE_DIMENSION);
  CU_ASSERT_STRING_EQUAL(status_message(), "kept");
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c], jitters[LANES] = {0}, before[LANES] = {0};
    double *a = random_symmetric(d, LANES, 0.1, 400 + d), *good = new_array(d * d * LANES);
    memcpy(good, a, (size_t)(d * d * LANES) * sizeof *a);
    for (int i = 0; i < d; i++) {
      for (int j = 0; j < d; j++) {
        double *lane = a + (i * d + j) * LANES;
        lane[0] = 0;
        lane[2] = 4;
        lane[3] = i == j ? (i == d - 1 ? -1 : 1) : 0;
        lane[5] = i == j ? 0 : 1;
      }
    }
    linalg_factor_cholesky(d, LANES, good, before);
    linalg_factor_cholesky(d, LANES, a, jitters);
    CU_ASSERT_EQUAL(jitters[0], d);
    CU_ASSERT_EQUAL(jitters[1], 0);
    CU_ASSERT_EQUAL(jitters[2], d - 1);
    CU_ASSERT_EQUAL(jitters[3], 1);
    CU_ASSERT_EQUAL(jitters[4], 0);
    for (int i = 0; i < d; i++) {
      for (int j = 0; j <= i; j++) {
        for (int n = 0; n < LANES; n++) CU_ASSERT(isfinite(at(d, LANES, a, i, j, n)));
        CU_ASSERT_EQUAL(at(d, LANES, a, i, j, 1), at(d, LANES, good, i, j, 1));
        CU_ASSERT_EQUAL(at(d, LANES, a, i, j, 4), at(d, LANES, good, i, j, 4));
      }
      for (int n = 0; n < LANES; n++) CU_ASSERT(at(d, LANES, a, i, i, n) > 0);
    }
    linalg_factor_cholesky(d, LANES, a, NULL);
    free(a), free(good);
  }
}

static void test_single(void) {
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c];
    double *a = random_symmetric(d, 1, 0.1, 500 + d), l[MOST], inverse[MOST], triangle[MOST], q[MOST], w[24];
    memcpy(l, a, (size_t)(d * d) * sizeof *l);
    CHECK_OK(linalg_cholesky(d, l));
    linalg_inverse(d, l, inverse);
    memcpy(triangle, l, sizeof triangle);
    linalg_invert_triangle(d, triangle);
    CHECK_OK(linalg_eigen(d, a, q, w));
    check_eigen(d, 1, a, q, w);
    double log_determinant = 0;
    for (int k = 0; k < d; k++) {
      log_determinant += log(w[k]);
      if (k > 0) CU_ASSERT(w[k] >= w[k - 1]);
    }
    CHECK_NEAR(linalg_log_determinant(d, l), log_determinant, 1e-10);
    for (int i = 0; i < d; i++) {
      for (int j = 0; j < d; j++) {
        double product = 0, identity = 0, unit = 0;
        for (int k = 0; k < d; k++) {
          product += l[i * d + k] * l[j * d + k];
          identity += a[i * d + k] * inverse[k * d + j];
          unit += l[i * d + k] * triangle[k * d + j];
        }
        CHECK_NEAR(product, a[i * d + j], 1e-12);
        CHECK_NEAR(identity, i == j, 1e-11);
        CHECK_NEAR(unit, i == j, 1e-11);
        if (j > i) CU_ASSERT(l[i * d + j] == 0 && triangle[i * d + j] == 0);
        CU_ASSERT_EQUAL(inverse[i * d + j], inverse[j * d + i]);
      }
    }
    a[0] = -1;
    CHECK_FAILS(linalg_cholesky(d, a), STATUS_INPUT, "not positive definite");
    free(a);
  }
}

/* 1, 2, .. n and their negatives doubled, far from zero: mean and variance of an arithmetic progression. */
/* Checks products, inverses and squares of one general matrix, from their definitions. */
static void test_general(void) {
  enum { D = 21, K = 5 };
  static double a[D * D], b[D * D], c[D * D];
  static float x[D * K], square[D * D];
  Rng rng = test_rng(90);
  rng_normal(&rng, D * D, a);
  rng_normal(&rng, D * D, b);
  for (int orders = 0; orders < 4; orders++) {
    const bool ta = orders & 1, tb = orders & 2;
    linalg_product(D, ta, a, tb, b, c);
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        double sum = 0;
        for (int k = 0; k < D; k++) sum += a[ta ? k * D + i : i * D + k] * b[tb ? j * D + k : k * D + j];
        CHECK_NEAR(c[i * D + j], sum, 1e-12);
      }
  }
  CU_ASSERT_TRUE(linalg_invert(D, a, b));
  linalg_product(D, false, a, false, b, c);
  for (int i = 0; i < D * D; i++) CHECK_NEAR(c[i], i % (D + 1) == 0 ? 1 : 0, 1e-10);
  memset(a, 0, sizeof a);
  CU_ASSERT_FALSE(linalg_invert(D, a, b));
  for (int i = 0; i < D * K; i++) x[i] = (float)c[i] + (float)(i % 7);
  for (int i = 0; i < D * D; i++) square[i] = 1;
  linalg_add_square(D, K, x, square);
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) {
      double sum = 1;
      for (int k = 0; k < K; k++) sum += (double)x[i * K + k] * (double)x[j * K + k];
      CHECK_NEAR(square[i * D + j], sum, 1e-5 * sum);
    }
}

static void test_moments(void) {
  for (int n = 1; n < 70; n += 13) {
    double *x = new_array(2 * n), mean[2], covariance[4], variance = (n * (double)n - 1) / 12;
    for (int k = 0; k < n; k++) x[k] = 1e8 + k, x[n + k] = -2.0 * k;
    linalg_moments(2, n, x, mean, covariance);
    CHECK_NEAR(mean[0], 1e8 + 0.5 * (n - 1), 1e-6);
    CHECK_NEAR(mean[1], 1.0 - n, 1e-12);
    CHECK_NEAR(covariance[0], variance, 1e-6);
    CHECK_NEAR(covariance[1], -2 * variance, 1e-6);
    CU_ASSERT_EQUAL(covariance[1], covariance[2]);
    CHECK_NEAR(covariance[3], 4 * variance, 1e-10);
    free(x);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"eigendecomposition of lanes", test_eigen_lanes},
                         {"a lane does not notice the others", test_eigen_alone},
                         {"special matrices", test_eigen_special},
                         {"eigendecomposition in closed form", test_eigen_closed_form},
                         {"Cholesky factors and solves", test_cholesky_lanes},
                         {"solves with one factor for all lanes", test_solve_shared},
                         {"products", test_multiply},
                         {"products with one matrix for all lanes", test_multiply_shared},
                         {"pivots that need jitter", test_jitter},
                         {"single matrices", test_single},
                         {"general matrices", test_general},
                         {"moments", test_moments},
                         CU_TEST_INFO_NULL};
  return harness_run("linalg", tests);
}
