/* LaplaceDPS: without evidence it is the chain itself; a stage is Lemma 6; its law for a Gaussian prior,
 * biased by design, is the one computed by propagating the linear-Gaussian recursion, and for many stages the
 * one of the exponential integrals. */
#include "sampler_fixture.h"

#include "core/arena.h"
#include "core/chunk.h"
#include "core/linalg/linalg.h"
#include "sampler/diffusion/laplace_product.h"

static const SamplerOps *diffts(void) { return sampler_find("diffts"); }

/* ---- without observations */

/* Checks that the draws with the option `set` are those of the chain with that last stage. A build of one
 * version for all processors rounds where the kernel of a stage fuses, hence the tolerance. */
static void laplace_check_no_history(const Prior *prior, LastStage option, const char *set) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, DRAWS = 37, LANES = RUNS * DRAWS };
  const int d = prior->d;
  const Likelihood likelihood = fixture_likelihood(1);
  History history = fixture_history(&memory, d, RUNS, 0, 0, &likelihood);
  double *theta = fixture_draw(diffts(), prior, &history, 0, DRAWS, 1, &set, NULL);
  double expected[FIXTURE_DIMENSION * LANES], scratch[2 * FIXTURE_DIMENSION * LANES];
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = LANES};
  Chain chain = *prior->chain;
  chain.last_stage = option;
  denoiser_chain_sample(&chain, &rng, expected, scratch);
  for (int i = 0; i < d * LANES; i++) CHECK_NEAR(theta[i], expected[i], 1e-12);
  free(theta);
}

/* ---- one stage */

/* Checks that Theorem 2 = Lemma 6: with z = 0 the draw is the mean, with z a unit vector the mean plus a
 * column of a root of the covariance. Lane by lane, random evidence of full and of deficient rank, v /
 * alpha_bar times its eigenvalues up to 1e3. */
static void laplace_check_product(void) {
  SCRATCH_ARENA(memory);
  enum { D = 4, LANES = 8, SQUARE = D * D };
  const double variances[] = {1, 0.03, 0.001, 0}, alpha_bars[] = {0.05, 0.5, 1};
  LaplaceEvidence evidence;
  CHECK_OK(laplace_dps_evidence_create(&memory, D, LANES, 0, &evidence));
  evidence.lanes = LANES;
  Rng rng = fixture_rng(1, 1);
  double features[LANES][D][D], b[D * LANES], mu[D * LANES], z[D * LANES], mean[D * LANES], s[D * LANES];
  double of_rewards[SQUARE * LANES];
  rng_normal(&rng, LANES * SQUARE, &features[0][0][0]);
  rng_normal(&rng, D * LANES, b);
  rng_normal(&rng, D * LANES, mu);
  for (int n = 0; n < LANES; n++)
    for (int i = 0; i < D; i++) {
      evidence.vector[i * LANES + n] = b[i * LANES + n];
      for (int j = 0; j < D; j++) {
        double sum = 0;
        for (int k = 0; k < n % (D + 1); k++) sum += features[n][k][i] * features[n][k][j] * (k + 1);
        evidence.precision[(i * D + j) * LANES + n] = sum;
      }
    }
  linalg_factor_eigen(D, LANES, evidence.precision, evidence.basis, evidence.eigenvalue);
  linalg_lanes_multiply_transposed(D, LANES, evidence.basis, evidence.vector, evidence.rotated);
  memcpy(of_rewards, evidence.precision, sizeof of_rewards);
  laplace_product_begin(&evidence);
  for (size_t a = 0; a < 4; a++)
    for (size_t q = 0; q < 3; q++) {
      const double v = variances[a], alpha_bar = alpha_bars[q];
      double covariance[LANES][SQUARE];
      memset(covariance, 0, sizeof covariance);
      memset(z, 0, sizeof z);
      const LaplaceStage stage = {.v = v, .alpha_bar = alpha_bar, .mu = mu};
      laplace_product_draw(&evidence, &stage, z, mean);
      for (int e = 0; e < D; e++) {
        memset(z, 0, sizeof z);
        for (int n = 0; n < LANES; n++) z[e * LANES + n] = 1;
        laplace_product_draw(&evidence, &stage, z, s);
        for (int n = 0; n < LANES; n++)
          for (int i = 0; i < SQUARE; i++)
            covariance[n][i] += (s[i / D * LANES + n] - mean[i / D * LANES + n]) *
                                (s[i % D * LANES + n] - mean[i % D * LANES + n]);
      }
      for (int n = 0; n < LANES; n++) {
        double precision[SQUARE], sigma[SQUARE] = {0};
        for (int i = 0; i < SQUARE; i++) precision[i] = of_rewards[i * LANES + n] / alpha_bar;
        for (int i = 0; i < D && v > 0; i++) precision[i * (D + 1)] += 1 / v;
        if (v > 0) fixture_invert(D, precision, sigma);
        for (int i = 0; i < D; i++) {
          double expected = v > 0 ? 0 : mu[i * LANES + n];
          for (int j = 0; j < D; j++) {
            if (v > 0)
              expected += sigma[i * D + j] * (mu[j * LANES + n] / v + b[j * LANES + n] / sqrt(alpha_bar));
            CHECK_NEAR(covariance[n][i * D + j], sigma[i * D + j], 1e-12);
          }
          CHECK_NEAR(mean[i * LANES + n], expected, 1e-12);
        }
      }
    }
}

