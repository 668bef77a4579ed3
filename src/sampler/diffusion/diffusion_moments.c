#include "sampler/diffusion/diffusion_moments.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/real.h"
#include "sampler/mixture/moments.h"

/* The Jacobian of a learned predictor may give a C_t that is not a covariance, so its eigenvalues are kept
 * within these. */
static const double VARIANCE_LEAST = 1e-9, VARIANCE_MOST = 50;

/* The signal-to-noise ratio grows by this factor from one Jacobian to the next. */
static const double GROWTH = 1.25;

/* Samples for the moments of a prior without a closed form, which are then right to 2% of a standard
 * deviation. */
enum { PRIOR_SAMPLES = 2048 };

/* Replaces variances by standard deviations, within the bounds. There are two loops because in one gcc would
 * also take the root of negative numbers, in lanes where it then picks the bound: the result is right, but an
 * invalid operation is flagged. */
SIMD_CLONES
static void denoised_clamp_deviations(size_t n, double *x) {
  for (size_t k = 0; k < n; k++) {
    double least = x[k] > VARIANCE_LEAST ? x[k] : VARIANCE_LEAST;
    x[k] = least < VARIANCE_MOST ? least : VARIANCE_MOST;
  }
  for (size_t k = 0; k < n; k++) x[k] = sqrt(x[k]);
}

Status diffusion_moments_create(Arena *memory, const Prior *prior, bool from_loss, DenoisedMoments *out) {
  SCRATCH_ARENA(scratch);
  const Chain *chain = prior->chain;
  const size_t d = (size_t)prior->d;
  const RngLanes rng = {.key = rng_key(0, RNG_PRIOR_MOMENTS), .draws = 1, .lanes = PRIOR_SAMPLES};
  double *covariance;
  *out = (DenoisedMoments){.chain = chain, .from_loss = from_loss};
  if (from_loss && !chain->loss)
    return status_set(STATUS_INPUT,
                      "covariance: loss needs a prior with a training loss; the chain of prior %s is exact "
                      "(use covariance: jacobian)",
                      prior->ops->name);
  ALLOCATE_ARRAYS(memory, d, &out->mean, &out->deviation);
  ALLOCATE(memory, out->basis, d * d);
  ALLOCATE(&scratch, covariance, d * d);
  TRY(moments_of_prior(prior, rng, out->mean, covariance));
  for (size_t i = 0; i < d; i++) {
    out->mean[i] = (out->mean[i] - chain->shift[i]) / chain->scale[i];
    for (size_t j = 0; j < d; j++) covariance[i * d + j] /= chain->scale[i] * chain->scale[j];
  }
  TRY(linalg_eigen(prior->d, covariance, out->basis, out->deviation));
  denoised_clamp_deviations(d, out->deviation);
  return STATUS_OK;
}

Status diffusion_moments_spread(const Prior *prior, double *mean, double *variance) {
  SCRATCH_ARENA(scratch);
  const Chain *chain = prior->chain;
  const int d = prior->d;
  RngLanes rng = {.key = rng_key(0, RNG_PRIOR_MOMENTS), .draws = 1, .lanes = PRIOR_SAMPLES};
  double *theta;
  if (prior->isotropic) {
    denoiser_isotropic_moments(prior->isotropic, mean, variance);
    return STATUS_OK;
  }
  if (prior->mixture) {
    mixture_spread(prior->mixture, mean, variance);
    for (int i = 0; i < d; i++) variance[i] *= variance[i];
  } else {
    ALLOCATE(&scratch, theta, d * PRIOR_SAMPLES);
    prior->ops->sample(prior, &rng, theta);
    for (int i = 0; i < d; i++) {
      const double *row = theta + (size_t)i * PRIOR_SAMPLES;
      linalg_moments(1, PRIOR_SAMPLES, row, &mean[i], &variance[i]);
    }
  }
  for (int i = 0; i < d; i++) {
    mean[i] = (mean[i] - chain->shift[i]) / chain->scale[i];
    variance[i] /= chain->scale[i] * chain->scale[i];
  }
  return STATUS_OK;
}

