/* A mixture of isotropic Gaussians as a prior. Its chain needs no matrices, in any number of dimensions. If
 * it is standardised, by the mean and by one scale for all directions, so that it stays isotropic. */
#include "core/lanes.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

/* Numbers in all matrices of one kind above which there are none. */
enum { MOST_NUMBERS = 1 << 19 };

typedef struct {
  Isotropic mixture, standardised;
  Chain chain;
} IsotropicPrior;

static void prior_isotropic_sample(const Prior *prior, RngLanes *rng, double *theta) {
  denoiser_isotropic_sample(&((const IsotropicPrior *)prior->state)->mixture, rng, theta);
}

static const PriorOps isotropic_ops = {.name = "isotropic mixture without matrices",
                                       .sample = prior_isotropic_sample};

static Status prior_isotropic_copy(Arena *memory, const Isotropic *from, Isotropic *out) {
  const size_t entries = (size_t)from->components * (size_t)from->d;
  TRY(denoiser_isotropic_create(memory, from->d, from->components, out));
  memcpy(out->weight, from->weight, sizeof out->weight);
  memcpy(out->variance, from->variance, sizeof out->variance);
  memcpy(out->mean, from->mean, entries * sizeof *out->mean);
  return STATUS_OK;
}

/* Creates the same mixture with matrices. */
static Status prior_isotropic_expand(Arena *memory, const Isotropic *from, Mixture *out) {
  const size_t d = (size_t)from->d, count = (size_t)from->components;
  TRY(mixture_create(memory, from->d, from->components, out));
  memcpy(out->weight, from->weight, count * sizeof *out->weight);
  memcpy(out->mean, from->mean, count * d * sizeof *out->mean);
  for (size_t c = 0; c < count; c++)
    for (size_t i = 0; i < d; i++) out->covariance[(c * d + i) * d + i] = from->variance[c];
  return STATUS_OK;
}

/* Sets shift and scale of the chain, and its mixture. */
static Status prior_isotropic_standardise(IsotropicPrior *self) {
  SCRATCH_ARENA(scratch);
  const int d = self->mixture.d;
  Chain *chain = &self->chain;
  double *variance, total = 0;
  ALLOCATE(&scratch, variance, d);
  denoiser_isotropic_moments(&self->mixture, chain->shift, variance);
  for (int i = 0; i < d; i++) total += variance[i] / d;
  for (int i = 0; i < d; i++) chain->scale[i] = sqrt(total);
  denoiser_isotropic_standardise(chain->shift, sqrt(total), &self->standardised);
  return STATUS_OK;
}

Status prior_isotropic(Arena *memory, const Isotropic *mixture, const PriorFit *chain_settings, Prior *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  Mixture expanded;
  IsotropicPrior *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &isotropic_ops, .d = mixture->d, .state = self};
  if ((size_t)mixture->components * d * d <= MOST_NUMBERS) {
    TRY(prior_isotropic_expand(&scratch, mixture, &expanded));
    TRY(prior_from_mixture(memory, &expanded, chain_settings, out));
  }
  TRY(prior_isotropic_copy(memory, mixture, &self->mixture));
  TRY(prior_isotropic_copy(memory, mixture, &self->standardised));
  TRY(denoiser_isotropic_chain(memory, &self->standardised, &chain_settings->schedule, &self->chain));
  self->chain.last_stage = chain_settings->last_stage;
  if (chain_settings->standardise) TRY(prior_isotropic_standardise(self));
  out->chain = &self->chain;
  out->isotropic = &self->standardised;
  return STATUS_OK;
}
