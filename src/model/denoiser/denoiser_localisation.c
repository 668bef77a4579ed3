#include "model/denoiser/denoiser_localisation.h"

#include "core/linalg/linalg.h"
#include "core/simd.h"
#include "model/denoiser/denoiser_chain.h"

#include <math.h>
#include <string.h>

void denoiser_localisation_precisions(int steps, double first, double last, double *precision) {
  precision[0] = 0;
  for (int k = 1; k < steps; k++) precision[k] = first * pow(last / first, (k - 1.0) / (steps - 1));
  precision[steps] = last;
}

Status denoiser_localisation_create(Arena *memory, const Denoiser *denoiser, bool from_mixture, int steps,
                                    double first, double last, Localisation *out) {
  const size_t vector = (size_t)denoiser->d * DENOISER_LANES, matrix = (size_t)denoiser->d * vector;
  ASSERT(steps >= 1 && first > 0 && first <= last);
  *out = (Localisation){.denoiser = denoiser, .from_mixture = from_mixture, .steps = steps};
  ALLOCATE(memory, out->precision, steps + 1);
  denoiser_localisation_precisions(steps, first, last, out->precision);
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->variance, &out->eigenvalue, &out->normal, &out->moved);
  if (!denoiser->add_draw) ALLOCATE_ARRAYS(memory, matrix, &out->axes, &out->covariance);
  return denoiser->scratch(denoiser, memory, &out->scratch);
}

Status denoiser_evidence_create(Arena *memory, int d, LaneEvidence *out) {
  const size_t vector = (size_t)d * DENOISER_LANES;
  *out = (LaneEvidence){.lanes = 0};
  ALLOCATE(memory, out->basis, (size_t)d * vector);
  ALLOCATE_ARRAYS(memory, vector, &out->eigenvalue, &out->vector);
  return STATUS_OK;
}

void denoiser_evidence_clear(int d, int lanes, LaneEvidence *out) {
  const size_t row = (size_t)lanes, column = (size_t)d * row;
  out->lanes = lanes;
  memset(out->vector, 0, column * sizeof *out->vector);
  memset(out->eigenvalue, 0, column * sizeof *out->eigenvalue);
  memset(out->basis, 0, (size_t)d * column * sizeof *out->basis);
  for (size_t i = 0; i < (size_t)d; i++)
    for (size_t n = 0; n < row; n++) out->basis[i * (column + row) + n] = 1;
}

void denoiser_localisation_moments(Localisation *self, int k, const LaneEvidence *at, int *lane_fallbacks) {
  const Denoiser *denoiser = self->denoiser;
  const int d = denoiser->d, lanes = at->lanes;
  const LaneEvidence now = {lanes, at->basis, self->eigenvalue, at->vector};
  DenoiserMoments *moments = self->from_mixture ? denoiser->moments_from_mixture : denoiser->moments;
  for (int i = 0; i < d * lanes; i++) now.eigenvalue[i] = at->eigenvalue[i] + self->precision[k];
  moments(denoiser, &now, self->mean, self->covariance, lane_fallbacks, self->scratch);
  for (int i = 0; i < d * lanes; i++) { /* a mean beyond the guard of a chain's states comes back to it */
    double *x = &self->mean[i];
    if (islessequal(fabs(*x), CHAIN_GUARD)) continue;
    *x = isnan(*x) ? 0 : copysign(CHAIN_GUARD, *x);
    lane_fallbacks[i % lanes]++;
  }
  linalg_factor_eigen(d, lanes, self->covariance, self->axes, self->variance);
  for (int i = 0; i < d * lanes; i++) /* learned variances may be negative */
    self->variance[i] = self->variance[i] > 0 ? self->variance[i] : 0;
}

/* Computes normal <- sqrt(gain^2 c + noise) normal. */
SIMD_CLONES
static void denoiser_colour_normals(size_t count, double gain, double noise, const double *restrict variance,
                                    double *restrict normal) {
  for (size_t k = 0; k < count; k++) normal[k] *= sqrt(gain * gain * variance[k] + noise);
}

/* Adds a draw with the moments at s_k to x[d, n]. */
static void denoiser_localisation_add(Localisation *self, int k, const LaneEvidence *at, DenoiserStep step,
                                      RngLanes *rng, double *x, int *lane_fallbacks) {
  const Denoiser *denoiser = self->denoiser;
  const int d = denoiser->d, lanes = (int)rng->lanes;
  if (denoiser->add_draw) {
    const LaneEvidence now = {.lanes = lanes, .eigenvalue = self->eigenvalue, .vector = at->vector};
    for (int i = 0; i < d * lanes; i++) now.eigenvalue[i] = at->eigenvalue[i] + self->precision[k];
    denoiser->add_draw(denoiser, &now, step, rng, x, self->scratch);
    return;
  }
  denoiser_localisation_moments(self, k, at, lane_fallbacks);
  rng_lanes_normal(rng, d, self->normal);
  denoiser_colour_normals((size_t)d * (size_t)lanes, step.gain, step.noise, self->variance, self->normal);
  linalg_lanes_multiply(d, lanes, self->axes, self->normal, self->moved);
  for (int i = 0; i < d * lanes; i++) x[i] += step.gain * self->mean[i] + self->moved[i];
}

void denoiser_localisation_draw(Localisation *self, const LaneEvidence *at, RngLanes *rng, double *z,
                                int *lane_fallbacks) {
  for (int k = 0; k < self->steps; k++) {
    const double delta = self->precision[k + 1] - self->precision[k];
    denoiser_localisation_add(self, k, at, (DenoiserStep){.gain = delta, .noise = delta}, rng, at->vector,
                              lane_fallbacks);
  }
  memset(z, 0, (size_t)self->denoiser->d * rng->lanes * sizeof *z);
  denoiser_localisation_add(self, self->steps, at, (DenoiserStep){.gain = 1}, rng, z, lane_fallbacks);
}

void denoiser_localisation_to_theta(const Localisation *self, int lanes, double *z) {
  const double *shift = self->denoiser->shift, *scale = self->denoiser->scale;
  for (int i = 0; i < self->denoiser->d; i++)
    for (int n = 0; n < lanes; n++) z[i * lanes + n] = shift[i] + scale[i] * z[i * lanes + n];
}

Status denoiser_localisation_sample_create(Arena *memory, const Denoiser *denoiser, Unconditional *out) {
  TRY(denoiser_localisation_create(memory, denoiser, false, 12, 0.05, 300, &out->walk));
  ALLOCATE(memory, out->z, (size_t)denoiser->d * DENOISER_LANES);
  return denoiser_evidence_create(memory, denoiser->d, &out->evidence);
}

void denoiser_localisation_sample(Unconditional *self, RngLanes *rng, double *theta) {
  const int d = self->walk.denoiser->d;
  uint32_t position = rng->position;
  int lane_fallbacks[DENOISER_LANES] = {0};
  for (Chunk chunk = chunk_begin_narrow(*rng, DENOISER_LANES); chunk.lanes > 0; chunk_next(&chunk, *rng)) {
    denoiser_evidence_clear(d, chunk.lanes, &self->evidence);
    denoiser_localisation_draw(&self->walk, &self->evidence, &chunk.rng, self->z, lane_fallbacks);
    denoiser_localisation_to_theta(&self->walk, chunk.lanes, self->z);
    chunk_store(&chunk, d, self->z, theta);
    position = chunk.rng.position;
  }
  rng->position = position;
}
