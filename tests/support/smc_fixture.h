/* Shared by the tests of sequential Monte Carlo: a sampler that lives through several calls. */
#ifndef TESTS_SMC_FIXTURE_H
#define TESTS_SMC_FIXTURE_H

#include "core/arena.h"
#include "sampler_fixture.h"

static inline Sampler make_sampler(Arena *memory, const char *name, const Prior *prior,
                                   const Likelihood *likelihood, int runs, int draws, uint32_t first_run,
                                   int set_count, const char *const *sets, Config **options) {
  const SamplerOps *method = sampler_find(name);
  Sampler sampler;
  CHECK_OK(config_options(memory, "test", sampler_keys(method), set_count, sets, options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = likelihood,
                              .runs = runs,
                              .draws = draws,
                              .seed = FIXTURE_SEED,
                              .first_run = first_run,
                              .options = *options};
  CHECK_OK(sampler_create(memory, method, &setup, &sampler));
  return sampler;
}

static inline void draw(Sampler *sampler, const History *history, uint32_t first_run, int draws,
                        double *theta, int64_t *fallbacks) {
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST),
                        .run = first_run,
                        .draws = (uint32_t)draws,
                        .lanes = (uint32_t)(history->runs * draws)};
  sampler_sample(sampler, history, rng, draws, theta, fallbacks);
}

#endif
