/* Posterior sampling with a Gaussian mixture prior: TS, TunedTS and MixTS of the DiffTS paper (Section 6.1)
 * are this one method (mixture_posterior.h) with three priors. */
#include "sampler/methods.h"
#include "sampler/mixture/mixture_posterior.h"

static Status exact_mixture_create(Sampler *self, const SamplerSetup *setup) {
  MixturePosterior *state;
  MixtureOptions options = mixture_posterior_options(setup->options);
  options.alone = setup->alone;
  TRY(mixture_posterior_check(setup->options));
  TRY(mixture_posterior_create(self->memory, setup->prior->mixture, setup->likelihood, setup->runs, options,
                               &state));
  self->state = state;
  return STATUS_OK;
}

static void exact_mixture_sample(Sampler *self, const History *history, RngLanes rng, int draws,
                                 double *theta, int64_t *fallbacks) {
  mixture_posterior_sample(self->state, history, rng, draws, theta, NULL, fallbacks);
}

static void exact_mixture_moments(Sampler *self, const History *history, double *mean, double *covariance,
                                  int64_t *fallbacks) {
  mixture_posterior_moments(self->state, history, 0, self->setup.prior->mixture->components, mean, covariance,
                            fallbacks);
}

static double exact_mixture_cost(const SamplerWork *work) { return cost_mixture(work, work->components); }

static const ConfigKey KEYS[] = {MIXTURE_POSTERIOR_KEYS, {.name = NULL}};

#define POSTERIOR_OPS                                                                                        \
  .exact = true, .square_root = true, .keys = KEYS, .create = exact_mixture_create,                          \
  .sample = exact_mixture_sample, .moments = exact_mixture_moments, .cost = exact_mixture_cost

const SamplerOps sampler_ts = {
    .name = "ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior, N(0, I) by default",
    .reference = "Chapelle and Li (2011); DiffTS paper, equation 3",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN,
    POSTERIOR_OPS,
};

const SamplerOps sampler_tuned_ts = {
    .name = "tuned_ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior fitted to samples",
    .reference = "DiffTS paper, Section 6.1",
    .default_prior = "gaussian",
    .needs = NEEDS_GAUSSIAN,
    POSTERIOR_OPS,
};

const SamplerOps sampler_mixts = {
    .name = "mixts",
    .summary = "Thompson sampling from the posterior of a Gaussian mixture prior",
    .reference = "Hong et al. (2022); DiffTS paper, Section 6.1",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE,
    POSTERIOR_OPS,
};
