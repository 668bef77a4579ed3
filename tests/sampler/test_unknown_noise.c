/* `noise: unknown` of `ts` and `lints`: moments and draws against the multivariate t distribution, computed
 * here in the space of observations; other units of the noise that the problem states change nothing. */
#include "catch_up_fixture.h"

#include <math.h>
#include <stdlib.h>

enum { D = 2, RUNS = 3, DRAWS = 20000 };

/* Student's t of theta: location, scale matrix in units of the variance, and the variance's posterior. */
typedef struct {
  double mean[FIXTURE_DIMENSION], unit[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
  double shape, scale;
} Expected;

/* Computes, with G = I + Phi S Phi' for theta ~ N(m, s^2 S) and r = y - Phi m: location m + S Phi' G^-1 r, S
 * - S Phi' G^-1 Phi S, and the scale + r' G^-1 r / 2. */
static Expected expect(const Mixture *prior, double lambda, int n, double shape, double scale, double noise,
                       uint32_t run) {
  FixtureData data = fixture_data(D, n, noise, run);
  Expected out = {.shape = shape + 0.5 * n, .scale = scale};
  double s[D * D], gram[FIXTURE_OBSERVATIONS * FIXTURE_OBSERVATIONS],
      inverse[FIXTURE_OBSERVATIONS * FIXTURE_OBSERVATIONS], left[FIXTURE_OBSERVATIONS];
  for (int i = 0; i < D * D; i++) s[i] = prior->covariance[i] / lambda;
  data.noise = 1; /* the covariances are in units of the variance */
  fixture_condition(&data, prior->mean, s, out.mean, out.unit);
  for (int a = 0; a < n; a++) {
    left[a] = data.y[a];
    for (int i = 0; i < D; i++) left[a] -= data.phi[a][i] * prior->mean[i];
    for (int b = 0; b < n; b++) {
      gram[a * n + b] = a == b;
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) gram[a * n + b] += data.phi[a][i] * s[i * D + j] * data.phi[b][j];
    }
  }
  if (n > 0) fixture_invert(n, gram, inverse);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) out.scale += 0.5 * left[a] * inverse[a * n + b] * left[b];
  return out;
}

