#include "sampler/guard.h"

#include "core/special.h"
#include "model/prior/prior.h"
#include "sampler/mixture/mixture_posterior.h"
#include "sampler/mixture/moments.h"

#include <string.h>

struct Guard {
  Mixture mixture; /* the prior's, with weights times 1 - g, and last the wide Gaussian */
  MixturePosterior *posterior;
  double *theta; /* [d, B M] */
  int *component; /* [B M] */
  double *evidence; /* [C, B] */
  double *residual; /* [B] */
  double *mean, *covariance, *weight; /* [d, B], [d, d, B], [B]: the wide Gaussian's posterior */
  int64_t *ignored; /* [B] */
};

double guard_asked(const Config *options) {
  return config_is(options, "guard", "auto") ? GUARD_AUTO : config_real(options, "guard");
}

double guard_of(const SamplerSetup *setup) {
  const PriorGuard *guard = &setup->prior->guard;
  if (!setup->options) return 0;
  return guard->tasks > 0 || config_is(setup->options, "guard", "study") ? guard->weight
                                                                         : guard_asked(setup->options);
}

Status guard_mixture(Arena *memory, const Prior *prior, double g, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const Mixture *given = prior_stand_in(prior);
  const double width = prior->guard.weight > 0 ? prior->guard.width : WIDE_WIDTH;
  const size_t d = (size_t)given->d, count = (size_t)given->components;
  Mixture wide;
  TRY(prior_wide_create(&scratch, given, width, &wide));
  TRY(mixture_create(memory, given->d, given->components + 1, out));
  memcpy(out->mean, given->mean, count * d * sizeof *out->mean);
  memcpy(out->covariance, given->covariance, count * d * d * sizeof *out->covariance);
  for (size_t c = 0; c < count; c++) out->weight[c] = (1 - g) * given->weight[c];
  out->weight[count] = g;
  memcpy(out->mean + count * d, wide.mean, d * sizeof *out->mean);
  memcpy(out->covariance + count * d * d, wide.covariance, d * d * sizeof *out->covariance);
  return mixture_prepare(out);
}

Status guard_create(Arena *memory, const SamplerSetup *setup, double g, Guard **out) {
  const Prior *prior = setup->prior;
  const size_t d = (size_t)prior->d, runs = (size_t)setup->runs, lanes = runs * (size_t)setup->draws;
  const bool set = prior->guard.weight > 0, automatic = config_is(setup->options, "guard", "auto");
  const double shrink = automatic ? GUARD_AUTO_SHRINK : set ? prior->guard.shrink : 1;
  MixtureOptions options = mixture_posterior_options(setup->options);
  Guard *self;
  options.alone = setup->alone;
  TRY(prior_check_guard(prior));
  ALLOCATE(memory, self, 1);
  *out = self;
  TRY(guard_mixture(memory, prior, g, &self->mixture));
  TRY(mixture_posterior_create(memory, &self->mixture, setup->likelihood, setup->runs, options,
                               &self->posterior));
  mixture_posterior_scale_component(self->posterior, self->mixture.components - 1, shrink);
  ALLOCATE(memory, self->theta, d * lanes);
  ALLOCATE(memory, self->component, lanes);
  ALLOCATE(memory, self->evidence, (size_t)self->mixture.components * runs);
  ALLOCATE_ARRAYS(memory, runs, &self->residual, &self->weight);
  ALLOCATE(memory, self->ignored, runs);
  ALLOCATE(memory, self->mean, d * runs);
  ALLOCATE(memory, self->covariance, d * d * runs);
  return STATUS_OK;
}

void guard_replace(Guard *self, const History *history, RngLanes rng, int draws, double *theta,
                   int64_t *fallbacks) {
  const int wide = self->mixture.components - 1;
  const size_t lanes = rng.lanes;
  rng.key = rng_subkey(rng.key, RNG_GUARD);
  mixture_posterior_sample(self->posterior, history, rng, draws, self->theta, self->component, fallbacks);
  for (size_t n = 0; n < lanes; n++) {
    if (self->component[n] != wide) continue;
    for (size_t i = 0; i < (size_t)self->mixture.d; i++) theta[i * lanes + n] = self->theta[i * lanes + n];
  }
}

void guard_moments(Guard *self, const History *history, double *mean, double *covariance,
                   int64_t *fallbacks) {
  const int wide = self->mixture.components - 1, runs = history->runs;
  guard_weight(self, history, self->weight, fallbacks);
  mixture_posterior_moments(self->posterior, history, wide, wide + 1, self->mean, self->covariance,
                            self->ignored); /* counted with the weight */
  mixture_posterior_merge_moments(self->mixture.d, runs, self->weight, self->mean, self->covariance, runs,
                                  mean, covariance, runs);
}

static double sampler_guard_wide_evidence(const Guard *self, int runs, int b) {
  return self->evidence[(size_t)(self->mixture.components - 1) * (size_t)runs + (size_t)b];
}

void guard_weight(Guard *self, const History *history, double *weight, int64_t *fallbacks) {
  mixture_posterior_evidence(self->posterior, history, self->evidence, fallbacks);
  for (int b = 0; b < history->runs; b++) {
    const double learned =
        mixture_posterior_log_sum(self->mixture.components - 1, history->runs, self->evidence + b);
    weight[b] = 1 / (1 + exp(learned - sampler_guard_wide_evidence(self, history->runs, b)));
  }
}

void guard_marginal_likelihood(Guard *self, const History *history, double *value, int64_t *fallbacks) {
  const double learned = log1p(-self->mixture.weight[self->mixture.components - 1]);
  const HistoryView view = history_view(history, 1, 0, history->runs);
  mixture_posterior_evidence(self->posterior, history, self->evidence, fallbacks);
  history_residual(&view, self->residual);
  for (int b = 0; b < history->runs; b++)
    value[b] = special_log_sum(value[b] + learned,
                               sampler_guard_wide_evidence(self, history->runs, b) - 0.5 * self->residual[b]);
}
