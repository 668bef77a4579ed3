#include "catch_up_fixture.h"

/* ---- data */

Rounds make_rounds(int d, int first_run, int runs, int n, bool shared, const Likelihood *likelihood) {
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

void free_rounds(Rounds *rounds) {
  free(rounds->phi);
  free(rounds->y);
}

void append_round(History *history, const Rounds *rounds, int l) {
  history_record(history, NULL, rounds->phi + l * rounds->d * rounds->runs, rounds->y + l * rounds->runs);
}

History empty_history(Arena *memory, const Rounds *rounds, const Likelihood *likelihood) {
  History history;
  ASSERT(history_create(memory, rounds->d, rounds->runs, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, rounds->n) == STATUS_OK);
  return history;
}

/* ---- a sampler and its options */

FixtureSampler make_sampler(Arena *memory, const char *name, const Prior *prior, const Likelihood *likelihood,
                            uint32_t first_run, int runs, int draws, int set_count, const char *const *sets) {
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

void free_sampler(FixtureSampler *fixture) { free(fixture->fallbacks); }

void draw_into(FixtureSampler *fixture, const History *history, int draws, double *theta) {
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST),
                        .run = fixture->sampler.setup.first_run,
                        .round = DRAW_ROUND,
                        .draws = (uint32_t)draws,
                        .lanes = (uint32_t)(history->runs * draws)};
  sampler_sample(&fixture->sampler, history, rng, draws, theta, fixture->fallbacks);
}

double *draw_from(FixtureSampler *fixture, const History *history, int draws) {
  double *theta = fixture_new((size_t)(history->d * history->runs * draws), sizeof *theta);
  draw_into(fixture, history, draws, theta);
  return theta;
}

/* ---- the target in the linear model */

void linear_target(const History *history, int run, double eta, double lambda, double *precision,
                   double *covariance, double *mean) {
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

double gaussian_kl(int d, const double *mean, const double *covariance, const double *target_mean,
                   const double *precision) {
  double *inverse = (double *)fixture_new((size_t)(d * d), sizeof(double)), kl = -d;
  kl -= fixture_invert(d, covariance, inverse) + fixture_invert(d, precision, inverse);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      kl += precision[i * d + j] *
            (covariance[j * d + i] + (mean[i] - target_mean[i]) * (mean[j] - target_mean[j]));
  free(inverse);
  return 0.5 * kl;
}
