#include "sampler/digits.h"

#include "sampler/mixture/mixture_posterior.h"

#include <string.h>

/* Returns the mixture whose posterior can take the place of the sampler's draws: rewards are Gaussian, and
 * the target is the posterior; otherwise NULL. */
static const Mixture *digits_mixture(const Sampler *sampler) {
  const SamplerSetup *setup = &sampler->setup;
  if (!mixture_posterior_is_exact(setup->likelihood) || !sampler_targets_posterior(sampler)) return NULL;
  return prior_stand_in(setup->prior);
}

DrawnFrom digits_drawn_from(const Sampler *sampler, PriorDigits digits) {
  const bool exact = sampler->ops->exact && sampler->setup.prior->mixture;
  if (digits == DIGITS_KEPT) return DRAWN_AS_PROMISED;
  if (digits == DIGITS_LOST || !digits_mixture(sampler)) return DRAWN_WITHOUT_DIGITS;
  return exact ? DRAWN_AS_PROMISED : DRAWN_FROM_MIXTURE;
}

/* Returns whether the draws are those of that posterior anyway: under the prior's own mixture. */
static bool digits_are_kept(const Sampler *sampler) {
  return sampler->ops->keeps_digits && sampler->setup.prior->mixture && !sampler->observed;
}

/* Draws theta[d, B M] for all runs, with the random numbers of the sampler. */
static Status draw_all(Arena *memory, const Mixture *mixture, const History *history, RngLanes rng, int draws,
                       double **theta) {
  MixturePosterior *posterior;
  int64_t *ignored; /* jitters of runs that are not replaced */
  TRY(mixture_posterior_create(memory, mixture, history->likelihood, history->runs,
                               mixture_posterior_options(NULL), &posterior));
  ALLOCATE(memory, *theta, (size_t)history->d * rng.lanes);
  ALLOCATE(memory, ignored, history->runs);
  mixture_posterior_sample(posterior, history, rng, draws, *theta, NULL, ignored);
  return STATUS_OK;
}

void digits_replace(const Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Mixture *known = prior_stand_in(sampler->setup.prior);
  const size_t lanes = rng.lanes, each = (size_t)draws;
  double *drawn = NULL;
  if (!known || !history_digits(history, known, sampler->digits, sampler->outweighs)) return;
  const Mixture *mixture = digits_are_kept(sampler) ? NULL : digits_mixture(sampler);
  const bool replaces = mixture && draw_all(&scratch, mixture, history, rng, draws, &drawn) == STATUS_OK;
  for (int run = 0; run < history->runs; run++) {
    if (sampler->digits[run] == DIGITS_KEPT) continue;
    fallbacks[run] = digits_drawn_from(sampler, sampler->digits[run]) == DRAWN_AS_PROMISED ? 0 : draws;
    for (size_t i = 0; i < (size_t)sampler->d && replaces; i++)
      memcpy(theta + i * lanes + (size_t)run * each, drawn + i * lanes + (size_t)run * each,
             each * sizeof *theta);
  }
}

void digits_count_moments(const Sampler *sampler, const History *history, int64_t *fallbacks) {
  const Mixture *known = prior_stand_in(sampler->setup.prior);
  if (!known || !history_digits(history, known, sampler->digits, sampler->outweighs)) return;
  for (int run = 0; run < history->runs; run++)
    fallbacks[run] += digits_drawn_from(sampler, sampler->digits[run]) != DRAWN_AS_PROMISED;
}
