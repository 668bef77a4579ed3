#include "sampler/tilted/tilt_end.h"

#include "core/linalg/linalg.h"

#include <math.h>
#include <string.h>

/* An eigenvalue this close to the largest, relatively, is equal to it but for rounding. */
static const double SAME = 1e-10;

Status tilt_end_create(Arena *memory, int d, TiltEnd *out) {
  const size_t vector = (size_t)d, matrix = vector * vector, points = vector * TILT_END_POINTS;
  *out = (TiltEnd){.d = d};
  ALLOCATE_ARRAYS(memory, matrix, &out->basis, &out->hessian, &out->vectors);
  ALLOCATE_ARRAYS(memory, vector, &out->q, &out->b, &out->eigenvalues);
  ALLOCATE(memory, out->start, 2 * vector);
  ALLOCATE_ARRAYS(memory, points, &out->x, &out->eps, &out->scratch);
  ALLOCATE(memory, out->jacobian, vector * points);
  return STATUS_OK;
}

Status tilt_end_set(TiltEnd *self, const double *precision, const double *vector) {
  const int d = self->d;
  TRY(linalg_eigen(d, precision, self->basis, self->q));
  self->free = 0;
  for (int k = 0; k < d; k++) {
    self->q[k] = fmax(self->q[k], 0); /* rounding */
    self->b[k] = 0;
    for (int i = 0; i < d; i++) self->b[k] += self->basis[i * d + k] * vector[i];
  }
  self->smallest = self->q[0];
  self->largest = self->q[d - 1];
  while (self->free < d && self->q[self->free] < (1 - SAME) * self->largest) self->free++;
  return STATUS_OK;
}

/* Computes the smallest eigenvalues, of U' (d eps / d s) U / sqrt(1 - abar) + diag(q_T*), where U are the
 * free directions. */
Status tilt_end_curvature(TiltEnd *self, const Chain *chain, int lanes, const double *x, double *out) {
  const int d = self->d, r = self->free;
  const double l = self->largest, over = sqrt(1 + l), *u = self->basis;
  double *half = self->vectors; /* [d, r] */
  ASSERT(lanes <= TILT_END_POINTS && chain->schedule.stages == 1);
  for (int n = 0; n < lanes; n++) out[n] = INFINITY;
  if (r == 0) return STATUS_OK;
  denoiser_chain_noise_jacobian(chain, 1, lanes, x, self->eps, self->jacobian, self->scratch);
  for (int n = 0; n < lanes; n++) {
    for (int i = 0; i < d; i++)
      for (int b = 0; b < r; b++) {
        double sum = 0;
        for (int j = 0; j < d; j++) sum += self->jacobian[(i * d + j) * lanes + n] * u[j * d + b];
        half[i * r + b] = sum;
      }
    for (int a = 0; a < r; a++)
      for (int b = 0; b < r; b++) {
        double sum = 0;
        for (int i = 0; i < d; i++) sum += u[i * d + a] * half[i * r + b];
        self->hessian[a * r + b] = over * sum + (a == b ? (1 + l) * self->q[a] / (l - self->q[a]) : 0);
      }
    TRY(linalg_eigen(r, self->hessian, self->vectors, self->eigenvalues));
    out[n] = self->eigenvalues[0];
  }
  return STATUS_OK;
}

void tilt_end_draw(TiltEnd *self, int n, const double *theta, Rng *rng, int stride, double *out) {
  const int d = self->d;
  const double l = self->largest, root = sqrt(l / (1 + l));
  double *normal = self->eigenvalues;
  rng_normal(rng, d, normal);
  for (int i = 0; i < d; i++) out[i * stride] = 0;
  for (int k = 0; k < d; k++) {
    const double left = k < self->free ? 1 - self->q[k] / l : 0;
    double y = 0;
    for (int i = 0; i < d; i++) y += self->basis[i * d + k] * theta[(size_t)i * (size_t)n];
    y = left * y + self->b[k] / l + sqrt(left / l) * normal[k];
    for (int i = 0; i < d; i++) out[i * stride] += root * self->basis[i * d + k] * y;
  }
}

Status tilt_end_least(TiltEnd *self, const Chain *chain, int pairs, int n, const double *theta, Rng rng,
                      double *out) {
  double values[TILT_END_POINTS];
  *out = INFINITY;
  for (int pair = 0; pair < pairs && 2 * pair + 1 < n; pair++) {
    for (int end = 0; end < 2; end++)
      tilt_end_draw(self, n, theta + 2 * pair + end, &rng, 2, self->start + end);
    for (int i = 0; i < self->d; i++)
      for (int p = 0; p < TILT_END_POINTS; p++) {
        const double share = (double)p / (TILT_END_POINTS - 1);
        self->x[i * TILT_END_POINTS + p] = (1 - share) * self->start[2 * i] + share * self->start[2 * i + 1];
      }
    TRY(tilt_end_curvature(self, chain, TILT_END_POINTS, self->x, values));
    for (int p = 0; p < TILT_END_POINTS; p++) *out = fmin(*out, values[p]);
  }
  return STATUS_OK;
}

double tilt_end_bound(const TiltEnd *self, double susceptibility) {
  const double l = self->largest;
  if (self->free == 0) return INFINITY;
  return (1 + l) * (l / (l - self->smallest) - l * susceptibility);
}

double tilt_end_susceptibility(const TiltEnd *self, const Mixture *prior, double share) {
  const int d = prior->d;
  const double delta = prior->covariance[0], shrink = 1 / (1 + self->largest * delta);
  double diameter_2 = 0;
  for (int k = 0; k < prior->components * d * d; k++) /* whether every covariance is delta I */
    if (fabs(prior->covariance[k] - (k % (d * d) % (d + 1) == 0 ? delta : 0)) > 1e-12 * delta) return NAN;
  for (int a = 0; a < prior->components; a++)
    for (int b = 0; b < a; b++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += pow(prior->mean[a * d + i] - prior->mean[b * d + i], 2);
      diameter_2 = fmax(diameter_2, square);
    }
  return delta * shrink + share * diameter_2 * shrink * shrink;
}
