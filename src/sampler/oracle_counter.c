#include "sampler/oracle_counter.h"

/* Counts evaluations, and returns what is asked instead. */
static const Chain *oracle_chain(const Chain *chain, int64_t calls) {
  OracleCounter *counter = (OracleCounter *)chain->state;
  counter->calls += calls;
  return counter->original->chain;
}

static const Denoiser *oracle_denoiser(const Denoiser *denoiser, int64_t calls) {
  OracleCounter *counter = (OracleCounter *)denoiser->state;
  counter->calls += calls;
  return counter->original->denoiser;
}

static void oracle_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const Chain *asked = oracle_chain(chain, lanes);
  asked->noise(asked, t, lanes, s, eps);
}

static void oracle_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                             double *out) {
  const Chain *asked = oracle_chain(chain, lanes);
  asked->noise_vjp(asked, t, lanes, s, v, out);
}

static void oracle_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                  double *jacobian) {
  const Chain *asked = oracle_chain(chain, (int64_t)lanes * (1 + chain->d));
  asked->noise_jacobian(asked, t, lanes, s, eps, jacobian);
}

static void oracle_noise_products(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                  const ChainProducts *products) {
  const Chain *asked = oracle_chain(chain, (int64_t)lanes * (products->count + (eps ? 1 : 0)));
  asked->noise_products(asked, t, lanes, s, eps, products);
}

static void oracle_density(const Chain *chain, int t, int lanes, const double *s, double *log_density,
                           double *score) {
  const Chain *asked = oracle_chain(chain, lanes);
  asked->density(asked, t, lanes, s, log_density, score);
}

static void oracle_denoise(const Chain *chain, int t, int lanes, const double *s, const double *uniform,
                           double *out) {
  const Chain *asked = oracle_chain(chain, lanes);
  asked->denoise(asked, t, lanes, s, uniform, out);
}

static Status oracle_scratch(const Denoiser *denoiser, Arena *memory, void **out) {
  const Denoiser *asked = oracle_denoiser(denoiser, 0);
  return asked->scratch(asked, memory, out);
}

static void oracle_moments(const Denoiser *denoiser, const LaneEvidence *at, double *mean, double *covariance,
                           int *lane_fallbacks, void *scratch) {
  const Denoiser *asked = oracle_denoiser(denoiser, (int64_t)at->lanes * (covariance ? 1 + denoiser->d : 1));
  asked->moments(asked, at, mean, covariance, lane_fallbacks, scratch);
}

static void oracle_moments_from_mixture(const Denoiser *denoiser, const LaneEvidence *at, double *mean,
                                        double *covariance, int *lane_fallbacks, void *scratch) {
  const Denoiser *asked = oracle_denoiser(denoiser, at->lanes);
  asked->moments_from_mixture(asked, at, mean, covariance, lane_fallbacks, scratch);
}

/* Counts D, and a product with C. */
static void oracle_add_draw(const Denoiser *denoiser, const LaneEvidence *at, DenoiserStep step,
                            RngLanes *rng, double *x, void *scratch) {
  const Denoiser *asked = oracle_denoiser(denoiser, 2 * (int64_t)at->lanes);
  asked->add_draw(asked, at, step, rng, x, scratch);
}

void oracle_counter_begin(const Prior *original, OracleCounter *out) {
  *out = (OracleCounter){.prior = *original, .original = original};
  if (original->chain) {
    const Chain *from = original->chain;
    out->chain = *from;
    out->chain.state = out;
    out->chain.noise = oracle_noise;
    out->chain.noise_vjp = oracle_noise_vjp;
    if (from->noise_jacobian) out->chain.noise_jacobian = oracle_noise_jacobian;
    if (from->noise_products) out->chain.noise_products = oracle_noise_products;
    if (from->density) out->chain.density = oracle_density;
    if (from->denoise) out->chain.denoise = oracle_denoise;
    out->prior.chain = &out->chain;
  }
  if (original->denoiser) {
    out->denoiser = *original->denoiser;
    out->denoiser.state = out;
    out->denoiser.scratch = oracle_scratch;
    if (original->denoiser->moments) out->denoiser.moments = oracle_moments;
    if (original->denoiser->add_draw) out->denoiser.add_draw = oracle_add_draw;
    if (original->denoiser->moments_from_mixture)
      out->denoiser.moments_from_mixture = oracle_moments_from_mixture;
    out->prior.denoiser = &out->denoiser;
  }
}
