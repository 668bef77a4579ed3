/* The sampler that was chosen together with its prior on held-out tasks (`thompson train --family auto`,
 * prior.family: auto), with its default options. What it can do depends on the prior, so it is not in the
 * registry, but is a policy of studies. */
#include "sampler/methods.h"

#include <stdio.h>
#include <string.h>

#define NEEDS_CHOICE                                                                                         \
  "sampler auto needs a prior from `thompson train --family auto` or prior.family: auto; no sampler was "    \
  "chosen with this one"

Status sampler_take_auto(const Prior *prior, const char **name) {
  if (strcmp(*name, "auto") != 0) return STATUS_OK;
  if (!prior->auto_sampler) return status_set(STATUS_INPUT, NEEDS_CHOICE);
  *name = prior->auto_sampler;
  return STATUS_OK;
}

static bool auto_fits(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence) {
  const SamplerOps *chosen = prior->auto_sampler ? sampler_find(prior->auto_sampler) : NULL;
  if (chosen && !(prior->mixture && !chosen->moments))
    return !sampler_misfit(chosen, prior, likelihood, size, sentence);
  snprintf(sentence, size, NEEDS_CHOICE);
  return false;
}

/* Creates the chosen sampler; temper and guard are applied to auto itself. */
static Status auto_create(Sampler *self, const SamplerSetup *setup) {
  static const char *const unguarded[] = {"guard=0"};
  const SamplerOps *method = sampler_find(setup->prior->auto_sampler);
  SamplerSetup own = *setup;
  Config *options;
  Sampler *chosen;
  ALLOCATE(self->memory, chosen, 1);
  TRY(config_options(self->memory, "defaults", sampler_keys(method), 1, unguarded, &options));
  own.options = options;
  own.for_themselves = false;
  TRY(sampler_create(self->memory, method, &own, chosen));
  chosen->notes = self->notes;
  self->state = chosen;
  return STATUS_OK;
}

static void auto_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Sampler *chosen = self->state;
  sampler_catch_up(chosen, history, fallbacks);
  chosen->ops->sample(chosen, history, rng, draws, theta, fallbacks);
}

static void auto_moments(Sampler *self, const History *history, double *mean, double *covariance,
                         int64_t *fallbacks) {
  Sampler *chosen = self->state;
  sampler_catch_up(chosen, history, fallbacks);
  chosen->ops->moments(chosen, history, mean, covariance, fallbacks);
}

const SamplerOps sampler_auto = {
    .name = "auto",
    .summary = "the sampler chosen together with its prior on held-out tasks (prior.family: auto)",
    .reference = "Gneiting and Raftery 2007 (energy score)",
    .default_prior = "auto",
    .fits = auto_fits,
    .create = auto_create,
    .sample = auto_sample,
    .moments = auto_moments,
    .moments_need = NEEDS_MIXTURE,
};
