/* MALA on the posterior itself, with no transport: the yardstick of tilted transport, whose baseline is the
 * same steps on an easier law (langevin.h). A chain for each draw starts from the Gaussian that the posterior
 * would be under a Gaussian prior of the same mean and covariance, so every draw is independent, and the
 * share of draws that end in a mode is set by where they started when the modes are far apart. */
#include "sampler/langevin.h"

#include "core/memory.h"
#include "sampler/chunk.h"
#include "sampler/evidence.h"
#include "sampler/methods.h"

#include <stdlib.h>

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int steps;
  double step_size;
  double *mean, *covariance; /* [d], [d, d]: of the prior */
  double *matrix, *basis, *q, *vector, *b; /* [d, d, n], [d, d, n], [d, n], [d, n], [d, n]: the evidence */
  double *theta; /* [d, n] */
  int *lane; /* [n] */
  Langevin langevin;
} Mala;

static void density(const void *context, int lanes, double *x, double *log_density, double *score) {
  const Prior *prior = context;
  prior->ops->log_density(prior, lanes, x, log_density);
  prior->ops->score(prior, lanes, x, score);
}

static void mala_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Mala *self = sampler->state;
  const LangevinPrior prior = {density, sampler->setup.prior, true};
  const int d = sampler->d;
  (void)fallbacks;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    LangevinStreams streams = {chunk.rng, self->lane, lanes};
    const HistoryView view = {history, draws, chunk.first, lanes, NULL, NULL};
    evidence_decompose(&view, self->matrix, self->vector, self->basis, self->q, self->b);
    langevin_target(&self->langevin, &prior, lanes, self->basis, self->q, self->b, self->mean,
                    self->covariance);
    langevin_run(&self->langevin, &streams, self->steps, self->step_size);
    langevin_positions(&self->langevin, self->theta);
    chunk_store(&chunk, d, self->theta, theta);
  }
}

static void mala_destroy(Sampler *sampler) {
  Mala *self = sampler->state;
  free(self->mean);
  free(self->covariance);
  free(self->matrix);
  free(self->basis);
  free(self->q);
  free(self->vector);
  free(self->b);
  free(self->theta);
  free(self->lane);
  langevin_destroy(&self->langevin);
  free(self);
}

static Status mala_create(Sampler *sampler, const SamplerSetup *setup) {
  const size_t d = (size_t)sampler->d, vector = d * CHUNK_LANES;
  Mala *self;
  NEW(self, 1);
  sampler->state = self;
  self->steps = (int)config_int(setup->options, "steps");
  self->step_size = config_real(setup->options, "step_size");
  NEW(self->mean, d);
  NEW(self->covariance, d * d);
  NEW(self->matrix, d * vector);
  NEW(self->basis, d * vector);
  NEW(self->q, vector);
  NEW(self->vector, vector);
  NEW(self->b, vector);
  NEW(self->theta, vector);
  NEW(self->lane, CHUNK_LANES);
  for (int n = 0; n < CHUNK_LANES; n++) self->lane[n] = n;
  mixture_moments(setup->prior->mixture, self->mean, self->covariance);
  return langevin_create(sampler->d, CHUNK_LANES, &self->langevin);
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
    .destroy = mala_destroy,
    .sample = mala_sample,
};
