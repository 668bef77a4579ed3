/* Samplers that observe round by round: linear data of any dimension, a sampler with its options, the exact
 * target, and the Kullback-Leibler divergence of two Gaussians. */
#ifndef TESTS_CATCH_UP_FIXTURE_H
#define TESTS_CATCH_UP_FIXTURE_H

#include "core/arena.h"
#include "sampler_fixture.h"

#include "core/linalg.h"

/* ---- data: n rounds for every run, the same for all runs when `shared` */

typedef struct {
  int d, runs, n;
  double *phi, *y; /* [n, d, runs], [n, runs] */
} Rounds;

static inline Rounds make_rounds(int d, int first_run, int runs, int n, bool shared,
                                 const Likelihood *likelihood) {
  Rounds rounds = {d, runs, n, NULL, NULL};
  rounds.phi = (double *)fixture_new((size_t)(n * d * runs), sizeof(double));
  rounds.y = (double *)fixture_new((size_t)(n * runs), sizeof(double));
  double *phi = (double *)fixture_new((size_t)d, sizeof(double));
  double *theta = (double *)fixture_new((size_t)d, sizeof(double));
  for (int run = 0; run < runs; run++) {
    Rng rng = fixture_rng(shared ? 0 : (uint32_t)(first_run + run), 5000);
    rng_normal(&rng, d, theta);
    for (int l = 0; l < n; l++) {
      double u = 0, normal, uniform;
      rng_normal(&rng, d, phi);
      rng_normal(&rng, 1, &normal);
      rng_uniform(&rng, 1, &uniform);
      for (int i = 0; i < d; i++) {
        rounds.phi[(l * d + i) * runs + run] = phi[i] / sqrt(d);
        u += phi[i] * theta[i] / sqrt(d);
      }
      rounds.y[l * runs + run] = likelihood->ops->sample(likelihood, fmin(u, 4), uniform, normal);
    }
  }
  free(phi);
  free(theta);
  return rounds;
}

static inline void free_rounds(Rounds *rounds) {
  free(rounds->phi);
  free(rounds->y);
}

static inline void append_round(History *history, const Rounds *rounds, int l) {
  history_record(history, NULL, rounds->phi + l * rounds->d * rounds->runs, rounds->y + l * rounds->runs);
}

static inline History empty_history(Arena *memory, const Rounds *rounds, const Likelihood *likelihood) {
  History history;
  ASSERT(history_create(memory, rounds->d, rounds->runs, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, rounds->n) == STATUS_OK);
  return history;
}

/* ---- a sampler and its options */

typedef struct {
  Sampler sampler;
  Config *options;
  int64_t *fallbacks; /* [runs] */
} FixtureSampler;

static inline FixtureSampler make_sampler(Arena *memory, const char *name, const Prior *prior,
                                          const Likelihood *likelihood, uint32_t first_run, int runs,
                                          int draws, int set_count, const char *const *sets) {
  FixtureSampler out;
  const SamplerOps *method = sampler_find(name);
  ASSERT(method);
  memset(&out, 0, sizeof out);
  CHECK_OK(config_options(memory, "test", sampler_keys(method), set_count, sets, &out.options));
  SamplerSetup setup = {.prior = prior,
                        .likelihood = likelihood,
                        .runs = runs,
                        .draws = draws,
                        .seed = FIXTURE_SEED,
                        .first_run = first_run,
                        .options = out.options};
  CHECK_OK(sampler_create(memory, method, &setup, &out.sampler));
  out.fallbacks = (int64_t *)fixture_new((size_t)runs, sizeof(int64_t));
  return out;
}

static inline void free_sampler(FixtureSampler *fixture) { free(fixture->fallbacks); }

/* Returns theta[d, runs * draws]; the caller frees it. */
static inline double *draw_from(FixtureSampler *fixture, const History *history, int draws) {
  const int lanes = history->runs * draws;
  double *theta = (double *)fixture_new((size_t)(history->d * lanes), sizeof(double));
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST),
                  .run = fixture->sampler.setup.first_run,
                  .round = 77,
                  .draws = (uint32_t)draws,
                  .lanes = (uint32_t)lanes};
  sampler_sample(&fixture->sampler, history, rng, draws, theta, fixture->fallbacks);
  return theta;
}

/* ---- the target of one run in the linear model: precision[d, d], covariance[d, d], mean[d] */

static inline void linear_target(const History *history, int run, double eta, double lambda,
                                 double *precision, double *covariance, double *mean) {
  const int d = history->d;
  double *vector = (double *)fixture_new((size_t)d, sizeof(double));
  const double variance = history->likelihood->noise * history->likelihood->noise;
  history_evidence(&(HistoryView){history, 1, run, 1, NULL, NULL}, precision, vector);
  for (int i = 0; i < d * d; i++)
    precision[i] = eta * (lambda * (i % (d + 1) == 0) + variance * precision[i]);
  fixture_invert(d, precision, covariance);
  for (int i = 0; i < d; i++) {
    mean[i] = 0;
    for (int j = 0; j < d; j++) mean[i] += covariance[i * d + j] * eta * variance * vector[j];
  }
  free(vector);
}

/* Returns KL(N(mean, covariance) | N(target_mean, precision^-1)). */
static inline double gaussian_kl(int d, const double *mean, const double *covariance,
                                 const double *target_mean, const double *precision) {
  double *inverse = (double *)fixture_new((size_t)(d * d), sizeof(double)), kl = -d;
  kl -= fixture_invert(d, covariance, inverse) + fixture_invert(d, precision, inverse);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      kl += precision[i * d + j] *
            (covariance[j * d + i] + (mean[i] - target_mean[i]) * (mean[j] - target_mean[j]));
  free(inverse);
  return 0.5 * kl;
}

#endif
