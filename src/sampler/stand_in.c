#include "sampler/stand_in.h"

#include "sampler/mixture/mixture_posterior.h"

#include <string.h>

bool stand_in_targets_posterior(const Config *options) {
  if (options && config_has(options, "eta") && !config_is(options, "eta", "auto")) return false;
  return !(options && config_has(options, "lambda") && config_real(options, "lambda") != 1);
}

bool stand_in_fits(const Sampler *sampler) {
  const SamplerSetup *setup = &sampler->setup;
  const Mixture *mixture = prior_stand_in(setup->prior);
  if (!mixture || !likelihood_is_conjugate(setup->likelihood)) return false;
  if (sampler->ops->square_root && mixture == setup->prior->mixture) return false;
  return stand_in_targets_posterior(setup->options);
}

/* Draws theta[d, B M] for all runs, with the random numbers of the sampler, whose draws are discarded. */
static Status stand_in_draw(Arena *memory, const Mixture *mixture, const History *history, RngLanes rng,
                            int draws, int64_t *fallbacks, double **theta) {
  MixturePosterior *posterior;
  TRY(mixture_posterior_create(memory, mixture, history->likelihood, history->runs,
                               mixture_posterior_options(NULL), &posterior));
  ALLOCATE(memory, *theta, (size_t)history->d * rng.lanes);
  mixture_posterior_sample(posterior, history, rng, draws, *theta, NULL, fallbacks);
  return STATUS_OK;
}

void stand_in_replace(const Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                      int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Mixture *mixture = prior_stand_in(sampler->setup.prior);
  const size_t lanes = rng.lanes, each = (size_t)draws;
  double *drawn = NULL;
  if (!stand_in_fits(sampler) || !history_digits(history, mixture, sampler->digits, sampler->outweighs))
    return;
  for (int run = 0; run < history->runs; run++) {
    if (sampler->digits[run] == DIGITS_KEPT) continue;
    fallbacks[run]++;
    if (!drawn && stand_in_draw(&scratch, mixture, history, rng, draws, fallbacks, &drawn) != STATUS_OK)
      continue;
    for (size_t i = 0; i < (size_t)sampler->d; i++)
      memcpy(theta + i * lanes + (size_t)run * each, drawn + i * lanes + (size_t)run * each,
             each * sizeof *theta);
  }
}
