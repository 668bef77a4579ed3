#include "sampler/unknown_noise.h"

#include "core/chunk.h"
#include "core/linalg/linalg_factor.h"

#include <math.h>
#include <string.h>

struct UnknownNoise {
  int d;
  double shape, scale; /* of the variance's prior */
  const double *center; /* [d]: m */
  double *precision, *information; /* [d, d], [d]: V0 and V0 m */
  double constant; /* m' V0 m */
  /* For a chunk of n lanes: */
  double *factor; /* [d, d, n]: V = L L' */
  double *mean; /* [d, n]: mu, or L' mu */
  double *normal; /* [d, n] */
  double *inverse; /* [d, d, n] */
  double *residual; /* [n]: y'y, then the scale of the variance's posterior */
  int *jitters; /* [n] */
};

bool unknown_noise_asked(const Config *options) {
  return options && config_has(options, "noise") && config_is(options, "noise", "unknown");
}

/* Returns whether a number has another value than its default in the options, or none. */
static bool unknown_noise_differs(const Config *options, const char *key, double fallback) {
  return config_has(options, key) && config_real(options, key) != fallback;
}

Status unknown_noise_check(const Config *options, const Likelihood *likelihood) {
  if (!unknown_noise_asked(options)) {
    const char *prior[] = {"noise_shape", "noise_scale"};
    for (int i = 0; i < 2; i++)
      if (unknown_noise_differs(options, prior[i], 6))
        return status_set(STATUS_INPUT, "option %s has no effect with noise: known", prior[i]);
    return STATUS_OK;
  }
  if (!likelihood_has_noise(likelihood) || likelihood_has_network(likelihood))
    return status_set(STATUS_INPUT, "noise: unknown is for Gaussian rewards of a linear model");
  if (config_has(options, "eta") && !config_is(options, "eta", "auto"))
    return status_set(STATUS_INPUT,
                      "option eta has no effect with noise: unknown, which draws 1 / s^2 for it");
  if (unknown_noise_differs(options, "discount", 1))
    return status_set(STATUS_INPUT, "noise: unknown counts observations, which discount < 1 does not reduce");
  return STATUS_OK;
}

Status unknown_noise_create(const Sampler *sampler, const SamplerSetup *setup, double lambda,
                            UnknownNoise **out) {
  Arena *memory = sampler->memory;
  const Mixture *prior = setup->prior->mixture;
  const size_t d = (size_t)setup->prior->d, n = CHUNK_LANES;
  UnknownNoise *self;
  ASSERT(prior && prior->components == 1);
  ALLOCATE(memory, self, 1);
  *self = (UnknownNoise){.d = setup->prior->d,
                         .shape = config_real(setup->options, "noise_shape"),
                         .scale = config_real(setup->options, "noise_scale"),
                         .center = prior->mean};
  *out = self;
  ALLOCATE(memory, self->precision, d * d);
  ALLOCATE(memory, self->information, d);
  for (size_t i = 0; i < d * d; i++) self->precision[i] = lambda * mixture_precision(prior, 0)[i];
  for (size_t i = 0; i < d; i++) self->information[i] = lambda * mixture_information(prior, 0)[i];
  for (size_t i = 0; i < d; i++) self->constant += self->information[i] * prior->mean[i];
  ALLOCATE_ARRAYS(memory, d * d * n, &self->factor, &self->inverse);
  ALLOCATE_ARRAYS(memory, d * n, &self->mean, &self->normal);
  ALLOCATE(memory, self->residual, n);
  ALLOCATE(memory, self->jitters, n);
  return STATUS_OK;
}

/* Finds L, L' mu (in `mean`) and the scale of the variance's posterior (in `residual`) for the lanes of a
 * view, whose evidence is in units of the problem's noise. */
