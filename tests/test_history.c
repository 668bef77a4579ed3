/* Likelihoods against finite differences; the evidence of a block of runs, and passes over its rows, against
 * sums over observations. */
#include "harness.h"

#include "core/rng.h"
#include "model/history.h"

#include <stdlib.h>
#include <string.h>

/* slope and curvature are the derivatives of log_likelihood; samples have mean g(u). Walks the registry. */
static void test_likelihoods(void) {
  const LikelihoodOps *family;
  int count = 0;
  for (; (family = likelihood_family(count)); count++) {
    Likelihood likelihood = {.ops = family, .noise = 0.7};
    CU_ASSERT_PTR_EQUAL(likelihood_find(family->name), family);
    CU_ASSERT_STRING_EQUAL(likelihood_name(count), family->name);
    for (double u = -1.5; u <= 1.5; u += 0.5) {
      double y = 1, h = 1e-4;
      double low = family->log_likelihood(&likelihood, y, u - h),
             high = family->log_likelihood(&likelihood, y, u + h);
      double middle = family->log_likelihood(&likelihood, y, u);
      double slope, curvature;
      family->derivatives(&likelihood, 1, &y, &u, &slope, &curvature);
      CHECK_NEAR(slope, (high - low) / (2 * h), 1e-6);
      CHECK_NEAR(curvature, (high - 2 * middle + low) / (h * h), 1e-5);
      enum { N = 20000 };
      double uniform[2 * N], mean = 0, square = 0;
      Rng rng = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)count};
      rng_uniform(&rng, N, uniform);
      rng_normal(&rng, N, uniform + N);
      for (int i = 0; i < N; i++) {
        double reward = family->sample(&likelihood, u, uniform[i], uniform[N + i]);
        mean += reward / N, square += reward * reward / N;
      }
      CHECK_NEAR(mean, family->mean(&likelihood, u),
                 5 * sqrt((square - mean * mean) / N)); /* 5 standard errors */
    }
  }
  CU_ASSERT(count >= 1);
  CU_ASSERT_PTR_NULL(likelihood_find("gausian"));
  CU_ASSERT_PTR_NULL(likelihood_name(count));
}

/* The normal density, at its peak and one standard deviation away. */
static void test_gaussian(void) {
  Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 2};
  CHECK_NEAR(likelihood.ops->log_likelihood(&likelihood, 3, 3), log(0.3989422804014327 / 2), 1e-15);
  CHECK_NEAR(likelihood.ops->log_likelihood(&likelihood, 5, 3), log(0.24197072451914337 / 2), 1e-15);
  CHECK_NEAR(likelihood.ops->sample(&likelihood, 1, 0.5, -1.5), -2, 1e-15);
  CU_ASSERT(likelihood.ops->conjugate);
}

enum { D = 3, RUNS = 70, ROUNDS = 5, DRAWS = 3 };

typedef struct {
  History history;
  Likelihood likelihood;
  double phi[ROUNDS][D * RUNS], y[ROUNDS][RUNS];
} Case;

static void case_create(Case *self) {
  self->likelihood = (Likelihood){.ops = likelihood_find("gaussian"), .noise = 0.5};
  CHECK_OK(history_create(D, RUNS, &self->likelihood, &self->history));
  Rng rng = {.key = rng_key(2, RNG_TEST)};
  for (int t = 0; t < ROUNDS; t++) {
    rng_normal(&rng, D * RUNS, self->phi[t]);
    rng_normal(&rng, RUNS, self->y[t]);
    history_append(&self->history, self->phi[t], self->y[t]);
  }
}

static void test_append(void) {
  Case self;
  case_create(&self);
  const History *h = &self.history;
  CU_ASSERT_EQUAL(h->rounds, ROUNDS);
  for (int n = 0; n < RUNS; n++) {
    double squares = 0;
    for (int t = 0; t < ROUNDS; t++) squares += self.y[t][n] * self.y[t][n] / 0.25;
    CHECK_NEAR(h->reward_squares[n], squares, 1e-12);
    for (int i = 0; i < D; i++) {
      double vector = 0;
      for (int t = 0; t < ROUNDS; t++) vector += self.phi[t][i * RUNS + n] * self.y[t][n] / 0.25;
      CHECK_NEAR(h->vector[i * RUNS + n], vector, 1e-12);
      for (int j = 0; j < D; j++) {
        double precision = 0;
        for (int t = 0; t < ROUNDS; t++)
          precision += self.phi[t][i * RUNS + n] * self.phi[t][j * RUNS + n] / 0.25;
        CHECK_NEAR(h->precision[(i * D + j) * RUNS + n], precision, 1e-12);
        CU_ASSERT_EQUAL(h->precision[(i * D + j) * RUNS + n], h->precision[(j * D + i) * RUNS + n]);
      }
    }
  }
  history_clear(&self.history);
  CU_ASSERT_EQUAL(h->rounds, 0);
  for (int k = 0; k < D * D * RUNS; k++) CU_ASSERT_EQUAL(h->precision[k], 0);
  for (int k = 0; k < D * RUNS; k++) CU_ASSERT_EQUAL(h->vector[k], 0);
  for (int k = 0; k < RUNS; k++) CU_ASSERT_EQUAL(h->reward_squares[k], 0);
  history_destroy(&self.history);
}

