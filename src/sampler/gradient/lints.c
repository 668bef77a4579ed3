/* Linear Thompson sampling as the VITS paper runs it (Agrawal and Goyal 2013): draws from N(V^-1 b, V^-1 /
 * eta), V = lambda I + X'X, b = X'y, which is the target exp(-U) of potential.h if U is quadratic. With `eta:
 * auto` and lambda = 1 the target is the posterior, and the method is the same as `ts`.
 *
 * Rewards of any other likelihood are treated as Gaussian with a linear mean (with the problem's noise if
 * `eta: auto`): this is the misspecified rival in the paper's logistic experiments (Figures 3 and 6). Their
 * X'X and X'y are kept here and updated once per new row; a run with fewer rows than before starts over.
 *
 * A draw uses d normals of its stream. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "sampler/gradient/potential.h"
#include "sampler/sampler.h"
#include "sampler/unknown_noise.h"

#include <string.h>

typedef struct {
  Potential potential;
  double *normal; /* [d, n] */
  double *inverse; /* [d, d, n] */
  int *jitters; /* [n] */
  bool linearised; /* for a likelihood that is not Gaussian: */
  Likelihood gaussian; /* with the same noise */
  double *precision, *vector; /* [d, d, B], [d, B]: the evidence of all rows under it */
  int *rows; /* [B]: how many rows the evidence of each run holds */
  double *phi; /* [d] */
  History linear; /* with that evidence */
  UnknownNoise *noise; /* with `noise: unknown`, which does all of the work */
} Lints;

static Status lints_sampler_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t vectors = (size_t)sampler->d * (size_t)setup->runs;
  SamplerSetup linear = *setup;
  Lints *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  if (unknown_noise_asked(setup->options))
    return unknown_noise_create(sampler, setup, config_real(setup->options, "lambda"), &self->noise);
  self->linearised = !likelihood_is_linear(setup->likelihood);
  if (self->linearised) {
    self->gaussian = (Likelihood){.ops = likelihood_find("gaussian"), .noise = setup->likelihood->noise};
    linear.likelihood = &self->gaussian;
    TRY(history_create(memory, sampler->d, setup->runs, &self->gaussian, &self->linear));
    ALLOCATE(memory, self->precision, vectors * (size_t)sampler->d);
    ALLOCATE(memory, self->vector, vectors);
    ALLOCATE(memory, self->rows, setup->runs);
    ALLOCATE(memory, self->phi, sampler->d);
  }
  TRY(potential_create(memory, &linear, CHUNK_LANES, &self->potential));
  ALLOCATE(memory, self->normal, (size_t)sampler->d * CHUNK_LANES);
  ALLOCATE(memory, self->inverse, (size_t)sampler->d * (size_t)sampler->d * CHUNK_LANES);
  ALLOCATE(memory, self->jitters, CHUNK_LANES);
  return STATUS_OK;
}

/* Returns the history as a linear model sees it. */
static const History *lints_linear_history(Lints *self, const History *history) {
  const int d = self->linear.d, runs = self->linear.runs;
  if (!self->linearised) return history;
  const double weight = 1 / (self->gaussian.noise * self->gaussian.noise);
  for (int run = 0; run < history->runs; run++) {
    const int total = history_observations(history, run);
    if (self->rows[run] > total) {
      for (int i = 0; i < d; i++) self->vector[i * runs + run] = 0;
      for (int i = 0; i < d * d; i++) self->precision[i * runs + run] = 0;
      self->rows[run] = 0;
    }
    while (self->rows[run] < total) {
      const double y = history_observation(history, run, self->rows[run]++, 1, self->phi);
      for (int i = 0; i < d; i++) {
        const double phi = weight * self->phi[i];
        self->vector[i * runs + run] += phi * y;
        for (int j = 0; j < d; j++) self->precision[(i * d + j) * runs + run] += phi * self->phi[j];
      }
    }
  }
  history_set_evidence(&self->linear, history->rounds, 1, self->precision, self->vector);
  self->linear.temper = history->temper;
  return &self->linear;
}

/* Draws with the precision P = L L': theta = L^-T (L^-1 b + z). */
static void lints_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                         int64_t *fallbacks) {
  Lints *self = sampler->state;
  if (self->noise) {
    unknown_noise_sample(self->noise, history, rng, draws, theta, fallbacks);
    return;
  }
  const History *linear = lints_linear_history(self, history);
  double *factor = self->potential.precision, *mean = self->potential.vector;
  const int d = sampler->d;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = history_view(linear, draws, chunk.first, chunk.lanes);
    potential_at(&self->potential, &view);
    memset(self->jitters, 0, CHUNK_LANES * sizeof *self->jitters);
    linalg_factor_cholesky(d, chunk.lanes, factor, self->jitters);
    linalg_factor_forward(d, chunk.lanes, factor, mean);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int i = 0; i < d * chunk.lanes; i++) self->normal[i] += mean[i];
    linalg_factor_backward(d, chunk.lanes, factor, self->normal);
    chunk_store(&chunk, d, self->normal, theta);
    for (int n = 0; n < chunk.lanes; n++) fallbacks[(chunk.first + n) / draws] += self->jitters[n];
  }
}

static void lints_moments(Sampler *sampler, const History *history, double *mean, double *covariance,
                          int64_t *fallbacks) {
  Lints *self = sampler->state;
  if (self->noise) {
    unknown_noise_moments(self->noise, history, mean, covariance, fallbacks);
    return;
  }
  const History *linear = lints_linear_history(self, history);
  double *factor = self->potential.precision, *vector = self->potential.vector;
  const int d = sampler->d, runs = history->runs;
  for (int first = 0; first < runs; first += CHUNK_LANES) {
    const int lanes = chunk_size(runs, first, CHUNK_LANES);
    const HistoryView view = history_view(linear, 1, first, lanes);
    potential_at(&self->potential, &view);
    memset(self->jitters, 0, CHUNK_LANES * sizeof *self->jitters);
    linalg_factor_cholesky(d, lanes, factor, self->jitters);
    linalg_factor_solve(d, lanes, factor, vector);
    linalg_factor_inverse(d, lanes, factor, self->inverse);
    lanes_copy(d, lanes, vector, lanes, mean + first, runs);
    lanes_copy(d * d, lanes, self->inverse, lanes, covariance + first, runs);
    for (int n = 0; n < lanes; n++) fallbacks[first + n] += self->jitters[n];
  }
}

/* Counts a factor and two triangles. */
static double lints_operations(const Sampler *sampler) {
  const Lints *self = sampler->state;
  const double d = sampler->d;
  return self->noise || self->linearised ? NAN : d * d * d / 3 + 2 * d * d;
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, UNKNOWN_NOISE_KEYS, {.name = NULL}};

static bool lints_targets_posterior(const Config *options) {
  return potential_targets_posterior(options) && !unknown_noise_asked(options);
}

const SamplerOps sampler_lints = {
    .name = "lints",
    .summary = "Linear Thompson sampling: draws from the Gaussian of precision eta (lambda I + X'X); treats "
               "rewards of any likelihood as linear",
    .reference = "Agrawal and Goyal (2013); VITS paper, Section 4.1",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN,
    .exact = true,
    .by_observation = true,
    .keys = KEYS,
    .targets_posterior = lints_targets_posterior,
    .check = unknown_noise_check,
    .create = lints_sampler_create,
    .sample = lints_sample,
    .operations = lints_operations,
    .moments = lints_moments,
};
