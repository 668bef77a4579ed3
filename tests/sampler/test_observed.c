/* Draws in the coordinates that matter (sampler/observed.h), and without matrices, tested in small
 * dimensions: mixtures of isotropic Gaussians against mixtures with matrices; samplers without matrices
 * against themselves with matrices, draw by draw, when the evidence is diagonal already; draws of a few
 * coordinates against the posterior of all. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser_isotropic.h"
#include "model/history/history_density.h"
#include "model/mixture/mixture_density.h"
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

static DiagonalEvidence diagonal_evidence(double *b) {
  double squares = 0;
  for (int i = 0; i < D; i++) {
    b[i] = sqrt(Q[i]) * Y[i];
    squares += Y[i] * Y[i];
  }
  return (DiagonalEvidence){.d = D, .observations = D, .q = Q, .b = b, .reward_squares = squares};
}

/* Returns theta[D, draws], from the streams of fixture_draw, without matrices. */
static double *draw_diagonal(const SamplerOps *method, int draws, int set_count, const char *const *sets) {
  SCRATCH_ARENA(memory);
  const Isotropic mixture = make_isotropic(&memory);
  const Likelihood likelihood = fixture_likelihood(1);
  Chain chain;
  Prior prior;
  History history;
  Sampler sampler;
  Config *options = NULL;
  double b[D], shift[D] = {0}, *theta = fixture_new((size_t)(D * draws), sizeof *theta);
  int64_t fallbacks = 0;
  const DiagonalEvidence evidence = diagonal_evidence(b);
  CHECK_OK(
      denoiser_isotropic_chain(&memory, &mixture, &(ScheduleRule){.stages = 100, .alpha = 0.97}, &chain));
  CHECK_OK(prior_isotropic_like(&memory, &mixture, &chain, shift, false, &prior));
  CHECK_OK(history_create_diagonal(&memory, &evidence, &likelihood, &history));
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), set_count, sets, &options));
  const SamplerSetup setup = {.prior = &prior,
                              .likelihood = &likelihood,
                              .runs = 1,
                              .draws = draws,
                              .diagonal = true,
                              .options = options};
  const RngLanes rng = {
      .key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = (uint32_t)draws, .lanes = (uint32_t)draws};
  CHECK_OK(sampler_create_plain(&memory, method, &setup, &sampler));
  sampler_sample_plain(&sampler, &history, rng, draws, theta, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  return theta;
}

/* Checks every reader of a diagonal history against the same observations in an ordinary one, in shifted,
 * scaled and tempered coordinates. */
static void test_diagonal_history(void) {
  enum { LANES = 5 };
  static const double shift[D] = {0.5, -1, 2}, scale[D] = {2, 0.5, 3};
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  const FixtureData data = axes();
  History ordinary, diagonal;
  HistoryDensity density[2];
  double b[D], z[D * LANES], precision[2][D * D * LANES], vector[2][D * LANES], residual[2][LANES],
      value[2][LANES], gradient[2][D * LANES];
  const DiagonalEvidence evidence = diagonal_evidence(b);
  Rng rng = fixture_rng(2, 2);
  rng_normal(&rng, D * LANES, z);
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &ordinary));
  CHECK_OK(history_reserve(&ordinary, D));
  for (int l = 0; l < D; l++) history_record(&ordinary, NULL, data.phi[l], &data.y[l]);
  CHECK_OK(history_create_diagonal(&memory, &evidence, &likelihood, &diagonal));
  History *const both[] = {&ordinary, &diagonal};
  for (int k = 0; k < 2; k++) {
    both[k]->temper = 1.7;
    const HistoryView view = history_view_in(history_points(both[k], 0, LANES), shift, scale);
    CU_ASSERT_TRUE(history_evidence(&view, precision[k], vector[k]));
    history_residual(&view, residual[k]);
    CHECK_OK(history_density_create(&memory, D, 1, &likelihood, &density[k]));
    history_density_at(&density[k], &view, NULL);
    history_density(&density[k], z, value[k], gradient[k]);
  }
  for (int k = 0; k < D * D * LANES; k++) CHECK_NEAR(precision[0][k], precision[1][k], 1e-13);
  for (int k = 0; k < D * LANES; k++) CHECK_NEAR(vector[0][k], vector[1][k], 1e-12);
  for (int k = 0; k < D * LANES; k++) CHECK_NEAR(gradient[0][k], gradient[1][k], 1e-11);
  for (int n = 0; n < LANES; n++) CHECK_NEAR(residual[0][n], residual[1][n], 1e-12);
  for (int n = 1; n < LANES; n++) /* each up to a constant */
    CHECK_NEAR(value[0][n] - value[0][0], value[1][n] - value[1][0], 1e-10);
  CHECK_NEAR(history_squares(&ordinary, 0), history_squares(&diagonal, 0), 1e-13);
  CU_ASSERT_EQUAL(history_observations(&diagonal, 0), D);
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

