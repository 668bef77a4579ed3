/* Methods for large d, tested in small dimensions: mixtures of isotropic Gaussians against mixtures with
 * matrices; draws in the eigenbasis against those of the ordinary samplers, one by one, when the evidence is
 * already diagonal. */
#include "core/arena.h"
#include "model/denoiser/denoiser_isotropic.h"
#include "model/mixture/mixture_density.h"
#include "sampler/diagonal.h"
#include "sampler/methods.h"
#include "sampler_fixture.h"

enum { D = 3, COMPONENTS = 3, POINTS = 40, DRAWS = 150, MANY = 20000 };

static const double WEIGHT[] = {0.5, 0.2, 0.3}, VARIANCE[] = {0.1, 0.4, 0.9};
static const double MEAN[] = {1, -1, 0.5, -2, 0.3, 1, 0.2, 2, -1};

static Isotropic make_isotropic(Arena *memory) {
  Isotropic out;
  CHECK_OK(denoiser_isotropic_create(memory, D, COMPONENTS, &out));
  memcpy(out.weight, WEIGHT, sizeof WEIGHT);
  memcpy(out.variance, VARIANCE, sizeof VARIANCE);
  memcpy(out.mean, MEAN, sizeof MEAN);
  return out;
}

/* Makes the law of sqrt(signal) theta + sqrt(1 - signal) noise, with matrices. */
static Mixture make_mixture(Arena *memory, double signal) {
  Mixture out;
  CHECK_OK(mixture_create(memory, D, COMPONENTS, &out));
  for (int c = 0; c < COMPONENTS; c++) {
    out.weight[c] = WEIGHT[c];
    for (int i = 0; i < D; i++) {
      out.mean[c * D + i] = sqrt(signal) * MEAN[c * D + i];
      out.covariance[(c * D + i) * D + i] = signal * VARIANCE[c] + 1 - signal;
    }
  }
  CHECK_OK(mixture_prepare(&out));
  return out;
}

static void test_densities(void) {
  SCRATCH_ARENA(memory);
  Isotropic isotropic = make_isotropic(&memory);
  double x[D * POINTS], density[POINTS], expected[POINTS], score[D * POINTS], expected_score[D * POINTS];
  Rng rng = fixture_rng(1, 1);
  rng_normal(&rng, D * POINTS, x);
  for (int n = 0; n < D * POINTS; n++) x[n] *= 1 + 10 * (n % POINTS == 7); /* one far away */
  for (double signal = 1; signal > 0.1; signal -= 0.4) {
    Mixture mixture = make_mixture(&memory, signal);
    denoiser_isotropic_density(&isotropic, signal, POINTS, x, density, score);
    mixture_log_density(&mixture, POINTS, x, expected);
    mixture_score(&mixture, POINTS, x, expected_score);
    for (int n = 0; n < POINTS; n++)
      CHECK_NEAR(density[n] - D * 0.5 * log(2 * M_PI), expected[n], 1e-12 * (1 + fabs(expected[n])));
    for (int n = 0; n < D * POINTS; n++)
      CHECK_NEAR(score[n], expected_score[n], 1e-11 * (1 + fabs(expected_score[n])));
  }
  int component[POINTS];
  denoiser_isotropic_nearest(&isotropic, POINTS, x, component);
  for (int n = 0; n < POINTS; n++) {
    double best = -INFINITY;
    int nearest = 0;
    for (int c = 0; c < COMPONENTS; c++) {
      double square = 0;
      for (int i = 0; i < D; i++) square += pow(x[i * POINTS + n] - MEAN[c * D + i], 2);
      const double value = log(WEIGHT[c] * pow(VARIANCE[c], -0.5 * D)) - 0.5 * square / VARIANCE[c];
      if (value > best) best = value, nearest = c;
    }
    CU_ASSERT_EQUAL(component[n], nearest);
  }
}

static void test_samples_and_moments(void) {
  SCRATCH_ARENA(memory);
  Isotropic isotropic = make_isotropic(&memory);
  Mixture mixture = make_mixture(&memory, 1);
  double x[D * POINTS], y[D * POINTS], mean[D], variance[D], expected[D], covariance[D * D];
  RngLanes rng = {.key = rng_key(3, RNG_TEST), .draws = 5, .lanes = POINTS}, again = rng;
  denoiser_isotropic_sample(&isotropic, &rng, x);
  mixture_sample(&mixture, &again, y);
  for (int n = 0; n < D * POINTS; n++) CHECK_NEAR(x[n], y[n], 1e-14 * (1 + fabs(y[n])));
  denoiser_isotropic_moments(&isotropic, mean, variance);
  mixture_moments(&mixture, expected, covariance);
  for (int i = 0; i < D; i++) {
    CHECK_NEAR(mean[i], expected[i], 1e-14);
    CHECK_NEAR(variance[i], covariance[i * D + i], 1e-14);
  }
}

/* Observations along the axes: the evidence is diag(q), also where q is 0. */
static const double Q[] = {3, 0.02, 0.4}, Y[] = {2, -1, 0.5};

static FixtureData axes(void) {
  FixtureData data = {.d = D, .n = D, .noise = 1};
  for (int l = 0; l < D; l++) data.phi[l][l] = sqrt(Q[l]), data.y[l] = Y[l];
  return data;
}