/* The log likelihood of all rewards at theta = shift + scale z, by its definition; differences of two z must
 * agree with -1/2 z' Lambda_z z + z' b_z. */
static double log_likelihood(const Case *self, int run, const double *theta) {
  double sum = 0;
  for (int t = 0; t < ROUNDS; t++) {
    double u = 0;
    for (int i = 0; i < D; i++) u += self->phi[t][i * RUNS + run] * theta[i];
    sum += self->likelihood.ops->log_likelihood(&self->likelihood, self->y[t][run], u);
  }
  return sum;
}

static void test_evidence(void) {
  Case self;
  case_create(&self);
  const double shift[D] = {1, -2, 0.5}, scale[D] = {0.1, 3, 2};
  const int parts[][2] = {{0, RUNS * DRAWS}, {5, 1}, {64, 130}};
  for (int mapped = 0; mapped < 2; mapped++) {
    for (int p = 0; p < 3; p++) {
      int first = parts[p][0], lanes = parts[p][1];
      double *precision = malloc((size_t)(D * D * lanes) * sizeof *precision);
      double *vector = malloc((size_t)(D * lanes) * sizeof *vector);
      history_evidence(&self.history, DRAWS, first, lanes, mapped ? shift : NULL, mapped ? scale : NULL,
                       precision, vector);
      for (int n = 0; n < lanes; n++) {
        int run = (first + n) / DRAWS;
        double zero[D] = {0}, theta[D], z[D] = {0.3, -0.8, 1.1}, quadratic = 0;
        for (int i = 0; i < D; i++) {
          theta[i] = mapped ? shift[i] + scale[i] * z[i] : z[i];
          if (mapped) zero[i] = shift[i];
          quadratic += z[i] * vector[i * lanes + n];
          for (int j = 0; j < D; j++) quadratic -= 0.5 * z[i] * precision[(i * D + j) * lanes + n] * z[j];
        }
        double expected = log_likelihood(&self, run, theta) - log_likelihood(&self, run, zero);
        CHECK_NEAR(quadratic, expected, 1e-11 * (1 + fabs(expected)));
      }
      free(precision);
      free(vector);
    }
  }
  history_destroy(&self.history);
}

/* ---- a history that keeps rows: derivatives at a point, deviance and reach against sums over observations
 */

enum { ROWS_D = 5, ROWS_RUNS = 20, ROWS_DRAWS = 3, ROWS_LANES = ROWS_RUNS * ROWS_DRAWS, OBSERVATIONS = 37 };

/* Of one lane, in the coordinates z. */
typedef struct {
  double gradient[ROWS_D], precision[ROWS_D * ROWS_D], deviance, reach;
} Sums;

typedef struct {
  Likelihood likelihood;
  History history;
  HistoryView view;
  double phi[OBSERVATIONS][ROWS_D * ROWS_RUNS], y[OBSERVATIONS][ROWS_RUNS], z[ROWS_D * ROWS_LANES];
} RowsCase;

static void rows_create(const LikelihoodOps *family, int d, int draws, bool mapped, RowsCase *self) {
  static const double shift[ROWS_D] = {0.3, -0.2, 0.1, 0, -0.4}, scale[ROWS_D] = {0.5, 2, 1, 0.7, 1.3};
  Rng rng = {.key = rng_key(4, RNG_TEST), .run = (uint32_t)d, .round = (uint32_t)draws};
  self->likelihood = (Likelihood){.ops = family, .noise = 1};
  CHECK_OK(history_create(d, ROWS_RUNS, &self->likelihood, &self->history));
  CHECK_OK(history_reserve(&self->history, OBSERVATIONS));
  rng_normal(&rng, d * ROWS_RUNS * draws, self->z);
  for (int t = 0; t < OBSERVATIONS; t++) {
    rng_normal(&rng, d * ROWS_RUNS, self->phi[t]);
    for (int b = 0; b < ROWS_RUNS; b++) self->y[t][b] = (t + b) % 2;
    history_append(&self->history, self->phi[t], self->y[t]);
  }
  self->view = (HistoryView){.history = &self->history,
                             .draws = draws,
                             .lanes = ROWS_RUNS * draws,
                             .shift = mapped ? shift : NULL,
                             .scale = mapped ? scale : NULL};
}

/* What lane n should get, at z and for the step z. */
static Sums sum_rows(const RowsCase *self, int n) {
  const HistoryView *view = &self->view;
  const int d = self->history.d, run = n / view->draws;
  const Likelihood *likelihood = &self->likelihood;
  Sums out = {0};
  for (int t = 0; t < OBSERVATIONS; t++) {
    double x[ROWS_D], u = 0, move = 0, slope, curvature, term;
    for (int i = 0; i < d; i++) {
      double scale = view->scale ? view->scale[i] : 1, z = self->z[i * view->lanes + n];
      double phi = self->phi[t][i * ROWS_RUNS + run];
      x[i] = phi * scale; /* d u / d z */
      u += phi * ((view->shift ? view->shift[i] : 0) + scale * z);
      move += x[i] * z;
    }
    likelihood->ops->derivatives(likelihood, 1, &self->y[t][run], &u, &slope, &curvature);
    likelihood->ops->deviance(likelihood, 1, &self->y[t][run], &u, &term);
    for (int i = 0; i < d; i++) {
      out.gradient[i] += slope * x[i];
      for (int j = 0; j < d; j++) out.precision[i * d + j] -= curvature * x[i] * x[j];
    }
    out.deviance += term;
    out.reach = fmax(out.reach, fabs(move));
  }
  return out;
}

