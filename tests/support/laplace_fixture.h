/* What the tests of LaplaceDPS and of its variants of the evidence (evidence_c) share: the law of the chain
 * for a Gaussian prior, computed by propagating the linear-Gaussian recursion, and checks that hold for every
 * evidence_c. */
#ifndef TESTS_LAPLACE_FIXTURE_H
#define TESTS_LAPLACE_FIXTURE_H

#include "core/arena.h"
#include "sampler/diffusion/laplace_dps.h"

#include "sampler_fixture.h"

#include <stdio.h>

static inline const SamplerOps *diffts(void) { return sampler_find("diffts"); }

/* ---- without observations */

/* The draws with the option `set` are those of the chain with that last stage, to the bit. */
static inline void laplace_check_no_history(const Prior *prior, LastStage option, const char *set) {
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
  chain_sample(&chain, &rng, expected, scratch);
  CU_ASSERT(memcmp(theta, expected, (size_t)(d * LANES) * sizeof *theta) == 0);
  free(theta);
}

/* ---- one stage */

/* Precision Lambda M^-1 and vector sqrt(alpha_bar) M^-1 b of the evidence of variance alpha_bar Lambda^-1 +
 * constant (1 - alpha_bar) I, M = alpha_bar I + constant (1 - alpha_bar) Lambda, lambda[d, d], b[d]. */
static inline void laplace_diffuse(int d, double alpha_bar, double constant, const double *lambda,
                                   const double *b, double *precision, double *vector) {
  double m[64], inverse[64];
  for (int i = 0; i < d * d; i++)
    m[i] = (i % (d + 1) == 0 ? alpha_bar : 0) + constant * (1 - alpha_bar) * lambda[i];
  fixture_invert(d, m, inverse);
  for (int i = 0; i < d; i++) {
    vector[i] = 0;
    for (int j = 0; j < d; j++) {
      vector[i] += sqrt(alpha_bar) * inverse[i * d + j] * b[j];
      precision[i * d + j] = 0;
      for (int k = 0; k < d; k++) precision[i * d + j] += lambda[i * d + k] * inverse[k * d + j];
    }
  }
}

/* Theorem 2 = Lemma 6: with z = 0 the draw is the mean, with z a unit vector the mean plus a column of a root
 * of the covariance. Lane by lane, random evidence of full and of deficient rank, v / alpha_bar times its
 * eigenvalues up to 1e3. */
static inline void laplace_check_product(double constant) {
  SCRATCH_ARENA(memory);
  enum { D = 4, LANES = 8, SQUARE = D * D };
  const double variances[] = {1, 0.03, 0.001, 0}, alpha_bars[] = {0.05, 0.5, 1};
  LaplaceEvidence evidence = {0};
  CHECK_OK(laplace_evidence_create(&memory, D, &evidence));
  evidence.lanes = LANES;
  evidence.constant = constant;
  Rng rng = fixture_rng(1, 1);
  double features[LANES][D][D], b[D * LANES], mu[D * LANES], z[D * LANES], mean[D * LANES], s[D * LANES];
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
  laplace_evidence_decompose(&evidence);
  for (size_t a = 0; a < 4; a++)
    for (size_t q = 0; q < 3; q++) {
      const double v = variances[a], alpha_bar = alpha_bars[q];
      double covariance[LANES][SQUARE];
      memset(covariance, 0, sizeof covariance);
      memset(z, 0, sizeof z);
      laplace_dps_product(&evidence, v, alpha_bar, mu, z, mean);
      for (int e = 0; e < D; e++) {
        memset(z, 0, sizeof z);
        for (int n = 0; n < LANES; n++) z[e * LANES + n] = 1;
        laplace_dps_product(&evidence, v, alpha_bar, mu, z, s);
        for (int n = 0; n < LANES; n++)
          for (int i = 0; i < SQUARE; i++)
            covariance[n][i] += (s[i / D * LANES + n] - mean[i / D * LANES + n]) *
                                (s[i % D * LANES + n] - mean[i % D * LANES + n]);
      }
      for (int n = 0; n < LANES; n++) {
        double precision[SQUARE], vector[D], sigma[SQUARE] = {0}, lambda[SQUARE], pull[D];
        for (int i = 0; i < SQUARE; i++) lambda[i] = evidence.precision[i * LANES + n];
        for (int i = 0; i < D; i++) pull[i] = b[i * LANES + n];
        laplace_diffuse(D, alpha_bar, constant, lambda, pull, precision, vector);
        for (int i = 0; i < D && v > 0; i++) precision[i * (D + 1)] += 1 / v;
        if (v > 0) fixture_invert(D, precision, sigma);
        for (int i = 0; i < D; i++) {
          double expected = v > 0 ? 0 : mu[i * LANES + n];
          for (int j = 0; j < D; j++) {
            if (v > 0) expected += sigma[i * D + j] * (mu[j * LANES + n] / v + vector[j]);
            CHECK_NEAR(covariance[n][i * D + j], sigma[i * D + j], 1e-12);
          }
          CHECK_NEAR(mean[i * LANES + n], expected, 1e-12);
        }
      }
    }
}

/* ---- Gaussian prior: the law of the whole chain */