/* Returns theta[D, draws], from the streams of fixture_draw. */
static double *draw_diagonal(const SamplerOps *method, int draws, int set_count, const char *const *sets) {
  SCRATCH_ARENA(memory);
  Isotropic prior = make_isotropic(&memory);
  Chain chain;
  Config *options = NULL;
  double b[D], *theta = fixture_new((size_t)(D * draws), sizeof *theta);
  int64_t fallbacks = 0;
  DrawNotes notes = DRAW_NOTES_NONE;
  for (int i = 0; i < D; i++) b[i] = sqrt(Q[i]) * Y[i];
  CHECK_OK(denoiser_isotropic_chain(&memory, &prior, &(ScheduleRule){.stages = 100, .alpha = 0.97}, &chain));
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), set_count, sets, &options));
  const Diagonal posterior = {.q = Q, .b = b, .prior = &prior, .chain = &chain, .options = options};
  const RngLanes rng = {
      .key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = (uint32_t)draws, .lanes = (uint32_t)draws};
  CHECK_OK(method->diagonal->draw(&posterior, rng, theta, &notes, &fallbacks));
  CU_ASSERT_EQUAL(fallbacks, 0);
  return theta;
}

/* Checks that the same numbers lead to the same draws: two paths through the same formulas. Few steps,
 * because more would let rounding grow. */
static void test_same_draws_as_ordinary_samplers(void) {
  SCRATCH_ARENA(memory);
  static const char *const mala[] = {"steps=20"}, *const tilted[] = {"steps=20", "reverse=exponential"},
                           *const ula[] = {"steps=20", "reverse=exponential", "baseline=ula"};
  const struct {
    const SamplerOps *method;
    int set_count;
    const char *const *sets;
  } cases[] = {{&sampler_mala, 1, mala}, {&sampler_tilted, 2, tilted}, {&sampler_tilted, 3, ula}};
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  fit.standardise = false;
  Mixture mixture = make_mixture(&memory, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  const Likelihood likelihood = fixture_likelihood(1);
  const FixtureData data = axes();
  History history;
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, D));
  for (int l = 0; l < D; l++) history_record(&history, NULL, data.phi[l], &data.y[l]);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    double *ordinary =
        fixture_draw(cases[k].method, &prior, &history, 0, DRAWS, cases[k].set_count, cases[k].sets, NULL);
    double *diagonal = draw_diagonal(cases[k].method, DRAWS, cases[k].set_count, cases[k].sets);
    for (int n = 0; n < D * DRAWS; n++) CHECK_NEAR(diagonal[n], ordinary[n], 1e-10);
    free(ordinary);
    free(diagonal);
  }
}

/* Checks mean and covariance within 5 standard errors of the closed form. */
static void check_moments(const SamplerOps *method, int set_count, const char *const *sets) {
  SCRATCH_ARENA(memory);
  Mixture mixture = make_mixture(&memory, 1);
  const FixtureData data = axes();
  const FixturePosterior posterior = fixture_posterior(&mixture, &data);
  double *x = draw_diagonal(method, MANY, set_count, sets);
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) {
      double sum = 0, square = 0, first = 0;
      for (int n = 0; n < MANY; n++) {
        const double product =
            (x[i * MANY + n] - posterior.total_mean[i]) * (x[j * MANY + n] - posterior.total_mean[j]);
        sum += product / MANY, square += product * product / MANY, first += x[i * MANY + n] / MANY;
      }
      CHECK_NEAR(sum, posterior.total_covariance[i * D + j], 5 * sqrt((square - sum * sum) / MANY));
      CHECK_NEAR(first, posterior.total_mean[i], 5 * sqrt(posterior.total_covariance[i * D + i] / MANY));
    }
  free(x);
}

static void test_exact(void) { check_moments(&sampler_exact, 0, NULL); }

/* Checks localised draws: the error of 40 steps is below the standard error of 20 000 draws. */
static void test_localised(void) {
  static const char *const steps[] = {"steps=40"};
  check_moments(&sampler_localised, 1, steps);
}

static void test_refusals(void) {
  static const char *const mixture[] = {"covariance=mixture"};
  SCRATCH_ARENA(memory);
  static const char *const smc[] = {"baseline=smc"}, *const moments[] = {"reverse=moments"};
  Config *options = NULL;
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_tilted), 1, smc, &options));
  CHECK_FAILS(diagonal_tilted.check(options), STATUS_INPUT, "large settings allow mala and ula");
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_tilted), 1, moments, &options));
  CHECK_FAILS(diagonal_tilted.check(options), STATUS_INPUT, "large settings allow exponential");
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_localised), 1, mixture, &options));
  CHECK_FAILS(diagonal_localised.check(options), STATUS_INPUT, "large settings compute it in closed form");
}

int main(void) {
  CU_TestInfo tests[] = {{"densities", test_densities},
                         {"samples and moments", test_samples_and_moments},
                         {"the draws of ordinary samplers", test_same_draws_as_ordinary_samplers},
                         {"exact draws", test_exact},
                         {"moments of localised draws", test_localised},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  return harness_run("diagonal", tests);
}