/* ---- at a stage */

SIMD_CLONES
void diffusion_moments_covariance(const DenoisedMoments *self, int t, int lanes, const double *s,
                                  double *mean, double *covariance, double *column) {
  const Chain *chain = self->chain;
  const int d = chain->d;
  const double alpha_bar = chain->schedule.alpha_bar[t], factor = (1 - alpha_bar) / alpha_bar,
               gain = sqrt(1 - alpha_bar);
  denoiser_chain_noise_jacobian(chain, t, lanes, s, mean, covariance, column);
  for (int i = 0; i < d; i++) /* factor (I - gain times the Jacobian), symmetrised */
    for (int k = 0; k <= i; k++) {
      double *low = covariance + (i * d + k) * lanes, *high = covariance + (k * d + i) * lanes;
      for (int n = 0; n < lanes; n++)
        low[n] = high[n] = factor * ((i == k ? 1 : 0) - gain * 0.5 * (low[n] + high[n]));
    }
  denoiser_chain_denoise_mean(chain, t, lanes, s, mean);
}

void diffusion_moments_at(const DenoisedMoments *self, int t, int lanes, const double *s, MomentLanes out,
                          double *matrix, double *column) {
  const Chain *chain = self->chain;
  double *mean = out.mean, *basis = out.basis, *deviation = out.deviation;
  const int d = chain->d;
  if (t > chain->schedule.stages) {
    lanes_repeat(d, lanes, self->mean, mean);
    lanes_repeat(d * d, lanes, self->basis, basis);
    lanes_repeat(d, lanes, self->deviation, deviation);
    return;
  }
  if (self->from_loss) {
    chain->noise(chain, t, lanes, s, mean);
    denoiser_chain_denoise_mean(chain, t, lanes, s, mean);
    const double alpha_bar = chain->schedule.alpha_bar[t];
    double number = (1 - alpha_bar) / alpha_bar * chain->loss[t];
    denoised_clamp_deviations(1, &number);
    memset(basis, 0, (size_t)(d * d * lanes) * sizeof *basis);
    for (int i = 0; i < d; i++)
      for (int n = 0; n < lanes; n++) {
        basis[(i * d + i) * lanes + n] = 1;
        deviation[i * lanes + n] = number;
      }
    return;
  }
  diffusion_moments_covariance(self, t, lanes, s, mean, matrix, column);
  linalg_factor_eigen(d, lanes, matrix, basis, deviation);
  denoised_clamp_deviations((size_t)d * (size_t)lanes, deviation);
}

/* Returns alpha_bar / (1 - alpha_bar) of stage t = T + 1 .. 1; 0 for T + 1. */
static double denoised_signal_to_noise(const Schedule *schedule, int t) {
  const double alpha_bar = t > schedule->stages ? 0 : schedule->alpha_bar[t];
  return alpha_bar / (1 - alpha_bar);
}

bool diffusion_moments_due(const DenoisedMoments *self, int known, int t) {
  const Schedule *schedule = &self->chain->schedule;
  return known == 0 || self->from_loss ||
         denoised_signal_to_noise(schedule, t) > GROWTH * denoised_signal_to_noise(schedule, known);
}

/* Updates the deviations: r <- (1 / r^2 + gain)^-1/2. */
SIMD_CLONES
void diffusion_moments_carry(const DenoisedMoments *self, int t, int lanes, const double *s, double *mean,
                             double *deviation) {
  const Chain *chain = self->chain;
  const Schedule *schedule = &chain->schedule;
  const double gain = denoised_signal_to_noise(schedule, t) - denoised_signal_to_noise(schedule, t + 1);
  chain->noise(chain, t, lanes, s, mean);
  denoiser_chain_denoise_mean(chain, t, lanes, s, mean);
  for (RealLanes at = real_begin(chain->d * lanes); at.count > 0; real_next(&at)) {
    Real r, root;
    real_load(at, 1, deviation, &r);
    root = 1 + gain * r * r;
    root = real_inverse_root(root);
    r *= root;
    real_store(at, 1, &r, deviation);
  }
}