/* ---- a few coordinates of many */

enum { WIDE = 8, FEW = 3, MODES = 2 };

/* Returns a mixture of two Gaussians that differ in one direction, with variances 0.4 and `other`. */
static Isotropic make_wide(Arena *memory, double other) {
  Isotropic out;
  CHECK_OK(denoiser_isotropic_create(memory, WIDE, MODES, &out));
  out.weight[0] = 0.3;
  out.weight[1] = 0.7;
  out.variance[0] = 0.4;
  out.variance[1] = other;
  for (int i = 0; i < WIDE; i++) {
    out.mean[i] = 0.5 + 0.1 * i;
    out.mean[WIDE + i] = out.mean[i] - 0.8 * sin(i);
  }
  return out;
}

static Mixture with_matrices(Arena *memory, const Isotropic *from) {
  Mixture out;
  CHECK_OK(mixture_create(memory, WIDE, MODES, &out));
  for (int c = 0; c < MODES; c++) {
    out.weight[c] = from->weight[c];
    for (int i = 0; i < WIDE; i++) {
      out.mean[c * WIDE + i] = from->mean[c * WIDE + i];
      out.covariance[(c * WIDE + i) * WIDE + i] = from->variance[c];
    }
  }
  CHECK_OK(mixture_prepare(&out));
  return out;
}

/* Returns theta[WIDE, MANY], drawn for themselves. */
static double *draw_wide(const SamplerOps *method, const Prior *prior, const History *history, int set_count,
                         const char *const *sets) {
  SCRATCH_ARENA(memory);
  Sampler sampler;
  Config *options = NULL;
  double *theta = fixture_new((size_t)WIDE * MANY, sizeof *theta);
  int64_t fallbacks = 0;
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), set_count, sets, &options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = history->likelihood,
                              .runs = 1,
                              .draws = MANY,
                              .for_themselves = true,
                              .options = options};
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  CU_ASSERT_TRUE(sampler.observed);
  sampler_sample(&sampler, history, rng_lanes(rng_key(FIXTURE_SEED, RNG_TEST), 0, 1, MANY, 1), MANY, theta,
                 &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  return theta;
}

/* Checks mean[WIDE] and covariance[WIDE, WIDE] of draws within 5 standard errors, and some `slack`. */
static void check_wide(const double *theta, const double *mean, const double *covariance, double slack) {
  for (int i = 0; i < WIDE; i++)
    for (int j = 0; j <= i; j++) {
      double sum = 0, square = 0, first = 0;
      for (int n = 0; n < MANY; n++) {
        const double product = (theta[i * MANY + n] - mean[i]) * (theta[j * MANY + n] - mean[j]);
        sum += product / MANY;
        square += product * product / MANY;
        first += theta[i * MANY + n] / MANY;
      }
      CHECK_NEAR(sum, covariance[i * WIDE + j], slack + 5 * sqrt((square - sum * sum) / MANY));
      CHECK_NEAR(first, mean[i], slack + 5 * sqrt(covariance[i * WIDE + i] / MANY));
    }
}

/* Checks samplers, three observations in eight dimensions, against the posterior of all of them: with equal
 * variances four coordinates remain, with different ones all eight. `temper: 2` counts as two observations.
 */
