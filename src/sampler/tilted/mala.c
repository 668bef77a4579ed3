/* MALA on the posterior itself, with no transport: the comparison for tilted transport, whose baseline is the
 * same steps on an easier law (langevin.h). A chain for each draw starts from the Gaussian that the posterior
 * would be under a Gaussian prior of the same mean and covariance, so every draw is independent, and the
 * share of draws that end in a mode is set by where they started when the modes are far apart.
 *
 * With a Gaussian prior the chain is one of x, theta = A x with A A' the covariance of the prior, which is
 * then N(A^-1 m, I): the Gaussian that it starts from is the posterior itself, however the prior is
 * conditioned. */
#include "sampler/cost.h"
#include "sampler/tilted/langevin.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/matrix_lanes.h"
#include "model/evidence.h"
#include "sampler/chunk.h"
#include "sampler/methods.h"

#include <stdlib.h>
#include <string.h>

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int steps;
  double step_size;
  double *mean, *covariance; /* [d], [d, d]: of the prior, in x */
  double *root; /* [d, d]: A; NULL: the identity */
  double *matrix, *basis, *q, *vector, *b; /* [d, d, n], [d, d, n], [d, n], [d, n], [d, n]: the evidence */
  double *theta; /* [d, n] */
  int *lane; /* [n] */
  Langevin langevin;
} Mala;

static void mala_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Prior *prior = context;
  prior->ops->log_density(prior, lanes, x, log_density);
  prior->ops->score(prior, lanes, x, score);
}

/* N(mean, I). */
static void white_density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Mala *self = context;
  for (int n = 0; n < lanes; n++) log_density[n] = 0;
  for (int i = 0; i < self->langevin.d; i++)
    for (int n = 0; n < lanes; n++) {
      const double pull = self->mean[i] - x[i * lanes + n];
      score[i * lanes + n] = pull;
      log_density[n] -= 0.5 * pull * pull;
    }
}

static void mala_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Mala *self = sampler->state;
  const LangevinPrior white = {white_density, self, true}, plain = {mala_density, sampler->setup.prior, true};
  const int d = sampler->d;
  (void)fallbacks;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    LangevinStreams streams = {chunk.rng, self->lane, lanes};
    const HistoryView view = {history, draws, chunk.first, lanes, NULL, NULL};
    evidence_decompose(&view, self->root, self->matrix, self->vector, self->basis, self->q, self->b);
    langevin_target(&self->langevin, self->root ? &white : &plain, lanes, self->basis, self->q, self->b,
                    self->mean, self->covariance);
    langevin_run(&self->langevin, &streams, self->steps, self->step_size);
    langevin_positions(&self->langevin, self->theta);
    if (self->root) matrix_lanes_apply(d, lanes, false, self->root, self->theta, self->vector);
    chunk_store(&chunk, d, self->root ? self->vector : self->theta, theta);
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
  self->steps = (int)config_int(setup->options, "steps");
  self->step_size = config_real(setup->options, "step_size");
  ALLOCATE(memory, self->mean, d);
  ALLOCATE(memory, self->covariance, d * d);
  ALLOCATE(memory, self->matrix, d * vector);
  ALLOCATE(memory, self->basis, d * vector);
  ALLOCATE(memory, self->q, vector);
  ALLOCATE(memory, self->vector, vector);
  ALLOCATE(memory, self->b, vector);
  ALLOCATE(memory, self->theta, vector);
  ALLOCATE(memory, self->lane, CHUNK_LANES);
  for (int n = 0; n < CHUNK_LANES; n++) self->lane[n] = n;
  mixture_moments(prior, self->mean, self->covariance);
  if (prior->components == 1 && !mixture_is_white(prior)) TRY(mala_whiten(memory, self, prior));
  return langevin_create(memory, sampler->d, CHUNK_LANES, &self->langevin);
}

static double mala_cost(const SamplerWork *work) {
  const double lanes = cost_drawn_lanes(work), prior = cost_density(work) + cost_score(work, lanes);
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
