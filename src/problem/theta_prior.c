#include "problem/theta_prior.h"

typedef struct {
  const ThetaOps *ops;
} Density;

static void density_sample(const Prior *prior, RngLanes *rng, double *theta) {
  const Density *self = prior->state;
  const uint32_t lanes = rng->lanes;
  uint32_t furthest = rng->position;
  for (uint32_t n = 0; n < lanes; n++) {
    Rng stream = rng_of_lane(rng, n);
    stream.position = rng->position;
    double point[2];
    self->ops->sample(&stream, point);
    theta[n] = point[0], theta[lanes + n] = point[1];
    if (stream.position > furthest) furthest = stream.position;
  }
  rng->position = furthest; /* rejection takes more of some streams than of others */
}

static void density_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  const Density *self = prior->state;
  for (int n = 0; n < lanes; n++) {
    const double point[2] = {theta[n], theta[lanes + n]};
    out[n] = self->ops->log_density(point);
  }
}

static const PriorOps density_ops = {.name = "exact",
                                     .summary = "the distribution of theta*, which is not a mixture",
                                     .reference = "DiffTS, Section 6.2",
                                     .sample = density_sample,
                                     .log_density = density_log_density};

bool theta_has_prior(const ThetaSource *source) {
  return source->has_mixture || source->ops->prior || source->ops->log_density;
}

Status theta_prior(Arena *memory, const ThetaSource *source, const PriorFit *chain_settings, Prior *out) {
  ASSERT(theta_has_prior(source));
  if (source->has_mixture) return prior_from_mixture(memory, &source->mixture, chain_settings, out);
  if (source->ops->prior) return source->ops->prior(memory, source->d, chain_settings, out);
  ASSERT(source->d == 2);
  *out = (Prior){.memory = memory, .ops = &density_ops, .d = source->d};
  Density *self;
  ALLOCATE(memory, self, 1);
  self->ops = source->ops;
  out->state = self;
  return STATUS_OK;
}
