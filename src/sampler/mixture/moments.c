#include "sampler/mixture/moments.h"

#include "core/linalg/linalg.h"
#include "core/special.h"

#include <stddef.h>
#include <string.h>

Status moments_of_prior(const Prior *prior, RngLanes rng, double *mean, double *covariance) {
  SCRATCH_ARENA(scratch);
  const int draws = (int)rng.lanes;
  double *theta;
  if (prior->mixture) {
    mixture_moments(prior->mixture, mean, covariance);
    return STATUS_OK;
  }
  if (prior->isotropic) {
    const Chain *chain = prior->chain;
    const size_t d = (size_t)prior->d;
    double *variance;
    ALLOCATE(&scratch, variance, d);
    memset(covariance, 0, d * d * sizeof *covariance);
    denoiser_isotropic_moments(prior->isotropic, mean, variance);
    for (size_t i = 0; i < d; i++) {
      mean[i] = chain->shift[i] + chain->scale[i] * mean[i];
      covariance[i * (d + 1)] = chain->scale[i] * chain->scale[i] * variance[i];
    }
    return STATUS_OK;
  }
  ALLOCATE(&scratch, theta, (size_t)prior->d * (size_t)draws);
  prior->ops->sample(prior, &rng, theta);
  linalg_moments(prior->d, draws, theta, mean, covariance);
  return STATUS_OK;
}

/* Computes covariance <- (1 - s) covariance + s own + s (1 - s) e e', e = own mean - mean; mean <- mean + s
 * e. */
SIMD_CLONES
void mixture_posterior_merge_moments(int d, int lanes, const double *restrict share,
                                     const double *restrict own_mean, const double *restrict own_covariance,
                                     int own_stride, double *restrict mean, double *restrict covariance,
                                     int stride) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      const double *m_i = own_mean + (ptrdiff_t)i * own_stride, *m_j = own_mean + (ptrdiff_t)j * own_stride;
      const double *from = own_covariance + (ptrdiff_t)(i * d + j) * own_stride;
      const double *mean_i = mean + (ptrdiff_t)i * stride, *mean_j = mean + (ptrdiff_t)j * stride;
      double *to = covariance + (ptrdiff_t)(i * d + j) * stride;
      for (int n = 0; n < lanes; n++) {
        const double s = share[n], apart = (1 - s) * (m_i[n] - mean_i[n]) * (m_j[n] - mean_j[n]);
        to[n] = s < 1 ? special_two_products(1 - s, to[n], s, from[n] + apart) : from[n];
      }
      if (j < i) memcpy(covariance + (ptrdiff_t)(j * d + i) * stride, to, (size_t)lanes * sizeof *to);
    }
  for (int i = 0; i < d; i++) {
    const double *from = own_mean + (ptrdiff_t)i * own_stride;
    double *to = mean + (ptrdiff_t)i * stride;
    for (int n = 0; n < lanes; n++) to[n] = share[n] < 1 ? to[n] + share[n] * (from[n] - to[n]) : from[n];
  }
}