static void check_rows(const RowsCase *self) {
  static double gradient[ROWS_D * ROWS_LANES], precision[ROWS_D * ROWS_D * ROWS_LANES], deviance[ROWS_LANES],
      also[ROWS_D * ROWS_LANES], reach[ROWS_LANES];
  const HistoryView *view = &self->view;
  const int d = self->history.d, lanes = view->lanes;
  history_derivatives(view, self->z, NULL, gradient, precision);
  history_deviance(view, self->z, deviance, also);
  history_reach(view, self->z, 0, reach); /* nothing is enough: the exact maximum */
  for (int n = 0; n < lanes; n++) {
    const Sums sums = sum_rows(self, n);
    for (int i = 0; i < d; i++) {
      const double rounding = 1e-12 * fmax(1, fabs(sums.gradient[i])) * OBSERVATIONS;
      CHECK_NEAR(gradient[i * lanes + n], sums.gradient[i], rounding);
      CHECK_NEAR(also[i * lanes + n], sums.gradient[i], rounding);
    }
    for (int k = 0; k < d * d; k++)
      CHECK_NEAR(precision[k * lanes + n], sums.precision[k],
                 1e-12 * fmax(1, fabs(sums.precision[k])) * OBSERVATIONS);
    CHECK_NEAR(deviance[n], sums.deviance, 1e-12 * OBSERVATIONS * fmax(1, sums.deviance));
    CHECK_NEAR(reach[n], sums.reach, 1e-12 * fmax(1, sums.reach));
  }
}

/* An upper bound is enough where it is below `enough`: never below the maximum, never above |phi| |step|. */
static void check_bound(const RowsCase *self) {
  const HistoryView *view = &self->view;
  const int d = self->history.d, lanes = view->lanes;
  double reach[ROWS_LANES];
  history_reach(view, self->z, 1e6, reach);
  for (int n = 0; n < lanes; n++) {
    double step = 0, longest = 0;
    for (int i = 0; i < d; i++) step += pow((view->scale ? view->scale[i] : 1) * self->z[i * lanes + n], 2);
    for (int t = 0; t < OBSERVATIONS; t++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += pow(self->phi[t][i * ROWS_RUNS + n / view->draws], 2);
      longest = fmax(longest, square);
    }
    CU_ASSERT(reach[n] >= sum_rows(self, n).reach * (1 - 1e-12));
    CHECK_NEAR(reach[n], sqrt(longest * step), 1e-12 * (1 + sqrt(longest * step)));
  }
}

/* Strips where all lanes have settled keep what they had; others get every lane. */
static void check_settled(const RowsCase *self) {
  static double gradient[ROWS_D * ROWS_LANES], precision[ROWS_D * ROWS_D * ROWS_LANES];
  const HistoryView *view = &self->view;
  const int lanes = view->lanes, d = self->history.d;
  bool settled[ROWS_LANES];
  for (int k = 0; k < d * lanes; k++) gradient[k] = -7;
  for (int n = 0; n < lanes; n++) settled[n] = n != lanes - 1;
  history_derivatives(view, self->z, settled, gradient, precision);
  const Sums sums = sum_rows(self, lanes - 1);
  for (int i = 0; i < d; i++) {
    CU_ASSERT_EQUAL(gradient[i * lanes], -7);
    CHECK_NEAR(gradient[i * lanes + lanes - 1], sums.gradient[i],
               1e-12 * fmax(1, fabs(sums.gradient[i])) * OBSERVATIONS);
  }
}

/* Draws of a run share its rows; as they are and in coordinates theta = shift + scale z. */
static void test_rows(void) {
  static const int dimensions[] = {1, 2, 5};
  static RowsCase self;
  for (int f = 0; likelihood_family(f); f++) {
    if (likelihood_family(f)->conjugate) continue;
    for (int k = 0; k < 3; k++)
      for (int draws = 1; draws <= ROWS_DRAWS; draws++)
        for (int mapped = 0; mapped < 2; mapped++) {
          rows_create(likelihood_family(f), dimensions[k], draws, mapped, &self);
          check_rows(&self);
          check_bound(&self);
          check_settled(&self);
          history_destroy(&self.history);
        }
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"likelihoods", test_likelihoods},
                         {"Gaussian likelihood", test_gaussian},
                         {"append and clear", test_append},
                         {"evidence in other coordinates", test_evidence},
                         {"rows", test_rows},
                         CU_TEST_INFO_NULL};
  return harness_run("history", tests);
}
