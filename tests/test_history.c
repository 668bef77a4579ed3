/* Likelihoods against finite differences; the evidence of a block of runs against sums over observations. */
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

/* A history that keeps rows: gradient and precision at a point, and the deviance, against sums over
 * observations; two draws of each of 20 runs share their rows, in coordinates theta = shift + scale z. */
static void test_rows(void) {
  enum { R = 20, M = 2, N = R * M, OBSERVATIONS = 37 };
  static const double shift[2] = {0.3, -0.2}, scale[2] = {0.5, 2};
  static double phi[OBSERVATIONS][2 * R], y[OBSERVATIONS][R], z[2 * N], gradient[2 * N], precision[4 * N],
      deviance[N], reach[N];
  for (int f = 0; likelihood_family(f); f++) {
    Likelihood likelihood = {.ops = likelihood_family(f), .noise = 1};
    if (likelihood.ops->conjugate) continue;
    History history;
    Rng rng = {.key = rng_key(4, RNG_TEST), .run = (uint32_t)f};
    CHECK_OK(history_create(2, R, &likelihood, &history));
    CHECK_OK(history_reserve(&history, OBSERVATIONS));
    rng_normal(&rng, 2 * N, z);
    for (int t = 0; t < OBSERVATIONS; t++) {
      rng_normal(&rng, 2 * R, phi[t]);
      for (int b = 0; b < R; b++) y[t][b] = (t + b) % 2;
      history_append(&history, phi[t], y[t]);
    }
    HistoryView view = {
        .history = &history, .draws = M, .first = 0, .lanes = N, .shift = shift, .scale = scale};
    history_derivatives(&view, z, NULL, gradient, precision);
    history_deviance(&view, z, deviance, NULL);
    history_reach(&view, z, 0, reach); /* nothing is enough: the exact maximum */
    for (int n = 0; n < N; n++) {
      double g[2] = {0}, p[4] = {0}, sum = 0, top = 0;
      for (int t = 0; t < OBSERVATIONS; t++) {
        double x[2] = {phi[t][n / M], phi[t][R + n / M]}, u = 0, move = 0, slope, curvature, term;
        for (int i = 0; i < 2; i++)
          u += x[i] * (shift[i] + scale[i] * z[i * N + n]), move += x[i] * scale[i] * z[i * N + n];
        likelihood.ops->derivatives(&likelihood, 1, &y[t][n / M], &u, &slope, &curvature);
        likelihood.ops->deviance(&likelihood, 1, &y[t][n / M], &u, &term);
        for (int i = 0; i < 2; i++) {
          g[i] += slope * x[i] * scale[i];
          for (int j = 0; j < 2; j++) p[2 * i + j] -= curvature * x[i] * scale[i] * x[j] * scale[j];
        }
        sum += term;
        top = fmax(top, fabs(move));
      }
      for (int i = 0; i < 2; i++)
        CHECK_NEAR(gradient[i * N + n], g[i], 1e-12 * fmax(1, fabs(g[i])) * OBSERVATIONS);
      for (int i = 0; i < 4; i++)
        CHECK_NEAR(precision[i * N + n], p[i], 1e-12 * fmax(1, fabs(p[i])) * OBSERVATIONS);
      CHECK_NEAR(deviance[n], sum, 1e-12 * OBSERVATIONS * fmax(1, sum));
      CHECK_NEAR(reach[n], top, 1e-12 * fmax(1, top));
    }
    history_destroy(&history);
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