static void unknown_noise_find(UnknownNoise *self, const HistoryView *view) {
  const int d = self->d, lanes = view->lanes;
  const double sigma = view->history->likelihood->noise, variance = sigma * sigma;
  history_evidence(view, self->factor, self->mean);
  history_residual(view, self->residual);
  for (int i = 0; i < d * d; i++)
    for (int n = 0; n < lanes; n++)
      self->factor[i * lanes + n] = variance * self->factor[i * lanes + n] + self->precision[i];
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      self->mean[i * lanes + n] = variance * self->mean[i * lanes + n] + self->information[i];
  memset(self->jitters, 0, (size_t)lanes * sizeof *self->jitters);
  linalg_factor_cholesky(d, lanes, self->factor, self->jitters);
  linalg_factor_forward(d, lanes, self->factor, self->mean);
  for (int n = 0; n < lanes; n++) {
    double squares = variance * self->residual[n] + self->constant;
    for (int i = 0; i < d; i++) squares -= self->mean[i * lanes + n] * self->mean[i * lanes + n];
    self->residual[n] = self->scale + 0.5 * fmax(squares, 0); /* below 0 only by rounding */
  }
}

/* Returns the shape of the variance's posterior in the run of a lane. */
static double unknown_noise_shape(const UnknownNoise *self, const HistoryView *view, int lane) {
  const int run = (view->first + lane) / view->draws;
  return self->shape + 0.5 * view->history->temper * history_observations(view->history, run);
}

/* Draws from Gamma(shape, 1) by Marsaglia and Tsang (2000); below shape 1, from Gamma(shape + 1) and a
 * uniform number. */
static double unknown_noise_draw_gamma(Rng *rng, double shape) {
  double z, u, boost = 1;
  if (shape < 1) {
    rng_uniform(rng, 1, &u);
    boost = pow(u, 1 / shape);
    shape += 1;
  }
  const double a = shape - 1.0 / 3, c = 1 / sqrt(9 * a);
  for (;;) { /* accepts 95% of proposals or more */
    rng_normal(rng, 1, &z);
    rng_uniform(rng, 1, &u);
    const double root = 1 + c * z, v = root * root * root;
    if (root > 0 && log(u) < 0.5 * z * z + a * (1 - v + log(v))) return boost * a * v;
  }
}

void unknown_noise_sample(UnknownNoise *self, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks) {
  const int d = self->d;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const int lanes = chunk.lanes;
    const HistoryView view = history_view(history, draws, chunk.first, lanes);
    unknown_noise_find(self, &view);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int n = 0; n < lanes; n++) {
      Rng stream = rng_of_lane(&chunk.rng, (uint32_t)n);
      stream.position = chunk.rng.position;
      const double gamma = unknown_noise_draw_gamma(&stream, unknown_noise_shape(self, &view, n));
      const double deviation = sqrt(self->residual[n] / gamma);
      for (int i = 0; i < d; i++)
        self->normal[i * lanes + n] = self->mean[i * lanes + n] + deviation * self->normal[i * lanes + n];
      fallbacks[(chunk.first + n) / draws] += self->jitters[n];
    }
    linalg_factor_backward(d, lanes, self->factor, self->normal);
    chunk_store(&chunk, d, self->normal, theta);
  }
}

void unknown_noise_moments(UnknownNoise *self, const History *history, double *mean, double *covariance,
                           int64_t *fallbacks) {
  const int d = self->d, runs = history->runs;
  for (int first = 0; first < runs; first += CHUNK_LANES) {
    const int lanes = chunk_size(runs, first, CHUNK_LANES);
    const HistoryView view = history_view(history, 1, first, lanes);
    unknown_noise_find(self, &view);
    linalg_factor_backward(d, lanes, self->factor, self->mean);
    linalg_factor_inverse(d, lanes, self->factor, self->inverse);
    for (int n = 0; n < lanes; n++) {
      const double shape = unknown_noise_shape(self, &view, n);
      const double variance = self->residual[n] / (shape > 1 ? shape - 1 : shape);
      for (int i = 0; i < d * d; i++) self->inverse[i * lanes + n] *= variance;
      fallbacks[first + n] += self->jitters[n] + !(shape > 1);
    }
    lanes_copy(d, lanes, self->mean, lanes, mean + first, runs);
    lanes_copy(d * d, lanes, self->inverse, lanes, covariance + first, runs);
  }
}