/* ---- Gaussian prior: the law of the whole chain */

static void multiply(int d, const double *a, const double *b, double *out) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      out[i * d + j] = 0;
      for (int k = 0; k < d; k++) out[i * d + j] += a[i * d + k] * b[k * d + j];
    }
}

typedef struct {
  double mean[FIXTURE_DIMENSION], covariance[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
} Moments;

/* Computes (mean, covariance) of x ~ N(m, C) multiplied by the evidence N(precision, vector), where m = A s +
 * a with s of the moments given and C = v I: s_{t-1} of a stage. */
static void propagate(int d, const double *a_matrix, const double *a_vector, double v,
                      const double *precision, const double *vector, Moments *moments) {
  double total[64], sigma[64], gain[64], half[64], mean[8];
  for (int i = 0; i < d * d; i++) total[i] = precision[i] + (i % (d + 1) == 0 ? 1 / v : 0);
  fixture_invert(d, total, sigma);
  multiply(d, sigma, a_matrix, gain);
  for (int i = 0; i < d * d; i++) gain[i] /= v; /* s_{t-1} = gain s + sigma (a / v + vector) + N(0, sigma) */
  for (int i = 0; i < d; i++) {
    mean[i] = 0;
    for (int j = 0; j < d; j++)
      mean[i] += gain[i * d + j] * moments->mean[j] + sigma[i * d + j] * (a_vector[j] / v + vector[j]);
  }
  multiply(d, gain, moments->covariance, half);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      moments->covariance[i * d + j] = sigma[i * d + j];
      for (int k = 0; k < d; k++) moments->covariance[i * d + j] += half[i * d + k] * gain[j * d + k];
    }
  memcpy(moments->mean, mean, (size_t)d * sizeof *mean);
}

/* Computes the law of LaplaceDPS with T stages of constant alpha, last stage repaired, prior N(m, S) with its
 * exact chain and evidence (lambda, b), all in the chain's coordinates: mu_t(s) = (s - beta_t (abar_t S + (1
 * - abar_t) I)^-1 (s - sqrt(abar_t) m)) / sqrt(alpha). */
static Moments laplace_law(int d, int stages, double alpha, const double *m, const double *s,
                           const double *lambda, const double *b) {
  double precision[64], vector[8], a_matrix[64] = {0}, a_vector[8] = {0}, marginal[64], inverse[64];
  Moments moments = {0};
  for (int t = stages + 1; t >= 1; t--) {
    const double beta = 1 - alpha, bar = pow(alpha, t), before = pow(alpha, t - 1);
    double v = beta * (1 - before) / (1 - bar);
    if (t == 1) v = stages > 1 ? beta * (1 - alpha) / (1 - alpha * alpha) : beta;
    if (t == stages + 1) v = 1; /* the start: N(0, I) and the evidence diffused up to there */
    for (int i = 0; i < d * d; i++) precision[i] = lambda[i] / before;
    for (int i = 0; i < d; i++) vector[i] = b[i] / sqrt(before);
    if (t <= stages) {
      for (int i = 0; i < d * d; i++) marginal[i] = bar * s[i] + (i % (d + 1) == 0 ? 1 - bar : 0);
      fixture_invert(d, marginal, inverse);
      for (int i = 0; i < d; i++) {
        a_vector[i] = 0;
        for (int j = 0; j < d; j++) {
          a_matrix[i * d + j] = ((i == j) - beta * inverse[i * d + j]) / sqrt(alpha);
          a_vector[i] += beta * inverse[i * d + j] * sqrt(bar) * m[j] / sqrt(alpha);
        }
      }
    }
    propagate(d, a_matrix, a_vector, v, precision, vector, &moments);
  }
  return moments;
}

/* Computes the evidence of fixture_data in coordinates z = (theta - shift) / scale. */
static void standardised_evidence(const FixtureData *data, const double *shift, const double *scale,
                                  double *lambda, double *b) {
  const int d = data->d;
  memset(lambda, 0, (size_t)(d * d) * sizeof *lambda);
  memset(b, 0, (size_t)d * sizeof *b);
  for (int l = 0; l < data->n; l++) {
    double rest = data->y[l], weight = 1 / (data->noise * data->noise);
    for (int i = 0; i < d; i++) rest -= data->phi[l][i] * shift[i];
    for (int i = 0; i < d; i++) {
      b[i] += weight * scale[i] * data->phi[l][i] * rest;
      for (int j = 0; j < d; j++)
        lambda[i * d + j] += weight * scale[i] * data->phi[l][i] * scale[j] * data->phi[l][j];
    }
  }
}

