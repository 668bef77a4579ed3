/* MALA on the posterior itself, with no transport: the comparison for tilted transport, whose baseline is the
 * same steps on an easier law (langevin.h). A chain for each draw starts from the Gaussian that the posterior
 * would be under a Gaussian prior of the same mean and covariance, so every draw is independent, and the
 * share of draws that end in a mode is set by where they started when the modes are far apart.
 *
 * With a Gaussian prior the chain is one of x, theta = A x with A A' the covariance of the prior, which is
 * then N(A^-1 m, I): the Gaussian that it starts from is the posterior itself, however the prior is
 * conditioned. N(A^-1 m, I) is as simple in the eigenbasis of the evidence, so its steps are taken there, and
 * no step multiplies by a matrix. */
#include "sampler/cost.h"
#include "sampler/tilted/langevin.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/matrix_lanes.h"
#include "core/simd.h"
#include "model/evidence.h"
#include "sampler/chunk.h"
#include "sampler/methods.h"

#include <stdlib.h>
#include <string.h>

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int steps;
  double step_size;
  const Mixture *prior;
  bool white; /* one Gaussian, whose steps are taken in the eigenbasis */
  double *mean, *covariance; /* [d], [d, d]: of the prior, in x */
  double *root; /* [d, d]: A; NULL: the identity */
  double *matrix, *basis, *q, *vector, *b; /* [d, d, n], [d, d, n], [d, n], [d, n], [d, n]: the evidence */
  double *prior_mean, *prior_variance; /* [d, n]: in the eigenbasis */
  double *theta, *gradient; /* [d, n] */
  Langevin langevin;
} Mala;

static void mala_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Mala *self = context;
  mixture_density(self->prior, lanes, x, self->gradient, log_density, score);
}

/* N(mean, I), mean[d, lanes]. */
SIMD_CLONES
static void find_white(int d, int lanes, const double *restrict mean, const double *restrict x,
                       double *restrict log_density, double *restrict score) {
  for (int n = 0; n < lanes; n++) log_density[n] = 0;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const double pull = mean[i * lanes + n] - x[i * lanes + n];
      score[i * lanes + n] = pull;
      log_density[n] -= 0.5 * pull * pull;
    }
}

static void white_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Mala *self = context;
  find_white(self->langevin.d, lanes, self->prior_mean, x, log_density, score);
}

/* theta[d, lanes] <- A U x, where the steps were taken in the eigenbasis. */
static void mala_leave_eigenbasis(Mala *self, int d, int lanes) {
  linalg_multiply_lanes(d, lanes, self->basis, self->theta, self->vector);
  if (self->root)
    matrix_lanes_apply(d, lanes, false, self->root, self->vector, self->theta);
  else
    memcpy(self->theta, self->vector, (size_t)(d * lanes) * sizeof *self->theta);
}

/* Lanes whose steps are taken together: half of a chunk where all the bases of one, which each step reads
 * twice, would leave the first-level cache. */
static int mala_lanes(const Mala *self, int d) {
  const size_t bases = (size_t)(d * d) * CHUNK_LANES * sizeof *self->basis;
  return self->white || bases < 32768 ? CHUNK_LANES : CHUNK_LANES / 2;
}

static void mala_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Mala *self = sampler->state;
  const LangevinPrior prior = {self->white ? white_density : mala_density, self, true};
  const int d = sampler->d;
  (void)fallbacks;
  for (Chunk chunk = chunk_begin_narrow(rng, mala_lanes(self, d)); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    const HistoryView view = {history, draws, chunk.first, lanes, NULL, NULL};
    evidence_decompose(&view, self->root, self->matrix, self->vector, self->basis, self->q, self->b);
    langevin_project(d, lanes, self->basis, self->mean, self->covariance, self->prior_mean,
                     self->prior_variance);
    langevin_target(&self->langevin, &prior, lanes, self->white ? NULL : self->basis, self->q, self->b,
                    self->prior_mean, self->prior_variance);
    langevin_run(&self->langevin, chunk.rng, self->steps, self->step_size);
    langevin_positions(&self->langevin, self->theta);
    if (self->white) mala_leave_eigenbasis(self, d, lanes);
    chunk_store(&chunk, d, self->theta, theta);
  }
}

/* Of a Gaussian prior, mean and covariance in x. */
static Status mala_whiten(Arena *memory, Mala *self, const Mixture *prior) {
  const size_t d = (size_t)prior->d;
  double *inverse = self->covariance;
  ALLOCATE(memory, self->root, d * d);
  memcpy(self->root, prior->cholesky, d * d * sizeof *self->root);
  memcpy(inverse, prior->cholesky, d * d * sizeof *inverse);
  linalg_invert_triangle(prior->d, inverse);
  matrix_lanes_apply(prior->d, 1, false, inverse, prior->mean, self->mean);
  for (size_t i = 0; i < d * d; i++) self->covariance[i] = i % (d + 1) == 0;
  return STATUS_OK;
}

static Status mala_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, vector = d * CHUNK_LANES;
  const Mixture *prior = setup->prior->mixture;
  Mala *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->prior = prior;
  self->white = prior->components == 1;
  self->steps = (int)config_int(setup->options, "steps");
  self->step_size = config_real(setup->options, "step_size");
  ALLOCATE(memory, self->mean, d);
  ALLOCATE(memory, self->covariance, d * d);
  ALLOCATE(memory, self->matrix, d * vector);
  ALLOCATE(memory, self->basis, d * vector);
  ALLOCATE(memory, self->q, vector);
  ALLOCATE(memory, self->vector, vector);
  ALLOCATE(memory, self->b, vector);
  ALLOCATE(memory, self->prior_mean, vector);
  ALLOCATE(memory, self->prior_variance, vector);
  ALLOCATE(memory, self->theta, vector);
  ALLOCATE(memory, self->gradient, vector);
  mixture_moments(prior, self->mean, self->covariance);
  if (self->white && !mixture_is_white(prior)) TRY(mala_whiten(memory, self, prior));
  return self->white ? langevin_create_diagonal(memory, sampler->d, CHUNK_LANES, &self->langevin)
                     : langevin_create(memory, sampler->d, CHUNK_LANES, &self->langevin);
}

static double mala_cost(const SamplerWork *work) {
  const double lanes = cost_drawn_lanes(work), prior = cost_score(work, lanes) / 2;
  return work->drawn * work->draws * (double)config_int(work->options, "steps") *
         langevin_cost(work->d, lanes, prior);
}

static const ConfigKey KEYS[] = {LANGEVIN_STEPS_KEY, LANGEVIN_STEP_SIZE_KEY, {.name = NULL}};

const SamplerOps sampler_mala = {
    .name = "mala",
    .summary = "Metropolis-adjusted Langevin steps on the posterior itself, preconditioned",
    .reference = "Roberts and Tweedie (1996), Bernoulli 2",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE | NEEDS_CONJUGATE,
    .keys = KEYS,
    .create = mala_create,
    .diagonal = &diagonal_mala,
    .sample = mala_sample,
    .cost = mala_cost,
};
