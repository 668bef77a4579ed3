/* A prior whose denoiser for any precision is a function of the caller's. Nothing is fitted or stored, and
 * theta is used as it is, so it should be on the scale of 1. */
#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

/* The function gives the mean and covariance of theta for any observation of it (Eldan 2013;
 * denoiser_localisation.h). Samples are draws without evidence. */

typedef struct {
  Denoiser denoiser;
  Unconditional samples;
  GivenDenoiser *function;
  void *context;
} Given;

/* What a call works in, in the caller's layout, lane first, but for `lane_precision`. */
typedef struct {
  double *lane_precision, *precision, *covariance; /* [d, d, n], [n, d, d], [n, d, d] */
  double *b, *mean; /* [n, d] */
} GivenScratch;

static Status prior_given_scratch(const Denoiser *denoiser, Arena *memory, void **out) {
  const size_t vector = (size_t)denoiser->d * DENOISER_LANES, matrix = (size_t)denoiser->d * vector;
  GivenScratch *at;
  ALLOCATE(memory, at, 1);
  ALLOCATE_ARRAYS(memory, matrix, &at->lane_precision, &at->precision, &at->covariance);
  ALLOCATE_ARRAYS(memory, vector, &at->b, &at->mean);
  *out = at;
  return STATUS_OK;
}

static void prior_given_moments(const Denoiser *denoiser, const LaneEvidence *evidence, double *mean,
                                double *covariance, int *lane_fallbacks, void *scratch) {
  const Given *self = denoiser->state;
  const GivenScratch *at = scratch;
  const int d = denoiser->d, n = evidence->lanes;
  linalg_factor_spectral(d, n, evidence->basis, evidence->eigenvalue, at->lane_precision);
  io_dataset_transpose(d * d, n, at->lane_precision, at->precision);
  io_dataset_transpose(d, n, evidence->vector, at->b);
  const bool done = self->function(self->context, n, d, at->b, at->precision, at->mean, at->covariance) == 0;
  for (int k = 0; k < n; k++) {
    double *m = at->mean + k * d, *c = at->covariance + k * d * d;
    bool finite = done;
    for (int i = 0; i < d; i++) finite = finite && isfinite(m[i]);
    for (int i = 0; i < d * d; i++) finite = finite && isfinite(c[i]);
    if (finite) continue;
    memset(m, 0, (size_t)d * sizeof *m);
    memset(c, 0, (size_t)(d * d) * sizeof *c);
    lane_fallbacks[k]++;
  }
  io_dataset_transpose(n, d, at->mean, mean);
  io_dataset_transpose(n, d * d, at->covariance, covariance);
}

static void prior_given_sample(const Prior *prior, RngLanes *rng, double *theta) {
  Given *self = prior->state;
  denoiser_localisation_sample(&self->samples, rng, theta);
}

static const PriorOps given_ops = {.name = "given", .sample = prior_given_sample};

Status prior_given(Arena *memory, int d, GivenDenoiser *function, void *context, Prior *out) {
  Given *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &given_ops, .d = d, .state = self, .denoiser = &self->denoiser};
  self->function = function;
  self->context = context;
  TRY(denoiser_standard(memory, d, &self->denoiser));
  self->denoiser.state = self;
  self->denoiser.scratch = prior_given_scratch;
  self->denoiser.moments = prior_given_moments;
  return denoiser_localisation_sample_create(memory, &self->denoiser, &self->samples);
}
