/* Uniform on the vertices of the hypercube {-1, 1}^d, with its exact chain: under a quadratic tilt the
 * posterior is an Ising model (Bruna and Han 2024, Tilted transport).
 *
 * The coordinates are independent, so with a = sqrt(alpha_bar_t) s / (1 - alpha_bar_t) the clean sample has
 * the mean tanh a given s_t = s and is 1 with probability 1 / (1 + exp(-2 a)); log p_t(s) = log cosh a - s^2
 * / (2 (1 - alpha_bar_t)) + constant. The clean sample itself has no density. Nothing is fitted or stored,
 * and the chain is not standardised: the coordinates have mean 0 and variance 1 already. */
#include "core/special.h"
#include "model/prior/prior.h"

#include <string.h>

/* Returns e = exp(-2 |a|) <= 1, with which |tanh a| = (1 - e) / (1 + e). */
static inline double prior_ising_exponential(double a) {
  double size = fabs(a);
  return special_exp_inside(size < 350 ? -2 * size : -700);
}
static inline double prior_ising_mean_spin(double a) {
  double e = prior_ising_exponential(a);
  return copysign((1 - e) / (1 + e), a);
}

/* Computes eps = (s - sqrt(abar) tanh a) / sqrt(1 - abar). */
SIMD_CLONES
static void ising_noise(const Chain *chain, int t, int lanes, const double *restrict s,
                        double *restrict eps) {
  const size_t count = (size_t)chain->d * (size_t)lanes;
  const double alpha_bar = chain->schedule.alpha_bar[t], root = sqrt(alpha_bar),
               gain = root / (1 - alpha_bar), over = 1 / sqrt(1 - alpha_bar);
  for (size_t k = 0; k < count; k++) eps[k] = over * (s[k] - root * prior_ising_mean_spin(gain * s[k]));
}

/* Computes out = v d eps / d s = v (1 - abar / (1 - abar) (1 - tanh^2 a)) / sqrt(1 - abar). */
SIMD_CLONES
static void prior_ising_slope_of(size_t count, double alpha_bar, const double *restrict s,
                                 const double *restrict v, double *restrict out) {
  const double gain = sqrt(alpha_bar) / (1 - alpha_bar), over = 1 / sqrt(1 - alpha_bar),
               odds = alpha_bar / (1 - alpha_bar);
  for (size_t k = 0; k < count; k++) {
    double e = prior_ising_exponential(gain * s[k]), variance = 4 * e / ((1 + e) * (1 + e));
    out[k] = v[k] * over * (1 - odds * variance);
  }
}

static void ising_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                            double *out) {
  prior_ising_slope_of((size_t)chain->d * (size_t)lanes, chain->schedule.alpha_bar[t], s, v, out);
}

/* Computes the Jacobian, which is diagonal. */
static void ising_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                 double *jacobian) {
  const size_t d = (size_t)chain->d, row = (size_t)lanes;
  const double alpha_bar = chain->schedule.alpha_bar[t];
  memset(jacobian, 0, d * d * row * sizeof *jacobian);
  for (size_t n = 0; n < row; n++) eps[n] = 1;
  for (size_t i = 0; i < d; i++)
    prior_ising_slope_of(row, alpha_bar, s + i * row, eps, jacobian + (i * d + i) * row);
  ising_noise(chain, t, lanes, s, eps);
}

SIMD_CLONES
static void ising_density(const Chain *chain, int t, int lanes, const double *restrict s,
                          double *restrict log_density, double *restrict score) {
  const double alpha_bar = chain->schedule.alpha_bar[t], root = sqrt(alpha_bar),
               gain = root / (1 - alpha_bar), over = 1 / (1 - alpha_bar);
  memset(log_density, 0, (size_t)lanes * sizeof *log_density);
  for (int i = 0; i < chain->d; i++, s += lanes, score += lanes)
    for (int n = 0; n < lanes; n++) {
      const double a = gain * s[n], e = prior_ising_exponential(a);
      log_density[n] += fabs(a) + special_log1p(e) - 0.5 * over * s[n] * s[n];
      score[n] = over * (root * copysign((1 - e) / (1 + e), a) - s[n]);
    }
}

static void ising_denoise(const Chain *chain, int t, int lanes, const double *s, const double *uniform,
                          double *out) {
  const double alpha_bar = chain->schedule.alpha_bar[t], gain = sqrt(alpha_bar) / (1 - alpha_bar);
  for (int k = 0; k < chain->d * lanes; k++)
    out[k] = 2 * uniform[k] - 1 < prior_ising_mean_spin(gain * s[k]) ? 1 : -1;
}

static void ising_sample(const Prior *prior, RngLanes *rng, double *theta) {
  rng_lanes_uniform(rng, prior->d, theta);
  for (size_t k = 0; k < (size_t)prior->d * rng->lanes; k++) theta[k] = theta[k] < 0.5 ? -1 : 1;
}

typedef struct {
  Chain chain;
  Denoiser denoiser;
} Ising;

static const PriorOps ising_ops = {.name = "ising", .sample = ising_sample};

Status prior_ising(Arena *memory, int d, const PriorFit *chain_settings, Prior *out) {
  Ising *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &ising_ops, .d = d, .hypercube = true, .state = self};
  Chain *chain = &self->chain;
  TRY(denoiser_chain_create(memory, chain, d, &chain_settings->schedule, chain_settings->last_stage));
  chain->noise = ising_noise;
  chain->noise_vjp = ising_noise_vjp;
  chain->noise_jacobian = ising_noise_jacobian;
  chain->density = ising_density;
  chain->density_from = 1;
  chain->denoise = ising_denoise;
  out->chain = chain;
  if (d > DENOISER_MOST_VERTICES) return STATUS_OK;
  TRY(denoiser_hypercube_create(memory, d, &self->denoiser));
  out->denoiser = &self->denoiser;
  return STATUS_OK;
}
