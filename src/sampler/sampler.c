/* The registry of posterior samplers, and what every one of them is checked for before and after it runs. */
#include "sampler/sampler.h"

#include "sampler/methods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const SamplerOps *const METHODS[] = {
#define SAMPLER_ENTRY(name) &sampler_##name,
    SAMPLER_LIST(SAMPLER_ENTRY)
#undef SAMPLER_ENTRY
        NULL};

const SamplerOps *sampler_method(int index) {
  int count = (int)(sizeof METHODS / sizeof *METHODS) - 1;
  return index >= 0 && index < count ? METHODS[index] : NULL;
}

const SamplerOps *sampler_find(const char *name) {
  for (int i = 0; METHODS[i]; i++)
    if (strcmp(METHODS[i]->name, name) == 0) return METHODS[i];
  return NULL;
}

const char *sampler_name(int index) {
  const SamplerOps *method = sampler_method(index);
  return method ? method->name : NULL;
}

bool sampler_misfit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood, size_t size,
                    char *sentence) {
  const char *name = method->name, *prior_family = prior->ops->name;
  const unsigned needs = method->needs;
  const Mixture *mixture = prior->mixture;
  if ((needs & NEEDS_CONJUGATE) && !likelihood->ops->conjugate)
    snprintf(sentence, size,
             "sampler %s needs a likelihood that is quadratic in phi' theta (gaussian); likelihood %s is not",
             name, likelihood->ops->name);
  else if ((needs & (NEEDS_MIXTURE | NEEDS_GAUSSIAN)) && !mixture)
    snprintf(sentence, size, "sampler %s needs a %s prior in closed form; prior %s is not one", name,
             needs & NEEDS_GAUSSIAN ? "Gaussian" : "Gaussian mixture", prior_family);
  else if ((needs & NEEDS_GAUSSIAN) && mixture->components != 1)
    snprintf(sentence, size, "sampler %s needs a Gaussian prior; prior %s has %d components", name,
             prior_family, mixture->components);
  else if ((needs & NEEDS_CHAIN) && !prior->chain)
    snprintf(sentence, size, "sampler %s needs a prior with a reverse chain; prior %s has none", name,
             prior_family);
  else
    return false;
  return true;
}

Status sampler_create(const SamplerOps *method, const SamplerSetup *setup, Sampler *out) {
  char sentence[256];
  *out = (Sampler){.ops = method, .setup = *setup, .d = setup->prior->d};
  ASSERT(setup->runs >= 1 && setup->draws >= 1);
  ASSERT(setup->options || !method->keys);
  if (sampler_misfit(method, setup->prior, setup->likelihood, sizeof sentence, sentence))
    return status_set(STATUS_INPUT, "%s", sentence);
  Status status = method->create(out, setup);
  if (status != STATUS_OK) sampler_destroy(out);
  return status;
}

void sampler_destroy(Sampler *sampler) {
  if (sampler->state) sampler->ops->destroy(sampler);
  *sampler = (Sampler){0};
}

/* The last net under every method: a draw with a coordinate that is not finite becomes 0, and is counted. */
static void replace_non_finite(int d, int lanes, int draws, double *theta, int64_t *fallbacks) {
  for (int n = 0; n < lanes; n++) {
    bool finite = true;
    for (int i = 0; i < d; i++) finite = finite && isfinite(theta[(size_t)i * (size_t)lanes + (size_t)n]);
    if (finite) continue;
    for (int i = 0; i < d; i++) theta[(size_t)i * (size_t)lanes + (size_t)n] = 0;
    fallbacks[n / draws]++;
  }
}

void sampler_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks) {
  ASSERT(history->d == sampler->d && history->runs <= sampler->setup.runs);
  ASSERT(draws >= 1 && draws <= sampler->setup.draws);
  ASSERT((int)rng.draws == draws && (int)rng.lanes == history->runs * draws && rng.position == 0);
  sampler->ops->sample(sampler, history, rng, draws, theta, fallbacks);
  replace_non_finite(sampler->d, history->runs * draws, draws, theta, fallbacks);
}