/* Checks the expected bias: mean and covariance of 20 000 draws against the recursion, within 5 standard
 * errors. */
static void laplace_check_finite_stages(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 20000, RUNS = 2, OBSERVATIONS = 4 };
  const double alpha = 0.85;
  const Likelihood likelihood = fixture_likelihood(0.8);
  const int dimensions[] = {1, 2, 5}, stage_counts[] = {1, 2, 20};
  for (int a = 0; a < 9; a++) {
    const int d = dimensions[a / 3], stages = stage_counts[a % 3];
    PriorFit fit = fixture_fit(stages, alpha, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, d, 1, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    const double *shift = prior.chain->shift, *scale = prior.chain->scale;
    History history = fixture_history(&memory, d, RUNS, 0, OBSERVATIONS, &likelihood);
    double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    for (int run = 0; run < RUNS; run++) {
      FixtureData data = fixture_data(d, OBSERVATIONS, likelihood.noise, (uint32_t)run);
      double lambda[64], b[8], m[8], s[64];
      standardised_evidence(&data, shift, scale, lambda, b);
      for (int i = 0; i < d; i++) {
        m[i] = (mixture.mean[i] - shift[i]) / scale[i];
        for (int j = 0; j < d; j++) s[i * d + j] = mixture.covariance[i * d + j] / (scale[i] * scale[j]);
      }
      Moments expected = laplace_law(d, stages, alpha, m, s, lambda, b);
      for (int i = 0; i < d; i++) {
        expected.mean[i] = shift[i] + scale[i] * expected.mean[i];
        for (int j = 0; j < d; j++) expected.covariance[i * d + j] *= scale[i] * scale[j];
      }
      fixture_check_moments(d, RUNS, DRAWS, run, theta, expected.mean, expected.covariance, 5);
    }
    free(theta);
  }
}

/* Makes one observation with phi = 1 and noise 1 / sqrt(precision) for a single run in d = 1. */
static History one_observation(Arena *memory, double y, const Likelihood *likelihood) {
  History history;
  const double phi = 1;
  CHECK_OK(history_create(memory, 1, 1, likelihood, &history));
  history_record(&history, NULL, &phi, &y);
  return history;
}

static void test_no_history_is_the_chain(void) {
  SCRATCH_ARENA(memory);
  enum { SAMPLES = 300 };
  double samples_theta[5 * SAMPLES];
  for (int family = 0; prior_family(family); family++)
    for (int d = 1; d <= 5; d++) {
      PriorFit fit = fixture_fit(12, 0.8, LAST_STAGE_LITERAL);
      Mixture mixture = fixture_mixture(&memory, d, 2, 1.5);
      Samples samples = {.d = d, .n = SAMPLES, .theta = samples_theta};
      Prior prior;
      RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
      mixture_sample(&mixture, &rng, samples_theta);
      prior_settle(prior_family(family), &fit, d);
      CHECK_OK(prior_fit(&memory, prior_family(family), &fit, &samples, &prior));
      if (prior.chain) {
        laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "last_stage=prior");
        laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "last_stage=literal");
        laplace_check_no_history(&prior, LAST_STAGE_REPAIRED, "last_stage=repaired");
      }
    }
}

static void test_stage_is_a_product_of_gaussians(void) { laplace_check_product(); }

/* ---- Gaussian prior: the law of the whole chain */

static void test_gaussian_prior_finite_stages(void) { laplace_check_finite_stages(); }

/* Computes e^x E_n(x) = integral over w in (0, 1) of exp(-x (1/w - 1)) w^(n-2), midpoint rule: 1e-8. */
static double scaled_exponential_integral(int n, double x) {
  enum { POINTS = 100000 };
  double sum = 0;
  for (int i = 0; i < POINTS; i++) {
    double w = (i + 0.5) / POINTS;
    sum += exp(-x * (1 / w - 1)) * (n == 1 ? 1 / w : 1);
  }
  return sum / POINTS;
}

/* Checks the limit of many stages: for N(0, 1) and evidence precision L the variance tends to e^2L E2(2L),
 * and the mean to L e^L E1(L) theta-bar; sd over the posterior's is 0.745 at L = 1 and 0.709 at L = 10. The
 * recursion at alpha = 0.999, T = 8 000 is within 1% of the limit (the error is of the order (1 - alpha)
 * log(1 - alpha)); 8 000 draws at alpha = 0.998, T = 4 000 agree with the recursion there within 5 standard
 * errors. */