static void test_few_coordinates(void) {
  static const char *const plain[] = {"temper=2"}, *const steps[] = {"temper=2", "steps=40"},
                           *const chain[] = {"temper=2", "steps=60"},
                           *const cloud[] = {"temper=2", "particles=20000"};
  const struct {
    const SamplerOps *method;
    int set_count;
    const char *const *sets;
    double slack; /* of methods that are not exact */
  } cases[] = {{&sampler_exact, 0, plain, 0}, /* without temper: see below */
               {&sampler_mixts, 1, plain, 0},
               {&sampler_localised, 2, steps, 0.01},
               {&sampler_mala, 2, chain, 0.01},
               {&sampler_smc_tempered, 2, cloud, 0.03}};
  for (int v = 0; v < 2; v++)
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
      SCRATCH_ARENA(memory);
      const Isotropic isotropic = make_wide(&memory, v == 0 ? 0.4 : 0.9);
      const Mixture mixture = with_matrices(&memory, &isotropic);
      const PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
      const bool tempered = cases[k].set_count > 0;
      FixtureData data = fixture_data(WIDE, FEW, 0.7, 0);
      const Likelihood likelihood = fixture_likelihood(0.7);
      const History history = fixture_history(&memory, WIDE, 1, 0, FEW, &likelihood);
      Prior prior;
      CHECK_OK(prior_isotropic(&memory, &isotropic, &fit, &prior));
      if (tempered) data.noise /= sqrt(2);
      const FixturePosterior posterior = fixture_posterior(&mixture, &data);
      double *theta = draw_wide(cases[k].method, &prior, &history, cases[k].set_count, cases[k].sets);
      check_wide(theta, posterior.total_mean, posterior.total_covariance, cases[k].slack);
      free(theta);
    }
}

/* Checks clicks: in the coordinates of three observations expectation propagation finds what it finds in all
 * eight, whose moments are a closed form. */
static void test_clicks_in_few_coordinates(void) {
  static const char *const plain[] = {"candidates=1"};
  SCRATCH_ARENA(memory);
  const Isotropic isotropic = make_wide(&memory, 0.4);
  const PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  const FixtureData data = fixture_data(WIDE, FEW, 1, 0);
  double mean[WIDE], covariance[WIDE * WIDE];
  int64_t fallbacks = 0;
  History history;
  Prior prior;
  Sampler ordinary;
  Config *options = NULL;
  CHECK_OK(prior_isotropic(&memory, &isotropic, &fit, &prior));
  CHECK_OK(history_create(&memory, WIDE, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, FEW));
  for (int l = 0; l < FEW; l++) {
    const double click = data.y[l] > 0;
    history_record(&history, NULL, data.phi[l], &click);
  }
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_mixts), 1, plain, &options));
  const SamplerSetup setup = {
      .prior = &prior, .likelihood = &likelihood, .runs = 1, .draws = 1, .options = options};
  CHECK_OK(sampler_create(&memory, &sampler_mixts, &setup, &ordinary));
  sampler_moments(&ordinary, &history, (RngLanes){0}, NULL, mean, covariance, &fallbacks);
  double *theta = draw_wide(&sampler_mixts, &prior, &history, 1, plain);
  check_wide(theta, mean, covariance, 1e-3); /* the tolerance of expectation propagation */
  free(theta);
}

/* Checks that every method can be created in 2 000 dimensions for few observations, and that those which make
 * matrices for each draw are refused, with their size, for many. */
