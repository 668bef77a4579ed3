#include "sampler/guard.h"

#include "core/special.h"
#include "model/prior/prior.h"
#include "sampler/guard_seen.h"
#include "sampler/mixture/mixture_posterior.h"
#include "sampler/mixture/moments.h"
#include "sampler/unknown_noise.h"

#include <string.h>

struct Guard {
  int components; /* of the prior */
  double weight; /* g */
  double *evidence; /* [C, B], of the prior's components and last of the wide Gaussian */
  double *residual; /* [B] */
  GuardSeen *seen; /* where all draws are of one history: it needs nothing of what follows */
  Mixture mixture; /* the prior's, with weights times 1 - g, and last the wide Gaussian */
  MixturePosterior *posterior;
  double *theta; /* [d, B M] */
  int *component; /* [B M] */
  double *mean, *covariance, *share; /* [d, B], [d, d, B], [B]: the wide Gaussian's posterior */
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

Status guard_check(const Config *options, const Likelihood *likelihood, double g) {
  if (!likelihood_is_concave(likelihood))
    return status_set(
        STATUS_INPUT,
        "option guard=%g needs a likelihood that is log-concave in phi' theta; likelihood %s is "
        "not, or not known to be",
        g, likelihood->ops->name);
  if (unknown_noise_asked(options))
    return status_set(STATUS_INPUT, "noise: unknown: the weight of a guard needs a known noise");
  return STATUS_OK;
}

/* Returns the factor between the standard deviations of the prior and of the wide Gaussian. */
static double guard_width(const Prior *prior) {
  return prior->guard.weight > 0 ? prior->guard.width : WIDE_WIDTH;
}

Status guard_mixture(Arena *memory, const Prior *prior, double g, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const Mixture *given = prior_stand_in(prior);
  const size_t d = (size_t)given->d, count = (size_t)given->components;
  Mixture wide;
  TRY(prior_wide_create(&scratch, given, guard_width(prior), &wide));
  TRY(mixture_create(memory, given->d, given->components + 1, out));
  memcpy(out->mean, given->mean, count * d * sizeof *out->mean);
  memcpy(out->covariance, given->covariance, count * d * d * sizeof *out->covariance);
  for (size_t c = 0; c < count; c++) out->weight[c] = (1 - g) * given->weight[c];
  out->weight[count] = g;
  memcpy(out->mean + count * d, wide.mean, d * sizeof *out->mean);
  memcpy(out->covariance + count * d * d, wide.covariance, d * d * sizeof *out->covariance);
  return mixture_prepare(out);
}

/* Returns the factor on the spread of the wide Gaussian's draws. */
static double guard_shrink(const SamplerSetup *setup) {
  const PriorGuard *guard = &setup->prior->guard;
  if (config_is(setup->options, "guard", "auto")) return GUARD_AUTO_SHRINK;
  return guard->weight > 0 ? guard->shrink : 1;
}

/* Creates the arrays of lanes that are not draws of one history. */
static Status guard_create_lanes(Arena *memory, const SamplerSetup *setup, Guard *self) {
  const Prior *prior = setup->prior;
  const size_t d = (size_t)prior->d, runs = (size_t)setup->runs, lanes = runs * (size_t)setup->draws;
  MixtureOptions options = mixture_posterior_options(setup->options);
  options.alone = setup->alone;
  TRY(prior_check_guard(prior));
  TRY(guard_mixture(memory, prior, self->weight, &self->mixture));
  self->components = self->mixture.components - 1;
  TRY(mixture_posterior_create(memory, &self->mixture, setup->likelihood, setup->runs, options,
                               &self->posterior));
  mixture_posterior_scale_component(self->posterior, self->components, guard_shrink(setup));
  ALLOCATE(memory, self->theta, d * lanes);
  ALLOCATE(memory, self->component, lanes);
  ALLOCATE(memory, self->share, runs);
  ALLOCATE(memory, self->ignored, runs);
  ALLOCATE(memory, self->mean, d * runs);
  ALLOCATE(memory, self->covariance, d * d * runs);
  return STATUS_OK;
}

static Status guard_create_seen(Arena *memory, const SamplerSetup *setup, Guard *self) {
  const GuardChoice choice = {
      .weight = self->weight, .width = guard_width(setup->prior), .shrink = guard_shrink(setup)};
  ALLOCATE(memory, self->seen, 1);
  TRY(guard_seen_create(memory, setup, choice, self->seen));
  self->components = self->seen->components;
  return STATUS_OK;
}

Status guard_create(Arena *memory, const SamplerSetup *setup, double g, bool together, Guard **out) {
  const size_t runs = (size_t)setup->runs;
  Guard *self;
  ALLOCATE(memory, self, 1);
  *out = self;
  self->weight = g;
  TRY(together ? guard_create_seen(memory, setup, self) : guard_create_lanes(memory, setup, self));
  ALLOCATE(memory, self->evidence, (size_t)(self->components + 1) * runs);
  ALLOCATE(memory, self->residual, runs);
  return STATUS_OK;
}

void guard_replace(Guard *self, const History *history, RngLanes rng, int draws, double *theta,
                   int64_t *fallbacks) {
  const size_t lanes = rng.lanes;
  rng.key = rng_subkey(rng.key, RNG_GUARD);
  if (self->seen) {
    guard_seen_replace(self->seen, history, rng, draws, theta, fallbacks);
    return;
  }
  mixture_posterior_sample(self->posterior, history, rng, draws, self->theta, self->component, fallbacks);
  for (size_t n = 0; n < lanes; n++) {
    if (self->component[n] != self->components) continue;
    for (size_t i = 0; i < (size_t)self->mixture.d; i++) theta[i * lanes + n] = self->theta[i * lanes + n];
  }
}

void guard_moments(Guard *self, const History *history, double *mean, double *covariance,
                   int64_t *fallbacks) {
  const int wide = self->components, runs = history->runs;
  guard_weight(self, history, self->share, fallbacks);
  mixture_posterior_moments(self->posterior, history, wide, wide + 1, self->mean, self->covariance,
                            self->ignored); /* counted with the weight */
  mixture_posterior_merge_moments(self->mixture.d, runs, self->share, self->mean, self->covariance, runs,
                                  mean, covariance, runs);
}

/* Computes the evidence of all components. */
static void guard_find_evidence(Guard *self, const History *history, int64_t *fallbacks) {
  if (self->seen)
    guard_seen_evidence(self->seen, history, self->evidence, fallbacks);
  else
    mixture_posterior_evidence(self->posterior, history, self->evidence, fallbacks);
}

static double sampler_guard_wide_evidence(const Guard *self, int runs, int b) {
  return self->evidence[(size_t)self->components * (size_t)runs + (size_t)b];
}

void guard_weight(Guard *self, const History *history, double *weight, int64_t *fallbacks) {
  guard_find_evidence(self, history, fallbacks);
  for (int b = 0; b < history->runs; b++) {
    const double learned = mixture_posterior_log_sum(self->components, history->runs, self->evidence + b);
    weight[b] = 1 / (1 + exp(learned - sampler_guard_wide_evidence(self, history->runs, b)));
  }
}

void guard_marginal_likelihood(Guard *self, const History *history, double *value, int64_t *fallbacks) {
  const double learned = log1p(-self->weight);
  const HistoryView view = history_view(history, 1, 0, history->runs);
  guard_find_evidence(self, history, fallbacks);
  history_residual(&view, self->residual);
  for (int b = 0; b < history->runs; b++)
    value[b] = special_log_sum(value[b] + learned,
                               sampler_guard_wide_evidence(self, history->runs, b) - 0.5 * self->residual[b]);
}
