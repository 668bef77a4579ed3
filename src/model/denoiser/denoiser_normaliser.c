#include "model/denoiser/denoiser_normaliser.h"

#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/mixture/mixture_evidence.h"

#include <math.h>
#include <string.h>

/* Intervals of the finest sum, one per lane of a call; sums that are extrapolated; largest eigenvalue of u M
 * at the first node, in units in which a prior has variance about 1. */
enum { NODES = DENOISER_LANES, LEVELS = 3 };
static const double FIRST_PRECISION = 1e-3;

Status denoiser_normaliser_create(Arena *memory, const Denoiser *denoiser, Normaliser *out) {
  const int d = denoiser->d;
  const size_t vector = (size_t)d * NODES, matrix = (size_t)d * vector;
  *out = (Normaliser){.denoiser = denoiser};
  ALLOCATE_ARRAYS(memory, (size_t)d * (size_t)d, &out->prior_precision, &out->precision);
  ALLOCATE(memory, out->prior_vector, d);
  ALLOCATE_ARRAYS(memory, matrix, &out->covariance, &out->factor, &out->inverse);
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->centre);
  ALLOCATE(memory, out->lane_fallbacks, NODES);
  TRY(denoiser_evidence_create(memory, d, &out->path));
  TRY(denoiser->scratch(denoiser, memory, &out->scratch));
  /* The Gaussian with the prior's mean and covariance. */
  double *basis = out->path.basis, *eigenvalue = out->path.eigenvalue;
  denoiser_evidence_clear(d, 1, &out->path);
  denoiser->moments(denoiser, &out->path, out->mean, out->covariance, out->lane_fallbacks, out->scratch);
  linalg_factor_eigen(d, 1, out->covariance, basis, eigenvalue);
  for (int i = 0; i < d; i++) {
    eigenvalue[i] = 1 / fmax(eigenvalue[i], 1e-9);
    out->prior_log_norm += 0.5 * log(eigenvalue[i]);
  }
  linalg_factor_spectral(d, 1, basis, eigenvalue, out->prior_precision);
  linalg_lanes_multiply(d, 1, out->prior_precision, out->mean, out->prior_vector);
  for (int i = 0; i < d; i++) out->prior_log_norm -= 0.5 * out->mean[i] * out->prior_vector[i];
  return STATUS_OK;
}

/* Computes moments of the denoiser and of the Gaussian at all nodes u[NODES], the last of which is 1; returns
 * the Gaussian's log Z at that node. */
static double denoiser_evaluate_path(Normaliser *self, const LaneEvidence *one, const double *u) {
  const int d = self->denoiser->d;
  LaneEvidence *path = &self->path;
  double log_normaliser[NODES]; /* of the Gaussian */
  for (int n = 0; n < NODES; n++)
    for (int i = 0; i < d; i++) {
      path->eigenvalue[i * NODES + n] = u[n] * one->eigenvalue[i];
      path->vector[i * NODES + n] = u[n] * one->vector[i];
      self->centre[i * NODES + n] = self->prior_vector[i] + u[n] * one->vector[i];
      for (int j = 0; j < d; j++) {
        path->basis[(i * d + j) * NODES + n] = one->basis[i * d + j];
        self->factor[(i * d + j) * NODES + n] =
            self->prior_precision[i * d + j] + u[n] * self->precision[i * d + j];
      }
    }
  path->lanes = NODES;
  self->denoiser->moments(self->denoiser, path, self->mean, self->covariance, self->lane_fallbacks,
                          self->scratch);
  linalg_factor_cholesky(d, NODES, self->factor, NULL);
  linalg_factor_forward(d, NODES, self->factor, self->centre);
  mixture_evidence_weigh(d, NODES, self->prior_log_norm, self->factor, self->centre, log_normaliser);
  linalg_factor_backward(d, NODES, self->factor, self->centre);
  linalg_factor_inverse(d, NODES, self->factor, self->inverse);
  return log_normaliser[NODES - 1];
}

/* Returns b' (D - D_g) - tr(M (C + D D' - C_g - D_g D_g')) / 2 at node n, g the Gaussian. */
static double denoiser_path_slope(const Normaliser *self, const double *vector, int n) {
  const int d = self->denoiser->d;
  double sum = 0;
  for (int i = 0; i < d; i++) {
    const double x = self->mean[i * NODES + n], y = self->centre[i * NODES + n];
    sum += vector[i] * (x - y);
    for (int j = 0; j < d; j++)
      sum -= 0.5 * self->precision[i * d + j] *
             (self->covariance[(i * d + j) * NODES + n] + x * self->mean[j * NODES + n] -
              self->inverse[(i * d + j) * NODES + n] - y * self->centre[j * NODES + n]);
  }
  return sum;
}

/* Returns the integral of f[NODES + 1], whose nodes are `step` apart. */
static double denoiser_integrate_path(const double *f, double step, double *error) {
  double sums[LEVELS];
  for (int level = 0; level < LEVELS; level++) {
    const int stride = 1 << (LEVELS - 1 - level);
    sums[level] = 0.5 * (f[0] + f[NODES]);
    for (int n = stride; n < NODES; n += stride) sums[level] += f[n];
    sums[level] *= step * stride;
  }
  double before = sums[LEVELS - 1];
  for (int order = 1, power = 4; order < LEVELS; order++, power *= 4) {
    before = sums[LEVELS - 1];
    for (int level = LEVELS - 1; level >= order; level--)
      sums[level] += (sums[level] - sums[level - 1]) / (power - 1);
  }
  *error = fabs(sums[LEVELS - 1] - before);
  return sums[LEVELS - 1];
}

double denoiser_normaliser_find(Normaliser *self, const LaneEvidence *one, double *error,
                                int *lane_fallbacks) {
  const int d = self->denoiser->d;
  double largest = FIRST_PRECISION, u[NODES], f[NODES + 1] = {0};
  for (int i = 0; i < d; i++) largest = fmax(largest, one->eigenvalue[i]);
  const double first = FIRST_PRECISION / largest, step = -log(first) / NODES;
  for (int n = 0; n < NODES; n++) u[n] = n == NODES - 1 ? 1 : first * exp((n + 1) * step);
  memset(self->lane_fallbacks, 0, NODES * sizeof *self->lane_fallbacks);
  linalg_factor_spectral(d, 1, one->basis, one->eigenvalue, self->precision);
  const double gaussian = denoiser_evaluate_path(self, one, u);
  for (int n = 0; n < NODES; n++) {
    f[n + 1] = u[n] * denoiser_path_slope(self, one->vector, n);
    *lane_fallbacks += self->lane_fallbacks[n];
  }
  f[0] = f[1] * exp(-2 * step); /* the slope is linear in u there, so f[0] / 2 is left below it */
  const double sum = denoiser_integrate_path(f, step, error);
  *error += fabs(f[0] / 2);
  return gaussian + sum + f[0] / 2;
}
