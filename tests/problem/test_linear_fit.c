/* Linear models of random sets, on rows for which theta has a closed form. */
#include "harness.h"

#include "core/rng.h"
#include "problem/embedding/embedding_linear_fit.h"

#include <stdlib.h>

enum { MOST = 100 };

/* Row i is the i-th unit vector times `size`; labels in blocks of count[label]. */
typedef struct {
  LabelledRows rows;
  double x[MOST * MOST];
  unsigned char label[MOST];
} UnitRows;

static void unit_rows(UnitRows *out, int labels, const int *count, double size) {
  int n = 0;
  for (int l = 0; l < labels; l++)
    for (int k = 0; k < count[l]; k++) out->label[n++] = (unsigned char)l;
  for (int i = 0; i < n * n; i++) out->x[i] = i % (n + 1) == 0 ? size : 0;
  out->rows = (LabelledRows){n, n, labels, out->x, out->label};
}

static double *fit(const LabelledRows *rows, double ridge, uint64_t seed, int n, signed char *positive) {
  double *theta = calloc((size_t)rows->d * (size_t)n, sizeof *theta);
  CU_ASSERT_PTR_NOT_NULL_FATAL(theta);
  CHECK_OK(embedding_linear_fit_sample(rows, ridge, seed, n, theta, positive));
  return theta;
}

/* Checks two labels of ten rows each: every row is in every set, once, so theta_i = y_i size / (size^2 + r
 * size^2). */
static void test_closed_form(void) {
  static UnitRows unit;
  enum { N = 50 };
  signed char positive[N];
  unit_rows(&unit, 2, (int[]){10, 10}, 2);
  CHECK_NEAR(embedding_linear_fit_mean_square(&unit.rows), 4, 1e-15);
  double *theta = fit(&unit.rows, 0.25, 1, N, positive);
  for (int i = 0; i < 20; i++)
    for (int m = 0; m < N; m++)
      CHECK_NEAR(theta[i * N + m], (unit.label[i] == positive[m] ? 1 : -1) * 2 / (4 * 1.25), 1e-14);
  free(theta);
}

/* Checks sets by their theta: ten rows of the positive label (theta 1 / (1 + r)), ten others (minus that),
 * all different, the rest not chosen (0). Each row of a kind is chosen equally often: chi-square, for the 50
 * others of label 0 with 49 degrees of freedom less the dependence in a set, must be below 85 (probability
 * 0.001). */
static void test_sets(void) {
  static UnitRows unit;
  enum { N = 600, ROWS = 60 };
  signed char positive[N];
  unit_rows(&unit, 3, (int[]){10, 15, 35}, 1);
  double *theta = fit(&unit.rows, 1, 2, N, positive);
  int chosen[ROWS] = {0}, fits = 0;
  for (int m = 0; m < N; m++) {
    int plus = 0, minus = 0;
    for (int i = 0; i < ROWS; i++) {
      double value = theta[i * N + m];
      bool own = unit.label[i] == positive[m];
      CU_ASSERT(value == 0 || fabs(value - (own ? 0.5 : -0.5)) < 1e-14);
      plus += value > 0, minus += value < 0;
      if (positive[m] == 0) chosen[i] += value != 0;
    }
    CU_ASSERT(plus == 10 && minus == 10);
    fits += positive[m] == 0;
  }
  double expected = fits * 10.0 / 50, square = 0;
  for (int i = 0; i < 10; i++) CU_ASSERT_EQUAL(chosen[i], fits);
  for (int i = 10; i < ROWS; i++) square += (chosen[i] - expected) * (chosen[i] - expected) / expected;
  CU_ASSERT(fits > 100 && square < 85 && square > 15);
  free(theta);
}

/* Checks labels with 9 degrees of freedom: chi-square is below 27.9 with probability 0.999. */
static void test_labels_are_uniform(void) {
  enum { N = 10000 };
  static double x[MOST];
  static unsigned char label[MOST];
  static signed char positive[N];
  int count[10] = {0};
  double square = 0;
  for (int i = 0; i < MOST; i++) x[i] = 1, label[i] = (unsigned char)(i % 10);
  LabelledRows rows = {MOST, 1, 10, x, label};
  double *theta = fit(&rows, 1, 3, N, positive);
  for (int m = 0; m < N; m++) count[positive[m]]++;
  for (int l = 0; l < 10; l++) square += (count[l] - N / 10.0) * (count[l] - N / 10.0) / (N / 10.0);
  CU_ASSERT(square < 27.9 && square > 0.5);
  for (int m = 0; m < N; m++) CHECK_NEAR(theta[m], 0, 1e-15); /* ten times 1 and ten times -1 at the same x */
  free(theta);
}

/* Checks that scaled rows give models of equal rewards, another seed gives other models, and more models
 * leave the first ones as they are. */
static void test_scale_and_streams(void) {
  enum { N = 40, ROWS = 90, D = 5 };
  static double x[ROWS * D], scaled[ROWS * D];
  static unsigned char label[ROWS];
  signed char positive[N], again[2 * N];
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  rng_normal(&rng, ROWS * D, x);
  for (int i = 0; i < ROWS; i++) label[i] = (unsigned char)(i % 3);
  for (int i = 0; i < ROWS * D; i++) scaled[i] = 1000 * x[i];
  LabelledRows rows = {ROWS, D, 3, x, label}, large = {ROWS, D, 3, scaled, label};
  double *theta = fit(&rows, 0.1, 7, N, positive), *small = fit(&large, 0.1, 7, N, again);
  double *other = fit(&rows, 0.1, 8, N, again), *more = fit(&rows, 0.1, 7, 2 * N, again);
  double distance = 0;
  for (int i = 0; i < D; i++)
    for (int m = 0; m < N; m++) {
      CHECK_NEAR(1000 * small[i * N + m], theta[i * N + m], 1e-12);
      CHECK_NEAR(more[i * 2 * N + m], theta[i * N + m], 1e-12);
      distance += fabs(other[i * N + m] - theta[i * N + m]);
    }
  for (int m = 0; m < N; m++) CU_ASSERT_EQUAL(again[m], positive[m]);
  CU_ASSERT(distance > 1);
  free(theta), free(small), free(other), free(more);
}

static void test_bad_rows(void) {
  static UnitRows unit;
  double theta[3 * MOST];
  signed char positive[3];
  unit_rows(&unit, 3, (int[]){12, 9, 20}, 1);
  CHECK_FAILS(embedding_linear_fit_sample(&unit.rows, 1, 1, 3, theta, positive), STATUS_INPUT,
              "label 1 has 9 rows");
  unit_rows(&unit, 2, (int[]){12, 12}, 0);
  CHECK_FAILS(embedding_linear_fit_sample(&unit.rows, 1, 1, 3, theta, positive), STATUS_INPUT,
              "all features are zero");
}

int main(void) {
  CU_TestInfo tests[] = {{"closed form", test_closed_form},
                         {"sets", test_sets},
                         {"labels are uniform", test_labels_are_uniform},
                         {"scale and streams", test_scale_and_streams},
                         {"bad rows", test_bad_rows},
                         CU_TEST_INFO_NULL};
  return harness_run("linear_fit", tests);
}
