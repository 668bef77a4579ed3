#include "metric/metric_gaussian_kl.h"

#include "core/linalg/linalg.h"
#include "core/simd.h"

#include <math.h>
#include <stddef.h>

void metric_gaussian_kl_log_determinant(int d, int lanes, double *a, int *jitters, double *out) {
  const size_t stride = (size_t)lanes;
  for (size_t n = 0; n < stride; n++) jitters[n] = 0, out[n] = 0;
  linalg_factor_cholesky(d, lanes, a, jitters);
  for (size_t i = 0; i < (size_t)d; i++)
    for (size_t n = 0; n < stride; n++) out[n] += 2 * log(a[(i * (size_t)d + i) * stride + n]);
  for (size_t n = 0; n < stride; n++)
    if (jitters[n]) out[n] = NAN;
}

/* Computes out[n] = tr(P S) + (m - mu)' P (m - mu). */
SIMD_CLONES
static void metric_gaussian_kl_quadratic_terms(const GaussianTarget *target, const double *restrict mean,
                                               const double *restrict covariance, double *restrict out) {
  const size_t d = (size_t)target->d, stride = (size_t)target->lanes;
  const double *restrict mu = target->mean;
  for (size_t n = 0; n < stride; n++) out[n] = 0;
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) {
      const size_t at = (i * d + j) * stride, row = i * stride, column = j * stride;
      const double *restrict precision = target->precision + at, *restrict s = covariance + at;
      for (size_t n = 0; n < stride; n++)
        out[n] += precision[n] * (s[n] + (mean[row + n] - mu[row + n]) * (mean[column + n] - mu[column + n]));
    }
}

/* Computes 2 KL = tr(P S) + (m - mu)' P (m - mu) - d - log det P - log det S. */
void metric_gaussian_kl(const GaussianTarget *target, const double *mean, double *covariance, double *work,
                        int *jitters, double *out) {
  metric_gaussian_kl_quadratic_terms(target, mean, covariance, out);
  metric_gaussian_kl_log_determinant(target->d, target->lanes, covariance, jitters, work);
  for (int n = 0; n < target->lanes; n++)
    out[n] = 0.5 * (out[n] - target->d - target->log_determinant[n] - work[n]);
}
