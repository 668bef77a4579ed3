/* What a cloud does where C, from the Jacobian of a network, is no covariance between the directions B that
 * matter: B C B' is replaced by the closest matrix that is one, whose eigenvalues are those of its symmetric
 * part, as far as they are positive. Otherwise a precise observation of a direction with a negative variance
 * would send particles to infinity. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg_factor.h"

/* A repair counts if a negative eigenvalue is beyond this share of the largest. */
static const double SLIGHT = 0.1;

Status cloud_repair_create(Arena *memory, int most, CloudRepair *out) {
  const size_t q = (size_t)most;
  ALLOCATE_ARRAYS(memory, q * q, &out->square, &out->axes);
  ALLOCATE(memory, out->spectrum, q);
  return STATUS_OK;
}

bool cloud_is_sound(const Cloud *self, int n) {
  int jitters = 0;
  for (int p = 0; p < n; p++) jitters += self->jitters[p];
  return jitters == 0;
}

/* Repairs lane p of square[count, count, n]; returns whether it was far from a covariance. */
static bool cloud_repair_lane(const CloudRepair *self, int n, int p, int count, const double *length,
                              double *square) {
  double least = 0, most = 0;
  for (int k = 0; k < count; k++)
    for (int j = 0; j < count; j++)
      self->square[k * count + j] =
          0.5 * (square[(k * count + j) * n + p] + square[(j * count + k) * n + p]) / (length[k] * length[j]);
  linalg_factor_eigen(count, 1, self->square, self->axes, self->spectrum);
  for (int k = 0; k < count; k++) {
    least = fmin(least, self->spectrum[k]);
    most = fmax(most, self->spectrum[k]);
    self->spectrum[k] = fmax(self->spectrum[k], 0);
  }
  linalg_factor_spectral(count, 1, self->axes, self->spectrum, self->square);
  for (int k = 0; k < count; k++)
    for (int j = 0; j < count; j++)
      square[(k * count + j) * n + p] = self->square[k * count + j] * length[k] * length[j];
  return !(-least <= SLIGHT * most);
}

void cloud_repair(Cloud *self, int n, int count, const double *length, double *square) {
  for (int p = 0; p < n; p++)
    if (self->jitters[p] > 0)
      *self->fallbacks += cloud_repair_lane(&self->repair, n, p, count, length, square);
}
