/* ts, tuned_ts and mixts: single draws against the posterior by another formula, their law against
 * brute-force quadrature. */
#include "core/arena.h"
#include "sampler_fixture.h"

#include "core/linalg/linalg.h"
#include "sampler/mixture/mixture_posterior.h"

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

/* ---- many dimensions, where the draws of a run share its matrices */

enum { WIDE = 20, WIDE_RUNS = 3, WIDE_DRAWS = 70, WIDE_COMPONENTS = 3, WIDE_ROWS = 5 };

static Mixture wide_mixture(Arena *memory) {
  Mixture mixture;
  Rng rng = fixture_rng(1, 2100);
  CHECK_OK(mixture_create(memory, WIDE, WIDE_COMPONENTS, &mixture));
  for (int c = 0; c < WIDE_COMPONENTS; c++) {
    double root[WIDE * WIDE];
    mixture.weight[c] = (c + 1) / 6.0;
    rng_normal(&rng, WIDE, mixture.mean + c * WIDE);
    rng_normal(&rng, WIDE * WIDE, root);
    linalg_product(WIDE, false, root, true, root, mixture.covariance + c * WIDE * WIDE);
    for (int i = 0; i < WIDE; i++) mixture.covariance[(c * WIDE + i) * WIDE + i] += 1;
  }
  CHECK_OK(mixture_prepare(&mixture));
  return mixture;
}

/* Makes a history of this many runs, phi[rows][d, B], y[rows][B]. */
static History wide_history(Arena *memory, int runs, const Likelihood *likelihood, const double *phi,
                            const double *y) {
  History history;
  CHECK_OK(history_create(memory, WIDE, runs, likelihood, &history));
  CHECK_OK(history_reserve(&history, WIDE_ROWS));
  for (int l = 0; l < WIDE_ROWS; l++) history_record(&history, NULL, phi + l * WIDE * runs, y + l * runs);
  return history;
}

/* Checks each draw theta from component c by (theta - m_c)' P_c (theta - m_c) = |z|^2, with P_c summed over
 * observations, m_c by LU factorisation and z from the documented use of the stream, to 1e-9 of 20 terms; and
 * that a run has the same draws when it is alone, up to the rounding of its factor. */
static void test_many_dimensions(void) {
  SCRATCH_ARENA(memory);
  static double theta[WIDE * WIDE_RUNS * WIDE_DRAWS], alone[WIDE * WIDE_DRAWS];
  static int component[WIDE_RUNS * WIDE_DRAWS];
  const int runs = WIDE_RUNS, lanes = WIDE_RUNS * WIDE_DRAWS;
  const Likelihood likelihood = fixture_likelihood(0.8);
  const MixtureOptions options = {.candidates = 1};
  double phi[WIDE_ROWS * WIDE * WIDE_RUNS], y[WIDE_ROWS * WIDE_RUNS], own_phi[WIDE_ROWS * WIDE],
      own_y[WIDE_ROWS];
  int64_t fallbacks[WIDE_RUNS] = {0};
  int used[WIDE_COMPONENTS] = {0};
  Rng rng = fixture_rng(2, 2100);
  MixturePosterior *posterior, *single;
  rng_normal(&rng, WIDE_ROWS * WIDE * runs, phi);
  rng_normal(&rng, WIDE_ROWS * runs, y);
  for (int k = 0; k < WIDE_ROWS * WIDE; k++) own_phi[k] = phi[k * runs];
  for (int l = 0; l < WIDE_ROWS; l++) own_y[l] = y[l * runs];
  Mixture mixture = wide_mixture(&memory);
  History history = wide_history(&memory, runs, &likelihood, phi, y),
          first = wide_history(&memory, 1, &likelihood, own_phi, own_y);
  CHECK_OK(mixture_posterior_create(&memory, &mixture, &likelihood, runs, options, &posterior));
  CHECK_OK(mixture_posterior_create(&memory, &mixture, &likelihood, 1, options, &single));
  const RngKey key = rng_key(FIXTURE_SEED, RNG_TEST);
  mixture_posterior_sample(posterior, &history, rng_lanes(key, 0, (uint32_t)runs, WIDE_DRAWS, 0), WIDE_DRAWS,
                           theta, component, fallbacks);
  mixture_posterior_sample(single, &first, rng_lanes(key, 0, 1, WIDE_DRAWS, 0), WIDE_DRAWS, alone, NULL,
                           fallbacks);
  for (int i = 0; i < WIDE; i++)
    for (int m = 0; m < WIDE_DRAWS; m++) CHECK_NEAR(alone[i * WIDE_DRAWS + m], theta[i * lanes + m], 1e-11);
  for (int n = 0; n < lanes; n++) {
    const int run = n / WIDE_DRAWS, c = component[n];
    double p[WIDE * WIDE], inverse[WIDE * WIDE], h[WIDE], e[WIDE], u, z[WIDE], square = 0, expected = 0;
    Rng stream = {.key = key, .run = (uint32_t)run, .draw = (uint32_t)(n % WIDE_DRAWS)};
    used[c]++;
    rng_uniform(&stream, 1, &u);
    rng_normal(&stream, WIDE, z);
    memcpy(p, mixture_precision(&mixture, c), sizeof p);
    memcpy(h, mixture_information(&mixture, c), sizeof h);
    for (int l = 0; l < WIDE_ROWS; l++)
      for (int i = 0; i < WIDE; i++) {
        const double at_i = phi[(l * WIDE + i) * runs + run] / 0.64;
        h[i] += at_i * y[l * runs + run];
        for (int j = 0; j < WIDE; j++) p[i * WIDE + j] += at_i * phi[(l * WIDE + j) * runs + run];
      }
    CU_ASSERT_TRUE(linalg_invert(WIDE, p, inverse));
    for (int i = 0; i < WIDE; i++) {
      e[i] = theta[i * lanes + n];
      for (int j = 0; j < WIDE; j++) e[i] -= inverse[i * WIDE + j] * h[j];
    }
    for (int i = 0; i < WIDE; i++) {
      expected += z[i] * z[i];
      for (int j = 0; j < WIDE; j++) square += e[i] * p[i * WIDE + j] * e[j];
    }
    CHECK_NEAR(square, expected, 1e-9 * expected);
  }
  int several = 0;
  for (int c = 0; c < WIDE_COMPONENTS; c++) several += used[c] > 0;
  CU_ASSERT_TRUE(several > 1);
}

