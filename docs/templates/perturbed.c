/* Perturb and solve (Papandreou and Yuille 2010, Gaussian sampling by local perturbations): the posterior of
 * a Gaussian prior has the precision A = P + Lambda, and the solution of A theta = P m + b + L eps, with
 * A = L L' and standard normal eps, is a draw from it. */
#include "core/arena.h"
#include "core/chunk.h"
#include "core/linalg/linalg.h"
#include "sampler/sampler.h"

typedef struct {
  double *precision, *vector, *normal; /* [d, d, CHUNK_LANES], [d, CHUNK_LANES] twice: scratch */
} Perturbed;

static Status perturbed_create(Sampler *sampler, const SamplerSetup *setup) {
  (void)setup;
  Perturbed *self;
  ALLOCATE(sampler->memory, self, 1);
  sampler->state = self;
  ALLOCATE(sampler->memory, self->precision, sampler->d * sampler->d * CHUNK_LANES);
  ALLOCATE_ARRAYS(sampler->memory, sampler->d * CHUNK_LANES, &self->vector, &self->normal);
  return STATUS_OK;
}

static void perturbed_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                             int64_t *fallbacks) {
  const Perturbed *self = sampler->state;
  const Mixture *prior = sampler->setup.prior->mixture;
  const double *precision = mixture_precision(prior, 0), *information = mixture_information(prior, 0);
  const int d = sampler->d;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    int jitters[CHUNK_LANES] = {0};
    const HistoryView view = history_view(history, draws, chunk.first, lanes);
    history_evidence(&view, self->precision, self->vector);
    for (int i = 0; i < d * d; i++)
      for (int n = 0; n < lanes; n++) self->precision[i * lanes + n] += precision[i];
    linalg_factor_cholesky(d, lanes, self->precision, jitters);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int i = 0; i < d; i++)
      for (int n = 0; n < lanes; n++) {
        double sum = information[i];
        for (int j = 0; j <= i; j++)
          sum += self->precision[(i * d + j) * lanes + n] * self->normal[j * lanes + n];
        self->vector[i * lanes + n] += sum;
      }
    linalg_factor_solve(d, lanes, self->precision, self->vector);
    chunk_store(&chunk, d, self->vector, theta);
    for (int n = 0; n < lanes; n++) fallbacks[(chunk.first + n) / draws] += jitters[n];
  }
}

const SamplerOps sampler_perturbed = {.name = "perturbed",
                                      .summary = "the posterior of a Gaussian prior, by perturb and solve",
                                      .reference = "Papandreou and Yuille (2010)",
                                      .default_prior = "gaussian",
                                      .needs = NEEDS_GAUSSIAN | NEEDS_CONJUGATE,
                                      .exact = true,
                                      .create = perturbed_create,
                                      .sample = perturbed_sample};
