/* A mixture of isotropic Gaussians as a prior. Its chain needs no matrices, in any number of dimensions. If
 * it is standardised, by the mean and by one scale for all directions, so that it stays isotropic. */
#include "core/lanes.h"
#include "model/prior/families.h"

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

static void prior_isotropic_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  denoiser_isotropic_density(&((const IsotropicPrior *)prior->state)->mixture, 1, lanes, theta, out, NULL);
  for (int n = 0; n < lanes; n++) out[n] -= 0.5 * prior->d * log(2 * M_PI);
}

static const PriorOps isotropic_ops = {.name = "isotropic mixture without matrices",
                                       .sample = prior_isotropic_sample,
                                       .log_density = prior_isotropic_log_density};

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

/* Creates the mixture without its chain, and with matrices on request. */
static Status prior_isotropic_begin(Arena *memory, const Isotropic *mixture, bool matrices, Prior *out,
                                    IsotropicPrior **state) {
  SCRATCH_ARENA(scratch);
  Mixture expanded;
  IsotropicPrior *self;
  ALLOCATE(memory, self, 1);
  *state = self;
  *out = (Prior){.memory = memory, .ops = &isotropic_ops, .d = mixture->d, .state = self};
  if (matrices) {
    TRY(prior_isotropic_expand(&scratch, mixture, &expanded));
    TRY(prior_from_mixture_without_chain(memory, &expanded, out));
  }
  out->chain = &self->chain;
  out->isotropic = &self->standardised;
  TRY(denoiser_isotropic_copy(memory, mixture, &self->mixture));
  return denoiser_isotropic_copy(memory, mixture, &self->standardised);
}

bool prior_isotropic_has_matrices(const Isotropic *mixture) {
  return (double)mixture->components * mixture->d * mixture->d <= MOST_NUMBERS;
}

Status prior_isotropic(Arena *memory, const Isotropic *mixture, const PriorFit *chain_settings, Prior *out) {
  IsotropicPrior *self;
  TRY(prior_isotropic_begin(memory, mixture, prior_isotropic_has_matrices(mixture), out, &self));
  TRY(denoiser_isotropic_chain(memory, &self->standardised, &chain_settings->schedule, &self->chain));
  self->chain.last_stage = chain_settings->last_stage;
  return chain_settings->standardise ? prior_isotropic_standardise(self) : STATUS_OK;
}

Status prior_isotropic_like(Arena *memory, const Isotropic *mixture, const Chain *like, const double *shift,
                            bool matrices, Prior *out) {
  const size_t d = (size_t)mixture->d;
  IsotropicPrior *self;
  Denoiser *denoiser;
  TRY(prior_isotropic_begin(memory, mixture, matrices, out, &self));
  self->chain = denoiser_isotropic_chain_like(like, &self->standardised);
  ALLOCATE_ARRAYS(memory, d, &self->chain.shift, &self->chain.scale);
  memcpy(self->chain.shift, shift, d * sizeof *shift);
  for (size_t i = 0; i < d; i++) self->chain.scale[i] = like->scale[0];
  denoiser_isotropic_standardise(shift, like->scale[0], &self->standardised);
  if (matrices) return STATUS_OK;
  ALLOCATE(memory, denoiser, 1);
  out->denoiser = denoiser;
  return denoiser_diagonal_create(memory, mixture, denoiser);
}
