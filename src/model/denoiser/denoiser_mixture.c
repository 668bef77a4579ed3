/* The denoiser of a Gaussian mixture, in closed form: with precision P_c = S_c^-1 + M and h_c = S_c^-1 m_c +
 * b component c becomes N(P_c^-1 h_c, P_c^-1), with the weight
 *
 *     r_c ~ w_c |S_c|^-1/2 |P_c|^-1/2 exp(-m_c' S_c^-1 m_c / 2 + h_c' P_c^-1 h_c / 2),
 *
 * and D and C are the mean and covariance of the new mixture. They are summed by updates of weighted moments
 * (West 1979) relative to the largest weight so far, so that nothing cancels or overflows. */
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser.h"
#include "model/mixture/mixture_evidence.h"

#include <string.h>

typedef struct {
  Mixture mixture; /* of z */
} Closed;

/* One component for n lanes, and the sums so far. */
typedef struct {
  double *constant; /* [C]: log weight of a component without its P_c and h_c */
  double *precision; /* [d, d, n]: M */
  double *factor; /* [d, d, n]: P_c, then its Cholesky factor */
  double *mean; /* [d, n]: h_c, then P_c^-1 h_c, then its difference from the mean so far */
  double *inverse; /* [d, d, n]: P_c^-1 */
  double *log_weight, *top, *total, *old_share, *share; /* [n]: weights relative to exp(top) */
  double *part, *spread; /* [n]: share / total, and (total - share) of that */
} Component;

/* Adds the component's weight to the running total. Pointers are copied out of the structure, which would
 * keep the compiler from vectorising. */
SIMD_CLONES
static void join_component(bool first, int lanes, const Component *at) {
  double *restrict total = at->total;
  double *restrict share = at->share;
  double *restrict part = at->part;
  double *restrict spread = at->spread;
  lanes_join(first, lanes, at->log_weight, at->top, total, at->old_share, share);
  for (int n = 0; n < lanes; n++) {
    part[n] = share[n] / total[n];
    spread[n] = (total[n] - share[n]) * part[n];
  }
}

/* Adds the component to the mean; `away`, the component's mean, becomes its difference from the mean
 * before. */
SIMD_CLONES
static void denoiser_add_mean(int count, int lanes, const double *restrict part, double *restrict away,
                              double *restrict mean) {
  for (int i = 0; i < count; i += lanes)
    for (int n = 0; n < lanes; n++) {
      away[i + n] -= mean[i + n];
      mean[i + n] += part[n] * away[i + n];
    }
}

/* Adds the component to the sum for the covariance, lower triangle. */
SIMD_CLONES
static void denoiser_add_covariance(int d, int lanes, const Component *at, double *restrict covariance) {
  const double *restrict old_share = at->old_share;
  const double *restrict share = at->share;
  const double *restrict spread = at->spread;
  for (int i = 0; i < d; i++) {
    const double *restrict away = at->mean + i * lanes;
    for (int j = 0; j <= i; j++) {
      const double *restrict other = at->mean + j * lanes;
      const double *restrict inverse = at->inverse + (i * d + j) * lanes;
      double *restrict c = covariance + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++)
        c[n] =
            special_two_products(old_share[n], c[n], share[n], inverse[n]) + spread[n] * away[n] * other[n];
    }
  }
}

/* Divides the covariance by the total, and fills both triangles. */
SIMD_CLONES
static void denoiser_finish_covariance(int d, int lanes, const double *restrict total,
                                       double *restrict covariance) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      double *restrict low = covariance + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++) low[n] /= total[n];
      if (j < i) memcpy(covariance + (j * d + i) * lanes, low, (size_t)lanes * sizeof *low);
    }
}

static Status mixture_component_create(const Denoiser *denoiser, Arena *memory, void **out) {
  const Closed *self = denoiser->state;
  const size_t vector = (size_t)denoiser->d * DENOISER_LANES, matrix = (size_t)denoiser->d * vector;
  Component *at;
  ALLOCATE(memory, at, 1);
  ALLOCATE(memory, at->constant, self->mixture.components);
  mixture_evidence_constants(&self->mixture, at->constant);
  ALLOCATE_ARRAYS(memory, matrix, &at->precision, &at->factor, &at->inverse);
  ALLOCATE(memory, at->mean, vector);
  ALLOCATE_ARRAYS(memory, DENOISER_LANES, &at->log_weight, &at->top, &at->total, &at->old_share, &at->share,
                  &at->part, &at->spread);
  *out = at;
  return STATUS_OK;
}

static void mixture_moments_at(const Denoiser *denoiser, const LaneEvidence *evidence, double *mean,
                               double *covariance, int *lane_fallbacks, void *scratch) {
  const Closed *self = denoiser->state;
  const Mixture *mixture = &self->mixture;
  const Component *at = scratch;
  const int d = denoiser->d, lanes = evidence->lanes;
  const size_t values = (size_t)d * (size_t)lanes;
  linalg_factor_spectral(d, lanes, evidence->basis, evidence->eigenvalue, at->precision);
  memset(mean, 0, values * sizeof *mean);
  if (covariance) memset(covariance, 0, values * (size_t)d * sizeof *covariance);
  for (int c = 0; c < mixture->components; c++) {
    mixture_evidence_add(mixture, c, lanes, at->precision, evidence->vector, at->factor, at->mean);
    linalg_factor_cholesky(d, lanes, at->factor, lane_fallbacks);
    linalg_factor_forward(d, lanes, at->factor, at->mean);
    mixture_evidence_weigh(d, lanes, at->constant[c], at->factor, at->mean, at->log_weight);
    linalg_factor_backward(d, lanes, at->factor, at->mean);
    join_component(c == 0, lanes, at);
    denoiser_add_mean(d * lanes, lanes, at->part, at->mean, mean);
    if (!covariance) continue;
    linalg_factor_inverse(d, lanes, at->factor, at->inverse);
    denoiser_add_covariance(d, lanes, at, covariance);
  }
  if (covariance) denoiser_finish_covariance(d, lanes, at->total, covariance);
}

Status denoiser_mixture_create(Arena *memory, const Mixture *mixture, bool standardised, Denoiser *out) {
  Closed *self;
  TRY(denoiser_standard(memory, mixture->d, out));
  ALLOCATE(memory, self, 1);
  out->state = self;
  out->scratch = mixture_component_create;
  out->moments = mixture_moments_at;
  TRY(mixture_create(memory, mixture->d, mixture->components, &self->mixture));
  if (standardised) mixture_spread(mixture, out->shift, out->scale);
  mixture_copy_parameters(mixture, &self->mixture);
  TRY(mixture_standardise(&self->mixture, out->shift, out->scale));
  return STATUS_OK;
}