/* Checks the evidence of histories with the same features and other rewards, found with one set of matrices,
 * against one history of that many runs, to rounding. */
static void test_shared_evidence(void) {
  SCRATCH_ARENA(memory);
  const int runs = WIDE_RUNS;
  const Likelihood likelihood = fixture_likelihood(0.8);
  const MixtureOptions options = {.candidates = 1};
  double phi[WIDE_ROWS * WIDE * WIDE_RUNS], y[WIDE_ROWS * WIDE_RUNS],
      b[WIDE * WIDE_RUNS] = {0}, whitened[WIDE * WIDE_RUNS], apart[WIDE_COMPONENTS * WIDE_RUNS],
               shared[WIDE_COMPONENTS * WIDE_RUNS];
  int64_t fallbacks[WIDE_RUNS] = {0};
  Rng rng = fixture_rng(3, 2100);
  MixturePosterior *posterior;
  rng_normal(&rng, WIDE_ROWS * WIDE * runs, phi);
  rng_normal(&rng, WIDE_ROWS * runs, y);
  for (int k = 0; k < WIDE_ROWS * WIDE * runs; k++) phi[k] = phi[k / runs * runs];
  for (int l = 0; l < WIDE_ROWS; l++)
    for (int i = 0; i < WIDE; i++)
      for (int n = 0; n < runs; n++) b[i * runs + n] += phi[(l * WIDE + i) * runs] * y[l * runs + n] / 0.64;
  Mixture mixture = wide_mixture(&memory);
  History history = wide_history(&memory, runs, &likelihood, phi, y);
  CHECK_OK(mixture_posterior_create(&memory, &mixture, &likelihood, runs, options, &posterior));
  mixture_posterior_evidence(posterior, &history, apart, fallbacks);
  mixture_posterior_evidence_shared(posterior, &history, 1, runs, b, whitened, shared);
  for (int k = 0; k < WIDE_COMPONENTS * runs; k++) CHECK_NEAR(shared[k], apart[k], 1e-11 * fabs(apart[k]));
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
                         {"many dimensions", test_many_dimensions},
                         {"evidence with shared matrices", test_shared_evidence},
                         {"ts is mixts with one component", test_ts_is_mixts_with_one_component},
                         {"presets", test_presets},
                         CU_TEST_INFO_NULL};
  return harness_run("conjugate", tests);
}
