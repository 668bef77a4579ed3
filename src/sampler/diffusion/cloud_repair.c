/* What a cloud does where C, from the Jacobian of a network, is no covariance: between orthogonal directions
 * V it is replaced by the closest matrix that is one, whose eigenvalues are those of the symmetric part of
 * V C V', as far as they are positive. Otherwise a precise observation of a direction with a negative
 * variance would send particles to infinity. */
#include "sampler/diffusion/cloud_internal.h"

#include "core/linalg/linalg.h"

#include <cblas.h>
#include <string.h>

Status cloud_repair_create(Arena *memory, int most, CloudRepair *out) {
  const size_t q = (size_t)most;
  ALLOCATE_ARRAYS(memory, q * q, &out->square, &out->axes);
  ALLOCATE_ARRAYS(memory, q, &out->length, &out->spectrum);
  return STATUS_OK;
}

bool cloud_is_sound(const Cloud *self, int n) {
  int jitters = 0;
  for (int p = 0; p < n; p++) jitters += self->jitters[p];
  return jitters == 0;
}

/* Computes what has to be added to the symmetric part of V C V' in lane p of n: square[count, count]. */
static void repair_find_change(Cloud *self, int n, int p, int count, const double *directions) {
  const CloudRepair *repair = &self->repair;
  const int d = self->d;
  double *square = repair->square, *axes = repair->axes;
  for (int k = 0; k < count; k++)
    for (int j = 0; j < count; j++)
      axes[k * count + j] = cblas_ddot(d, directions + j * d, 1, self->along + k * d * n + p, n) /
                            (repair->length[j] * repair->length[k]);
  for (int k = 0; k < count; k++)
    for (int j = 0; j < count; j++) square[k * count + j] = 0.5 * (axes[k * count + j] + axes[j * count + k]);
  linalg_factor_eigen(count, 1, square, axes, repair->spectrum);
  for (int k = 0; k < count; k++) repair->spectrum[k] = fmax(-repair->spectrum[k], 0);
  linalg_factor_spectral(count, 1, axes, repair->spectrum, square);
}

void cloud_repair(Cloud *self, int n, int count, const double *directions) {
  const CloudRepair *repair = &self->repair;
  const int d = self->d;
  for (int k = 0; k < count; k++) repair->length[k] = cblas_dnrm2(d, directions + k * d, 1);
  for (int p = 0; p < n; p++) {
    if (self->jitters[p] == 0) continue;
    ++*self->fallbacks;
    repair_find_change(self, n, p, count, directions);
    for (int k = 0; k < count; k++)
      for (int j = 0; j < count; j++)
        cblas_daxpy(d, repair->square[k * count + j] * repair->length[k] / repair->length[j],
                    directions + j * d, 1, self->along + k * d * n + p, n);
  }
}