static void test_refusals(void) {
  enum { MANY_DIMENSIONS = 2000 };
  SCRATCH_ARENA(memory);
  const PriorFit fit = fixture_fit(5, 0.7, LAST_STAGE_REPAIRED);
  const Likelihood likelihood = fixture_likelihood(1);
  Isotropic mixture;
  Prior prior;
  int refused = 0;
  CHECK_OK(denoiser_isotropic_create(&memory, MANY_DIMENSIONS, 1, &mixture));
  mixture.weight[0] = mixture.variance[0] = 1;
  CHECK_OK(prior_isotropic(&memory, &mixture, &fit, &prior));
  CU_ASSERT_TRUE(!prior.mixture);
  for (int k = 0; sampler_method(k); k++) {
    const SamplerOps *method = sampler_method(k);
    Config *options = NULL;
    Sampler sampler;
    CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
    SamplerSetup setup = {.prior = &prior,
                          .likelihood = &likelihood,
                          .runs = 1,
                          .draws = 8,
                          .for_themselves = true,
                          .observations = 20,
                          .options = options};
    SCRATCH_ARENA(own);
    CHECK_OK(sampler_create(&own, method, &setup, &sampler));
    setup.observations = 0;
    if (method->vectors && method->vectors(&setup)) {
      CHECK_OK(sampler_create(&own, method, &setup, &sampler));
      continue;
    }
    refused++;
    CHECK_FAILS(sampler_create(&own, method, &setup, &sampler), STATUS_INPUT,
                "makes matrices of 2000 x 2000 for each of 64 draws at a time, 2.0 GB");
  }
  CU_ASSERT_TRUE(refused > 0);
}

/* ---- the log evidence of a mixture */

enum { SEEN = 4, MOST = 40 };

/* Returns log N(y; X mean, X covariance X' + noise^2 I) of rows x[SEEN, d], without (2 pi)^(-SEEN / 2). */
static double log_predicted(int d, const double *mean, const double *covariance, const double *x,
                            const double *y, double noise) {
  double predicted[SEEN * SEEN], off[SEEN], sum = 0;
  for (int l = 0; l < SEEN; l++) {
    off[l] = y[l];
    for (int i = 0; i < d; i++) off[l] -= x[l * d + i] * mean[i];
    for (int k = 0; k < SEEN; k++) {
      double *entry = &predicted[l * SEEN + k];
      *entry = l == k ? noise * noise : 0;
      for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++) *entry += x[l * d + i] * covariance[i * d + j] * x[k * d + j];
    }
  }
  CHECK_OK(linalg_cholesky(SEEN, predicted));
  for (int l = 0; l < SEEN; l++) { /* off <- L^-1 off */
    for (int k = 0; k < l; k++) off[l] -= predicted[l * SEEN + k] * off[k];
    off[l] /= predicted[l * (SEEN + 1)];
    sum += off[l] * off[l];
  }
  return -0.5 * (sum + linalg_log_determinant(SEEN, predicted));
}

/* Returns what a sampler notes as the log evidence of the rows, with its constant but for 2 pi, and computes
 * its standard error. */
static double noted_evidence(const char *name, const Prior *prior, const double *x, const double *y,
                             double noise, double *error) {
  SCRATCH_ARENA(memory);
  const SamplerOps *method = sampler_find(name);
  const Likelihood likelihood = fixture_likelihood(noise);
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 2, .lanes = 2};
  double theta[2 * MOST];
  int64_t fallbacks = 0;
  Config *options;
  History history;
  Sampler sampler;
  CHECK_OK(history_create(&memory, prior->d, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, SEEN));
  for (int l = 0; l < SEEN; l++) history_record(&history, NULL, x + l * prior->d, y + l);
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = &likelihood,
                              .runs = 1,
                              .draws = 2,
                              .for_themselves = true,
                              .observations = SEEN,
                              .options = options};
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  sampler_sample(&sampler, &history, rng, 2, theta, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  *error = sampler.notes[0].log_evidence_error;
  return sampler.notes[0].log_evidence - SEEN * log(noise);
}

/* Checks the log evidence that closed forms note, and that of a cloud within three standard errors, in few
 * and many dimensions (where only what is observed is drawn by the sampler, and the cloud is that of SEEN
 * dimensions), under isotropic components (where nothing has matrices) and others. */