static inline void multiply(int d, const double *a, const double *b, double *out) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      out[i * d + j] = 0;
      for (int k = 0; k < d; k++) out[i * d + j] += a[i * d + k] * b[k * d + j];
    }
}

typedef struct {
  double mean[FIXTURE_DIMENSION], covariance[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
} Moments;

/* (mean, covariance) of x ~ N(m, C) multiplied by the evidence N(precision, vector), where m = A s + a with s
 * of the moments given and C = v I: s_{t-1} of a stage. */
static inline void propagate(int d, const double *a_matrix, const double *a_vector, double v,
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

/* lambda[d, d] is smaller than bound I, bound > 0: all pivots of bound I - lambda are positive. */
static inline bool is_below(int d, double bound, const double *lambda) {
  double m[64];
  for (int i = 0; i < d * d; i++) m[i] = (i % (d + 1) == 0 ? bound : 0) - lambda[i];
  for (int k = 0; k < d; k++) {
    if (m[k * d + k] <= 0) return false;
    for (int i = k + 1; i < d; i++)
      for (int j = k + 1; j < d; j++) m[i * d + j] -= m[i * d + k] * m[k * d + j] / m[k * d + k];
  }
  return true;
}

/* LaplaceDPS with T stages of constant alpha, last stage repaired, prior N(m, S) with its exact chain and
 * evidence (lambda, b), all in the chain's coordinates. With evidence_c = -1 it starts at the largest stage
 * where the evidence is below abar / (1 - abar), and goes on without. mu_t(s) = (s - beta_t (abar_t S + (1 -
 * abar_t) I)^-1 (s - sqrt(abar_t) m)) / sqrt(alpha). */
static inline Moments laplace_law(int d, int stages, double alpha, int constant, const double *m,
                                  const double *s, const double *lambda, const double *b) {
  double precision[64], vector[8], a_matrix[64] = {0}, a_vector[8] = {0}, marginal[64], inverse[64];
  Moments moments = {0};
  int start = stages;
  while (constant < 0 && start > 0 && !is_below(d, pow(alpha, start) / (1 - pow(alpha, start)), lambda))
    start--;
  for (int t = start + 1; t >= 1; t--) {
    const double beta = 1 - alpha, bar = pow(alpha, t), before = pow(alpha, t - 1);
    double v = beta * (1 - before) / (1 - bar);
    if (t == 1) v = stages > 1 ? beta * (1 - alpha) / (1 - alpha * alpha) : beta;
    if (t == start + 1) v = 1; /* the start: N(0, I) and the evidence diffused up to there */
    laplace_diffuse(d, before, constant, lambda, b, precision, vector);
    if (t <= start) {
      if (constant < 0) memset(precision, 0, sizeof precision), memset(vector, 0, sizeof vector);
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

/* Evidence of fixture_data in coordinates z = (theta - shift) / scale. */
static inline void standardised_evidence(const FixtureData *data, const double *shift, const double *scale,
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

/* The expected bias: mean and covariance of 20 000 draws against the recursion, within 5 standard errors. */
static inline void laplace_check_finite_stages(int constant) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 20000, RUNS = 2, OBSERVATIONS = 4 };
  const double alpha = 0.85;
  const Likelihood likelihood = fixture_likelihood(0.8);
  const int dimensions[] = {1, 2, 5}, stage_counts[] = {1, 2, 20};
  char text[32];
  const char *const set = text;
  snprintf(text, sizeof text, "evidence_c=%d", constant);
  for (int a = 0; a < 9; a++) {
    const int d = dimensions[a / 3], stages = stage_counts[a % 3];
    PriorFit fit = fixture_fit(stages, alpha, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, d, 1, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    const double *shift = prior.chain->shift, *scale = prior.chain->scale;
    History history = fixture_history(&memory, d, RUNS, 0, OBSERVATIONS, &likelihood);
    double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &set, NULL);
    for (int run = 0; run < RUNS; run++) {
      FixtureData data = fixture_data(d, OBSERVATIONS, likelihood.noise, (uint32_t)run);
      double lambda[64], b[8], m[8], s[64];
      standardised_evidence(&data, shift, scale, lambda, b);
      for (int i = 0; i < d; i++) {
        m[i] = (mixture.mean[i] - shift[i]) / scale[i];
        for (int j = 0; j < d; j++) s[i * d + j] = mixture.covariance[i * d + j] / (scale[i] * scale[j]);
      }
      Moments expected = laplace_law(d, stages, alpha, constant, m, s, lambda, b);
      for (int i = 0; i < d; i++) {
        expected.mean[i] = shift[i] + scale[i] * expected.mean[i];
        for (int j = 0; j < d; j++) expected.covariance[i * d + j] *= scale[i] * scale[j];
      }
      fixture_check_moments(d, RUNS, DRAWS, run, theta, expected.mean, expected.covariance, 5);
    }
    free(theta);
  }
}

/* One observation with phi = 1 and noise 1 / sqrt(precision) for a single run in d = 1. */
static inline History one_observation(Arena *memory, double y, const Likelihood *likelihood) {
  History history;
  const double phi = 1;
  CHECK_OK(history_create(memory, 1, 1, likelihood, &history));
  history_record(&history, NULL, &phi, &y);
  return history;
}

#endif
