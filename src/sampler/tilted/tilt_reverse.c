#include "sampler/tilted/tilt_reverse.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"

#include <string.h>

/* Least variance of the clean sample given a state, as in diffusion_moments.c. */
static const double VARIANCE_LEAST = 1e-9;

Status tilt_reverse_create(Arena *memory, const SamplerSetup *setup, int lanes, bool exponential,
                           TiltReverse *out) {
  const size_t vector = (size_t)setup->prior->d * (size_t)lanes;
  *out = (TiltReverse){.chain = setup->prior->chain, .exponential = exponential};
  ALLOCATE_ARRAYS(memory, lanes, &out->lane, &out->jitters);
  ALLOCATE_ARRAYS(memory, vector, &out->z, &out->s, &out->normal, &out->eps);
  if (!exponential) {
    const size_t d = (size_t)setup->prior->d;
    ALLOCATE(memory, out->covariance, d * vector);
    ALLOCATE(memory, out->repaired, 2 * d * d + d);
  }
  if (exponential && setup->diagonal) return STATUS_OK;
  return diffusion_moments_create(memory, setup->prior, false, &out->moments);
}

/* Takes a stage of `exponential` from t to t - 1, in place on s[d, count], with e^h = 1 / sqrt(alpha_t) and
 * e^2h - 1 = beta_t / alpha_t; eps[d, count] is scratch. */
static void tilt_reverse_exponential(const Chain *chain, int t, int count, double *s, const double *normal,
                                     double *eps) {
  const Schedule *schedule = &chain->schedule;
  const double growth = 1 / sqrt(schedule->alpha[t]);
  const double of_noise = -2 * (growth - 1) / sqrt(1 - schedule->alpha_bar[t]);
  const double deviation = sqrt(schedule->beta[t] / schedule->alpha[t]);
  chain->noise(chain, t, count, s, eps);
  for (int k = 0; k < chain->d * count; k++)
    s[k] = special_two_products(growth, s[k], of_noise, eps[k]) + deviation * normal[k];
}

/* Computes c[d, d, lanes] <- w0^2 c + beta_tilde I. */
SIMD_CLONES
static void add_bridge(int d, int lanes, double square, double beta_tilde, double *c) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++) {
        double *at = c + (i * d + j) * lanes + n;
        *at = square * *at + (i == j ? beta_tilde : 0);
      }
}

/* Computes s <- w0 denoised + wt s + L z, where denoised is in eps, z in normal and L in covariance. */
SIMD_CLONES
static void tilt_reverse_draw_gaussian(TiltReverse *self, int lanes, double of_denoised, double of_state) {
  const double *restrict denoised = self->eps, *restrict l = self->covariance, *restrict z = self->normal;
  double *restrict s = self->s;
  const int d = self->chain->d;
  for (int i = 0; i < d; i++) {
    double *restrict s_i = s + i * lanes;
    for (int n = 0; n < lanes; n++)
      s_i[n] = special_two_products(of_denoised, denoised[i * lanes + n], of_state, s_i[n]);
    for (int j = 0; j <= i; j++) {
      const double *restrict l_ij = l + (i * d + j) * lanes;
      const double *restrict z_j = z + j * lanes;
      for (int n = 0; n < lanes; n++) s_i[n] += l_ij[n] * z_j[n];
    }
  }
}

/* Repairs the matrix of lane m, which is not a covariance: raises its eigenvalues to `least` and factorises
 * it again. Its lower triangle holds the failed factor; the upper one and diagonal[d, count] hold the
 * matrix. */
