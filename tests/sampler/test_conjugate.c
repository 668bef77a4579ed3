/* ts, tuned_ts and mixts: single draws against the posterior by another formula, their law against
 * brute-force quadrature. */
#include "core/arena.h"
#include "sampler_fixture.h"

/* Checks every single draw, to rounding: this tests weights, means and covariances of all components at
 * once. */
static void test_draws_follow_the_closed_form(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 300 };
  const Likelihood likelihood = fixture_likelihood(0.6);
  for (int d = 1; d <= 5; d += 2)
    for (int components = 1; components <= 3; components++)
      for (int n = 0; n <= 8; n += 4) {
        Mixture mixture = fixture_mixture(&memory, d, components, 1);
        PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
        Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
        History history = fixture_history(&memory, d, 1, 4, n, &likelihood);
        FixtureData data = fixture_data(d, n, likelihood.noise, 4);
        FixturePosterior posterior = fixture_posterior(&mixture, &data);
        double *theta = fixture_draw(sampler_find("mixts"), &prior, &history, 4, DRAWS, 0, NULL, NULL);
        double expected[FIXTURE_DIMENSION];
        for (uint32_t m = 0; m < DRAWS; m++) {
          Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = 4, .round = 7, .draw = m};
          if (fixture_component_draw(d, components, &posterior, rng, expected) < 0) continue;
          for (int i = 0; i < d; i++) CHECK_NEAR(theta[i * DRAWS + (int)m], expected[i], 1e-10);
        }
        free(theta);
      }
}

/* Computes prior density times likelihood at theta, straight from the definitions. */
static double unnormalised(const Mixture *mixture, const FixtureData *data, const double *theta) {
  const int d = data->d;
  double density = 0, inverse[4], exponent = 0;
  for (int c = 0; c < mixture->components; c++) {
    double log_det = fixture_invert(d, mixture->covariance + c * d * d, inverse), square = 0;
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        square += (theta[i] - mixture->mean[c * d + i]) * inverse[i * d + j] *
                  (theta[j] - mixture->mean[c * d + j]);
    density += mixture->weight[c] * exp(-0.5 * (square + log_det));
  }
  for (int l = 0; l < data->n; l++) {
    double error = data->y[l];
    for (int i = 0; i < d; i++) error -= data->phi[l][i] * theta[i];
    exponent -= 0.5 * error * error / (data->noise * data->noise);
  }
  return density * exp(exponent);
}

/* Computes the mass of theta_1 > split, mean and covariance by the rectangle rule on [-8, 8]^d: exact to 1e-6
 * for densities this smooth. */
static void quadrature(const Mixture *mixture, const FixtureData *data, double split, double *mass,
                       double *mean, double *covariance) {
  enum { POINTS = 320 };
  const int d = data->d, rows = d == 1 ? 1 : POINTS;
  const double step = 16.0 / POINTS;
  double total = 0, right = 0, first[2] = {0}, second[4] = {0};
  for (int a = 0; a < rows; a++)
    for (int b = 0; b < POINTS; b++) {
      double theta[2] = {-8 + (b + 0.5) * step, -8 + (a + 0.5) * step};
      double p = unnormalised(mixture, data, theta);
      total += p;
      if (theta[0] > split) right += p;
      for (int i = 0; i < d; i++) {
        first[i] += p * theta[i];
        for (int j = 0; j < d; j++) second[i * d + j] += p * theta[i] * theta[j];
      }
    }
  *mass = right / total;
  for (int i = 0; i < d; i++) mean[i] = first[i] / total;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) covariance[i * d + j] = second[i * d + j] / total - mean[i] * mean[j];
}

static void test_mixture_posterior_against_quadrature(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 40000 };
  const Likelihood likelihood = fixture_likelihood(1.5);
  const double split = 0.2; /* a cell boundary of the grid */
  for (int d = 1; d <= 2; d++) {
    Mixture mixture = fixture_mixture(&memory, d, 3, 1.2);
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    History history = fixture_history(&memory, d, 2, 0, 2, &likelihood);
    double *theta = fixture_draw(sampler_find("mixts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    for (int run = 0; run < 2; run++) {
      FixtureData data = fixture_data(d, 2, likelihood.noise, (uint32_t)run);
      FixturePosterior exact = fixture_posterior(&mixture, &data);
      double mass, mean[2], covariance[4], right = 0;
      quadrature(&mixture, &data, split, &mass, mean, covariance);
      /* 5 standard errors for 40 000 draws. */
      for (int m = 0; m < DRAWS; m++) right += theta[run * DRAWS + m] > split;
      CHECK_NEAR(right / DRAWS, mass, 5 * sqrt(mass * (1 - mass) / DRAWS));
      fixture_check_moments(d, 2, DRAWS, run, theta, mean, covariance, 5);
      /* The closed form that the other tests rely on also agrees with quadrature. */
      for (int i = 0; i < d; i++) CHECK_NEAR(exact.total_mean[i], mean[i], 1e-6);
      for (int i = 0; i < d * d; i++) CHECK_NEAR(exact.total_covariance[i], covariance[i], 1e-6);
    }
    free(theta);
  }
}

static void test_ts_is_mixts_with_one_component(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 50 };
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 3, &fit, &prior));
  History history = fixture_history(&memory, 3, 2, 0, 4, &likelihood);
  double *ts = fixture_draw(sampler_find("ts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
  double *tuned = fixture_draw(sampler_find("tuned_ts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
  double *mixts = fixture_draw(sampler_find("mixts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
  CU_ASSERT(memcmp(ts, mixts, sizeof(double) * 6 * DRAWS) == 0);
  CU_ASSERT(memcmp(ts, tuned, sizeof(double) * 6 * DRAWS) == 0);
  free(ts);
  free(tuned);
  free(mixts);
}

static void test_presets(void) {
  CU_ASSERT_STRING_EQUAL(sampler_find("ts")->default_prior, "standard");
  CU_ASSERT_STRING_EQUAL(sampler_find("tuned_ts")->default_prior, "gaussian");
  CU_ASSERT_STRING_EQUAL(sampler_find("mixts")->default_prior, "mixture");
}

int main(void) {
  CU_TestInfo tests[] = {{"every draw follows the closed form", test_draws_follow_the_closed_form},
                         {"mixture posterior against quadrature", test_mixture_posterior_against_quadrature},
                         {"ts is mixts with one component", test_ts_is_mixts_with_one_component},
                         {"presets", test_presets},
                         CU_TEST_INFO_NULL};
  return harness_run("conjugate", tests);
}
