/* IRLS against modes from scikit-learn and SciPy, separable data included, and against the closed form under
 * a Gaussian likelihood. */
#include "harness.h"

#include "core/linalg.h"
#include "irls_golden.h"
#include "sampler/irls.h"

#include <stdlib.h>
#include <string.h>

enum { N = 60, D = 3, RUNS = 5 };

/* The data of golden/irls.py, the same in every run. */
static double feature(int t, int i, bool separable) {
  return ((7 * t * (i + 1) + 3 * i * i) % 19 - 9) / 8.0 * (separable ? 10 : 1);
}

static double reward(const char *kind, int t) {
  if (!strcmp(kind, "separable")) return feature(t, 0, true) > 0.01;
  if (!strcmp(kind, "logistic")) return (5 * t) % 7 < 3;
  return t % 4;
}

static void fill(const char *kind, const Likelihood *likelihood, History *history) {
  CHECK_OK(history_create(D, RUNS, likelihood, history));
  CHECK_OK(history_reserve(history, N));
  for (int t = 0; t < N; t++) {
    double phi[D * RUNS], y[RUNS];
    for (int b = 0; b < RUNS; b++) {
      for (int i = 0; i < D; i++) phi[i * RUNS + b] = feature(t, i, !strcmp(kind, "separable"));
      y[b] = reward(kind, t);
    }
    history_append(history, phi, y);
  }
}

/* Solve under N(0, I), starting from `start` in every coordinate: the mode under evidence I, 2 start. z[D,
 * RUNS]. Returns the number of rescues. */
static int64_t solve(const History *history, double start, double *z, double *precision, double *vector) {
  Irls irls;
  int64_t fallbacks[RUNS] = {0}, sum = 0;
  double identity[D * D * RUNS] = {0}, zero[D * RUNS] = {0};
  for (int i = 0; i < D; i++)
    for (int b = 0; b < RUNS; b++) identity[(i * D + i) * RUNS + b] = 1;
  for (int i = 0; i < D * RUNS; i++) vector[i] = 2 * start;
  memcpy(precision, identity, sizeof identity);
  HistoryView view = {.history = history, .draws = 1, .first = 0, .lanes = RUNS};
  CHECK_OK(irls_create(D, RUNS, 1e-8, &irls));
  irls_solve(&irls, &view, identity, zero, precision, vector, z, fallbacks);
  irls_destroy(&irls);
  for (int b = 0; b < RUNS; b++) sum += fallbacks[b];
  return sum;
}

/* The golden modes are good to about 1e-7: scikit-learn stops by the size of the gradient. */
static void test_golden(void) {
  static const struct {
    const char *kind, *likelihood;
    const double *mode;
  } cases[] = {{"logistic", "logistic", irls_golden_logistic},
               {"separable", "logistic", irls_golden_separable},
               {"poisson", "poisson", irls_golden_poisson}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (double start = -2; start <= 2; start += 2) {
      Likelihood likelihood = {.ops = likelihood_find(cases[c].likelihood), .noise = 1};
      History history;
      double z[D * RUNS], precision[D * D * RUNS], vector[D * RUNS], gradient[D * RUNS];
      fill(cases[c].kind, &likelihood, &history);
      CU_ASSERT_EQUAL(solve(&history, start, z, precision, vector), 0);
      for (int i = 0; i < D; i++)
        for (int b = 0; b < RUNS; b++) CHECK_NEAR(z[i * RUNS + b], cases[c].mode[i], 1e-6);
      /* Stationary: the gradient of the log likelihood is that of the prior, z. The tolerance is
       * the tolerance 1e-8 in posterior standard deviations times the largest curvature of these data, below
       * 1e4. */
      HistoryView view = {.history = &history, .draws = 1, .first = 0, .lanes = RUNS};
      history_derivatives(&view, z, NULL, gradient, precision);
      for (int i = 0; i < D * RUNS; i++) CHECK_NEAR(gradient[i], z[i], 1e-4);
      history_destroy(&history);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"modes of scikit-learn and SciPy", test_golden}, CU_TEST_INFO_NULL};
  return harness_run("irls", tests);
}