static void tilt_repair_covariance(TiltReverse *self, int count, int m, double least,
                                   const double *diagonal) {
  const int d = self->chain->d;
  double *matrix = self->repaired, *basis = matrix + d * d, *eigenvalue = basis + d * d;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      matrix[i * d + j] = i == j  ? diagonal[i * count + m]
                          : i < j ? self->covariance[(i * d + j) * count + m]
                                  : self->covariance[(j * d + i) * count + m];
  linalg_factor_eigen(d, 1, matrix, basis, eigenvalue);
  memset(matrix, 0, (size_t)(d * d) * sizeof *matrix);
  for (int i = 0; i < d; i++)
    for (int k = 0; k < d; k++) {
      const double scaled = basis[i * d + k] * fmax(eigenvalue[k], least);
      for (int j = 0; j <= i; j++) matrix[i * d + j] += scaled * basis[j * d + k];
    }
  linalg_factor_cholesky(d, 1, matrix, NULL);
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) self->covariance[(i * d + j) * count + m] = matrix[i * d + j];
}

void tilt_reverse_stage(TiltReverse *self, int t, int count) {
  const Schedule *schedule = &self->chain->schedule;
  const int d = self->chain->d;
  double of_denoised, of_state, *diagonal = self->z;
  if (self->exponential) {
    tilt_reverse_exponential(self->chain, t, count, self->s, self->normal, self->eps);
    return;
  }
  schedule_bridge_factors(schedule, t, &of_denoised, &of_state);
  const double square = of_denoised * of_denoised, beta_tilde = schedule->beta_tilde[t];
  diffusion_moments_covariance(&self->moments, t, count, self->s, self->eps, self->covariance, self->z);
  add_bridge(d, count, square, beta_tilde, self->covariance);
  for (int i = 0; i < d; i++)
    memcpy(diagonal + i * count, self->covariance + (i * d + i) * count, (size_t)count * sizeof *diagonal);
  memset(self->jitters, 0, (size_t)count * sizeof *self->jitters);
  linalg_factor_cholesky(d, count, self->covariance, self->jitters);
  for (int m = 0; m < count; m++) /* a learned predictor can give a C_t that is not a covariance */
    if (self->jitters[m])
      tilt_repair_covariance(self, count, m, beta_tilde + square * VARIANCE_LEAST, diagonal);
  tilt_reverse_draw_gaussian(self, count, of_denoised, of_state);
}

/* Steps from s_t to s_{t-1} in the lanes that have reached stage t; if the chain can draw the clean sample,
 * draws that instead, in the lanes that start there. */
void tilt_reverse_run(TiltReverse *self, const Chunk *chunk, const int *stage, double *s,
                      int64_t *fallbacks) {
  const bool whole = self->chain->denoise;
  const int d = self->chain->d, lanes = chunk->lanes;
  for (int t = self->chain->schedule.stages; t >= 1; t--) {
    RngLanes rng = chunk->rng;
    int count = 0;
    for (int n = 0; n < lanes; n++)
      if (whole ? stage[n] == t : stage[n] >= t) self->lane[count++] = n;
    if (count == 0) continue;
    rng.key = rng_subkey(rng.key, RNG_REVERSE);
    rng.position = whole ? 0 : (uint32_t)t * ((uint32_t)(d + 1) / 2);
    (whole ? rng_lanes_uniform : rng_lanes_normal)(&rng, d, self->z);
    lanes_gather(d, lanes, count, self->lane, self->z, self->normal);
    lanes_gather(d, lanes, count, self->lane, s, self->s);
    if (whole)
      self->chain->denoise(self->chain, t, count, self->s, self->normal, self->eps);
    else
      tilt_reverse_stage(self, t, count);
    lanes_scatter(d, lanes, count, self->lane, whole ? self->eps : self->s, s);
    if (!whole) denoiser_chain_guard(chunk, d, s, fallbacks);
  }
}

/* ---- the flow of a tilt */

int tilt_flow_stage(const Schedule *schedule, double largest, double margin) {
  int t = 0;
  while (t < schedule->stages && tilt_flow_reach(schedule, t + 1) * largest <= 1 - margin) t++;
  return t;
}

void tilt_flow(int n, int stride, double c, double *q, double *b) {
  for (int k = 0; k < n * stride; k += stride) {
    const double left = 1 - c * q[k];
    ASSERT(left > 0);
    q[k] *= (1 + c) / left;
    b[k] *= sqrt(1 + c) / left;
  }
}