/* Returns the distribution function of Student's t with `degrees` 1 or 4. */
static double student(int degrees, double t) {
  if (degrees == 1) return 0.5 + atan(t) / M_PI;
  const double q = 1 + t * t / 4;
  return 0.5 + 0.375 * (t / sqrt(q)) * (1 - t * t / (12 * q));
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Checks the direction (1, 2)' theta of every run: the distance of Kolmogorov and Smirnov from the t
 * distribution is below 1.95 / sqrt(DRAWS), which it exceeds with a probability of 1 in 1000. */
static void check_draws(const Expected *expected, int degrees, const double *theta) {
  static double t[DRAWS];
  for (int run = 0; run < RUNS; run++, expected++) {
    const double *u = expected->unit, center = expected->mean[0] + 2 * expected->mean[1];
    const double width = sqrt(expected->scale / expected->shape * (u[0] + 4 * u[1] + 4 * u[3]));
    double distance = 0;
    CHECK_NEAR(2 * expected->shape, degrees, 1e-12);
    for (int m = 0; m < DRAWS; m++) {
      const double *own = theta + (size_t)run * DRAWS + m;
      t[m] = (own[0] + 2 * own[(size_t)RUNS * DRAWS] - center) / width;
    }
    qsort(t, DRAWS, sizeof *t, ascending);
    for (int m = 0; m < DRAWS; m++) {
      const double f = student(degrees, t[m]);
      distance = fmax(distance, fmax(f - (double)m / DRAWS, (m + 1.0) / DRAWS - f));
    }
    CU_ASSERT(distance < 1.95 / sqrt(DRAWS));
  }
}

static void check(const char *name, double lambda, int n, const char *shape, double noise) {
  SCRATCH_ARENA(memory);
  char shape_set[32], lambda_set[32];
  const char *const sets[] = {"noise=unknown", "noise_scale=1.5", shape_set, lambda_set};
  snprintf(shape_set, sizeof shape_set, "noise_shape=%s", shape);
  snprintf(lambda_set, sizeof lambda_set, "lambda=%g", lambda);
  const int count = strcmp(name, "lints") == 0 ? 4 : 3;
  const Mixture gaussian = fixture_mixture(&memory, D, 1, 1.5);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Prior prior = fixture_exact_prior(&memory, &gaussian, &fit);
  const Likelihood likelihood = fixture_likelihood(noise);
  const History history = fixture_history(&memory, D, RUNS, 0, n, &likelihood);
  double mean[D * RUNS], covariance[D * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  Expected expected[RUNS];
  for (uint32_t run = 0; run < RUNS; run++)
    expected[run] = expect(&gaussian, lambda, n, strtod(shape, NULL), 1.5, noise, run);
  double *theta = fixture_draw(sampler_find(name), &prior, &history, 0, DRAWS, count, sets, fallbacks);
  check_draws(expected, n == 0 ? 1 : 4, theta);
  free(theta);
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(fallbacks[run], 0);
  if (n == 0) return; /* a t distribution with one degree of freedom has no moments */
  fixture_moments(sampler_find(name), &prior, &history, 2, count, sets, mean, covariance, fallbacks);
  for (int run = 0; run < RUNS; run++) {
    const double variance = expected[run].scale / (expected[run].shape - 1);
    for (int i = 0; i < D; i++) CHECK_NEAR(mean[i * RUNS + run], expected[run].mean[i], 1e-9);
    for (int i = 0; i < D * D; i++)
      CHECK_NEAR(covariance[i * RUNS + run], variance * expected[run].unit[i], 1e-9 * variance);
    CU_ASSERT_EQUAL(fallbacks[run], 0);
  }
}

static void test_student(void) {
  check("ts", 1, 3, "0.5", 0.3);
  check("ts", 1, 0, "0.5", 2);
  check("lints", 0.25, 3, "0.5", 0.3);
  check("lints", 4, 2, "1", 5);
}

/* Checks that the noise that the problem states does not matter: the same rewards under another one. */
static void test_units(void) {
  SCRATCH_ARENA(memory);
  enum { N = 4 };
  const char *const sets[] = {"noise=unknown"};
  const Mixture gaussian = fixture_mixture(&memory, D, 1, 1.5);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Prior prior = fixture_exact_prior(&memory, &gaussian, &fit);
  const Likelihood one = fixture_likelihood(0.5), other = fixture_likelihood(20);
  const Rounds rounds = make_rounds(D, 0, RUNS, N, false, &one);
  double mean[2][D * RUNS], covariance[2][D * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  for (int k = 0; k < 2; k++) {
    History history = empty_history(&memory, &rounds, k == 0 ? &one : &other);
    for (int l = 0; l < N; l++) append_round(&history, &rounds, l);
    fixture_moments(sampler_find("ts"), &prior, &history, 2, 1, sets, mean[k], covariance[k], fallbacks);
  }
  for (int i = 0; i < D * RUNS; i++) CHECK_NEAR(mean[0][i], mean[1][i], 1e-9);
  for (int i = 0; i < D * D * RUNS; i++) CHECK_NEAR(covariance[0][i], covariance[1][i], 1e-9);
  free_rounds((Rounds *)&rounds);
}

static void test_refused(void) {
  SCRATCH_ARENA(memory);
  const Mixture gaussian = fixture_mixture(&memory, D, 1, 1.5);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Prior prior = fixture_exact_prior(&memory, &gaussian, &fit);
  const Likelihood likelihood = fixture_likelihood(1),
                   clicks = {.ops = likelihood_find("logistic"), .noise = 1};
  fixture_refused("ts", &prior, &clicks, 1, 1, "noise=unknown", "is for Gaussian rewards");
  fixture_refused("ts", &prior, &likelihood, 1, 1, "noise_shape=2", "has no effect with noise: known");
}

int main(void) {
  CU_TestInfo tests[] = {{"moments and draws are those of Student's t", test_student},
                         {"the noise of the problem does not matter", test_units},
                         {"what does not fit is refused", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("unknown_noise", tests);
}