static void test_log_evidence(void) {
  static const int dimensions[] = {3, MOST};
  static const char *const names[] = {"mixts", "exact", "smc_tempered"};
  const PriorFit fit = fixture_fit(10, 0.9, LAST_STAGE_REPAIRED);
  const double noise = 0.7;
  for (int k = 0; k < 4; k++) {
    SCRATCH_ARENA(memory);
    const int d = dimensions[k % 2];
    double x[SEEN * MOST], y[SEEN], expected = 0;
    Rng rng = fixture_rng(1, 1);
    Mixture mixture;
    rng_normal(&rng, SEEN * d, x);
    rng_normal(&rng, SEEN, y);
    CHECK_OK(mixture_create(&memory, d, 2, &mixture));
    for (int c = 0; c < 2; c++) {
      mixture.weight[c] = c ? 0.7 : 0.3;
      rng_normal(&rng, d, mixture.mean + c * d);
      for (int i = 0; i < d * d; i++)
        mixture.covariance[c * d * d + i] = (i % (d + 1) == 0 ? 0.5 : 0) + (k < 2 ? 0.1 * (c + 1) : 0);
    }
    CHECK_OK(mixture_prepare(&mixture));
    for (int c = 0; c < 2; c++)
      expected += mixture.weight[c] *
                  exp(log_predicted(d, mixture.mean + c * d, mixture.covariance + c * d * d, x, y, noise));
    const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    for (int name = 0; name < 3; name++) {
      double error = 0;
      const double noted = noted_evidence(names[name], &prior, x, y, noise, &error);
      CU_ASSERT_TRUE(name < 2 ? error == 0 : error > 0 && error < 0.5);
      CHECK_NEAR(noted, log(expected), name < 2 ? 1e-10 : 3 * error);
    }
  }
}

/* Checks that a sampler whose draws are copies of its particles copies only what is observed: of two
 * particles no two of eight draws are the same under a mixture, whose other directions are drawn given those.
 */
static void test_copies(void) {
  enum { EIGHT = 8 };
  static const char *const two[] = {"particles=2"};
  SCRATCH_ARENA(memory);
  const PriorFit fit = fixture_fit(10, 0.9, LAST_STAGE_REPAIRED);
  const Likelihood likelihood = fixture_likelihood(0.5);
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = EIGHT, .lanes = EIGHT};
  double phi[MOST] = {1, 1}, theta[EIGHT * MOST];
  const double reward = 1;
  int64_t fallbacks = 0;
  Mixture mixture;
  History history;
  Sampler sampler;
  Config *options = NULL;
  CHECK_OK(mixture_create(&memory, MOST, 1, &mixture));
  mixture.weight[0] = 1;
  for (int i = 0; i < MOST * MOST; i++) mixture.covariance[i] = 0.1 + (i % (MOST + 1) == 0 ? 0.5 : 0);
  CHECK_OK(mixture_prepare(&mixture));
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  CHECK_OK(history_create(&memory, MOST, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, 1));
  history_record(&history, NULL, phi, &reward);
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_smc_tempered), 1, two, &options));
  const SamplerSetup setup = {.prior = &prior,
                              .likelihood = &likelihood,
                              .runs = 1,
                              .draws = EIGHT,
                              .for_themselves = true,
                              .observations = 1,
                              .options = options};
  CHECK_OK(sampler_create(&memory, &sampler_smc_tempered, &setup, &sampler));
  sampler_sample(&sampler, &history, rng, EIGHT, theta, &fallbacks);
  for (int m = 0; m < EIGHT; m++)
    for (int n = 0; n < m; n++) CU_ASSERT_NOT_EQUAL(theta[m], theta[n]);
}

int main(void) {
  CU_TestInfo tests[] = {{"densities", test_densities},
                         {"samples and moments", test_samples_and_moments},
                         {"a diagonal history", test_diagonal_history},
                         {"the draws of samplers with matrices", test_same_draws_as_ordinary_samplers},
                         {"exact draws", test_exact},
                         {"moments of localised draws", test_localised},
                         {"few coordinates", test_few_coordinates},
                         {"clicks in few coordinates", test_clicks_in_few_coordinates},
                         {"refusals", test_refusals},
                         {"log evidence", test_log_evidence},
                         {"copies", test_copies},
                         CU_TEST_INFO_NULL};
  return harness_run("observed", tests);
}
