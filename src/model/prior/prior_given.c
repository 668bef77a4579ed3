/* A prior whose denoiser is the caller's: a function that gives the mean and covariance of theta for any
 * observation of it (Eldan 2013). Nothing is fitted or stored, and theta is used as it is, so it should be on
 * the scale of 1 (denoiser_localisation.h). Samples are draws without evidence. */
#include "core/linalg.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

typedef struct {
  Denoiser denoiser;
  Unconditional samples;
  GivenDenoiser *function;
  void *context;
} Given;

/* Transposes from[rows, n] to to[n, rows]. */
static void prior_given_transpose(size_t rows, size_t n, const double *from, double *to) {
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < n; k++) to[k * rows + i] = from[i * n + k];
}

static bool prior_given_all_finite(size_t count, const double *values) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return false;
  return true;
}

static void prior_given_moments(const Denoiser *denoiser, int lanes, const double *basis,
                                const double *eigenvalue, const double *vector, double *mean,
                                double *covariance, int *lane_fallbacks, double *workspace) {
  const Given *self = denoiser->state;
  const size_t d = (size_t)denoiser->d, n = (size_t)lanes, matrix = d * d * DENOISER_LANES;
  double *precision = workspace, *by_lane = precision + matrix, *moments = by_lane + matrix;
  double *b = moments + matrix, *means = b + d * DENOISER_LANES;
  linalg_spectral_lanes(denoiser->d, lanes, basis, eigenvalue, precision);
  prior_given_transpose(d * d, n, precision, by_lane);
  prior_given_transpose(d, n, vector, b);
  const bool done = self->function(self->context, lanes, denoiser->d, b, by_lane, means, moments) == 0;
  for (size_t k = 0; k < n; k++) {
    double *m = means + k * d, *c = moments + k * d * d;
    if (done && prior_given_all_finite(d, m) && prior_given_all_finite(d * d, c)) continue;
    memset(m, 0, d * sizeof *m);
    memset(c, 0, d * d * sizeof *c);
    lane_fallbacks[k]++;
  }
  prior_given_transpose(n, d, means, mean);
  prior_given_transpose(n, d * d, moments, covariance);
}

static void prior_given_sample(const Prior *prior, RngLanes *rng, double *theta) {
  Given *self = prior->state;
  denoiser_localisation_sample(&self->samples, rng, theta);
}

static const PriorOps given_ops = {.name = "given", .sample = prior_given_sample};

Status prior_given(Arena *memory, int d, GivenDenoiser *function, void *context, Prior *out) {
  const size_t size = (size_t)d;
  Given *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &given_ops, .d = d, .state = self, .denoiser = &self->denoiser};
  self->function = function, self->context = context;
  TRY(denoiser_standard(memory, d, &self->denoiser));
  self->denoiser.workspace = (3 * size + 2) * size * DENOISER_LANES;
  self->denoiser.state = self;
  self->denoiser.moments = prior_given_moments;
  return denoiser_localisation_sample_create(memory, &self->denoiser, &self->samples);
}