static void test_gaussian_prior_many_stages(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 8000, STAGES = 4000 };
  const double alpha = 0.998, bar = 1.5, ratio[] = {0.745, 0.709};
  for (int k = 0; k < 2; k++) {
    const double precision = k == 0 ? 1 : 10, vector = precision * bar, zero = 0, one = 1;
    const Likelihood likelihood = fixture_likelihood(1 / sqrt(precision));
    const double variance = scaled_exponential_integral(2, 2 * precision);
    const double mean = precision * scaled_exponential_integral(1, precision) * bar;
    CHECK_NEAR(sqrt(variance * (1 + precision)), ratio[k], 0.001);
    Moments moments = laplace_law(1, 2 * STAGES, 0.999, &zero, &one, &precision, &vector);
    CHECK_NEAR(moments.covariance[0], variance, 0.01 * variance);
    CHECK_NEAR(moments.mean[0], mean, 0.01 * mean);
    moments = laplace_law(1, STAGES, alpha, &zero, &one, &precision, &vector);
    PriorFit fit = fixture_fit(STAGES, alpha, LAST_STAGE_REPAIRED);
    Prior prior;
    CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
    History history = one_observation(&memory, bar, &likelihood);
    double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    fixture_check_moments(1, 1, DRAWS, 0, theta, moments.mean, moments.covariance, 5);
    free(theta);
  }
}

/* ---- consistency and guard */

/* Checks Theorem 3. With evidence of precision 1e8 the repaired chain is within 5 x 1e-4 of theta-bar; the
 * literal one is off by (1 - alpha) theta-bar for N(0, 1), because its last stage is the prior's mean of s_0
 * given s_1. */
static void test_consistency_needs_the_repair(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 200 };
  const double bar = 1.2, alpha = 0.97;
  const Likelihood likelihood = fixture_likelihood(1e-4);
  const char *repaired = "last_stage=repaired", *literal = "last_stage=literal";
  PriorFit fit = fixture_fit(100, alpha, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  History history = one_observation(&memory, bar, &likelihood);
  double *good = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &repaired, NULL);
  double *biased = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &literal, NULL);
  for (int m = 0; m < DRAWS; m++) {
    CHECK_NEAR(good[m], bar, 5e-4);
    CHECK_NEAR(biased[m], alpha * bar, 5e-4);
  }
  free(good);
  free(biased);
}

/* Checks the guard with a reward a million standard deviations from the prior in the second of two runs,
 * which ends in the second chunk: its states are held at CHAIN_GUARD and each time is counted, for that run
 * only. */
static void test_guard(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 50, STAGES = 10 };
  const Likelihood likelihood = fixture_likelihood(0.1);
  const double phi[2] = {1, 1}, y[2] = {0, -1e6};
  PriorFit fit = fixture_fit(STAGES, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  History history;
  int64_t fallbacks[2];
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  CHECK_OK(history_create(&memory, 1, 2, &likelihood, &history));
  history_record(&history, NULL, phi, y);
  double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 0, NULL, fallbacks);
  CU_ASSERT_EQUAL(fallbacks[0], 0);
  CU_ASSERT_EQUAL(fallbacks[1], DRAWS * (STAGES + 1));
  for (int m = 0; m < DRAWS; m++) CHECK_NEAR(theta[DRAWS + m], -CHAIN_GUARD, 0);
  free(theta);
}

static void test_guard_of_numbers_that_are_not_finite(void) {
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 2, .lanes = 4};
  const Chunk chunk = chunk_begin(rng);
  const double expected[8] = {1, -100, 100, -100, 100, 0, -100, 0};
  double s[8] = {1, -100.5, INFINITY, -INFINITY, 1e300, NAN, -100, -NAN};
  int64_t fallbacks[2] = {0};
  denoiser_chain_guard(&chunk, 2, s, fallbacks);
  for (int i = 0; i < 8; i++) CHECK_NEAR(s[i], expected[i], 0);
  CU_ASSERT_EQUAL(fallbacks[0], 3);
  CU_ASSERT_EQUAL(fallbacks[1], 3);
}

int main(void) {
  CU_TestInfo tests[] = {{"no history is denoiser_chain_sample, to the bit", test_no_history_is_the_chain},
                         {"a stage is a product of two Gaussians", test_stage_is_a_product_of_gaussians},
                         {"Gaussian prior, finite stages", test_gaussian_prior_finite_stages},
                         {"Gaussian prior, many stages", test_gaussian_prior_many_stages},
                         {"consistency needs the repaired last stage", test_consistency_needs_the_repair},
                         {"guard", test_guard},
                         {"guard of numbers that are not finite", test_guard_of_numbers_that_are_not_finite},
                         CU_TEST_INFO_NULL};
  return harness_run("laplace_dps", tests);
}
