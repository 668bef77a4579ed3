/* The denoiser of a mixture of isotropic Gaussians for evidence that is diagonal and the same in all lanes,
 * M = diag(q): component c, N(m_c, v_c I), has the posterior mean (m_c + v_c b) / (1 + v_c q) and variance
 * v_c / (1 + v_c q) in each coordinate, so that with its weight r_c
 *
 *     C = diag(sum_c r_c v_c / (1 + v_c q)) + sum_c r_c (D_c - D) (D_c - D)',
 *
 * and a draw takes d normals, one more per component, and no matrix. */
#include "core/special.h"
#include "model/denoiser/denoiser.h"
#include "model/denoiser/denoiser_isotropic.h"

#include <math.h>
#include <string.h>

/* n <= DENOISER_LANES lanes, lane last. */
typedef struct {
  double *q; /* [d] */
  double *mean, *variance, *normal; /* [d, n]: D, the diagonal part of C */
  double *share; /* [components, n]: r_c */
  double *along; /* [components, n]: normals for the rest of C */
} Moments;

static Status diagonal_scratch_create(const Denoiser *self, Arena *memory, void **out) {
  const Isotropic *mixture = self->state;
  const size_t d = (size_t)self->d, count = (size_t)mixture->components;
  Moments *at;
  ALLOCATE(memory, at, 1);
  ALLOCATE(memory, at->q, d);
  ALLOCATE_ARRAYS(memory, d * DENOISER_LANES, &at->mean, &at->variance, &at->normal);
  ALLOCATE_ARRAYS(memory, count * DENOISER_LANES, &at->share, &at->along);
  *out = at;
  return STATUS_OK;
}

static double diagonal_component_mean(const Isotropic *mixture, int c, int i, double q, double b) {
  const double v = mixture->variance[c];
  return (mixture->mean[c * mixture->d + i] + v * b) / (1 + v * q);
}

SIMD_CLONES
static void diagonal_find_moments(const Isotropic *mixture, const LaneEvidence *evidence, const Moments *at) {
  const int lanes = evidence->lanes;
  for (int i = 0; i < mixture->d; i++) at->q[i] = evidence->eigenvalue[i * lanes];
  denoiser_isotropic_shares(mixture, at->q, lanes, evidence->vector, at->share, NULL);
  for (int i = 0; i < mixture->d; i++) {
    double *restrict mean = at->mean + i * lanes, *restrict variance = at->variance + i * lanes;
    for (int n = 0; n < lanes; n++) mean[n] = variance[n] = 0;
    for (int c = 0; c < mixture->components; c++) {
      const double *restrict share = at->share + c * lanes, v = mixture->variance[c];
      for (int n = 0; n < lanes; n++) {
        mean[n] +=
            share[n] * diagonal_component_mean(mixture, c, i, at->q[i], evidence->vector[i * lanes + n]);
        variance[n] += share[n] * v / (1 + v * at->q[i]);
      }
    }
  }
}

static void diagonal_add_draw(const Denoiser *self, const LaneEvidence *evidence, DenoiserStep step,
                              RngLanes *rng, double *x, void *scratch) {
  const Isotropic *mixture = self->state;
  const Moments *at = scratch;
  const int lanes = evidence->lanes, count = mixture->components;
  diagonal_find_moments(mixture, evidence, at);
  rng_lanes_normal(rng, mixture->d, at->normal);
  rng_lanes_normal(rng, count, at->along);
  for (int c = 0; c < count * lanes; c++) at->along[c] *= sqrt(at->share[c]);
  for (int i = 0; i < mixture->d; i++)
    for (int n = 0; n < lanes; n++) {
      const int k = i * lanes + n;
      double sum = at->mean[k];
      for (int c = 0; c < count; c++)
        sum += at->along[c * lanes + n] *
               (diagonal_component_mean(mixture, c, i, at->q[i], evidence->vector[k]) - at->mean[k]);
      at->normal[k] = special_two_products(
          step.gain, sum, sqrt(step.gain * step.gain * at->variance[k] + step.noise), at->normal[k]);
    }
  for (int k = 0; k < mixture->d * lanes; k++) x[k] += at->normal[k];
}

Status denoiser_diagonal_create(Arena *memory, const Isotropic *mixture, Denoiser *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  Isotropic *standardised;
  double *variance, total = 0;
  TRY(denoiser_standard(memory, mixture->d, out));
  ALLOCATE(memory, standardised, 1);
  ALLOCATE(&scratch, variance, d);
  TRY(denoiser_isotropic_copy(memory, mixture, standardised));
  denoiser_isotropic_moments(mixture, out->shift, variance);
  for (size_t i = 0; i < d; i++) total += variance[i] / mixture->d;
  for (size_t i = 0; i < d; i++) out->scale[i] = sqrt(total);
  denoiser_isotropic_standardise(out->shift, sqrt(total), standardised);
  out->state = standardised;
  out->scratch = diagonal_scratch_create;
  out->add_draw = diagonal_add_draw;
  return STATUS_OK;
}
