/* Conformance: every registered sampler with every prior family and every likelihood that it fits.
 * Registering a new sampler is enough to test it. What is special to one method is in the test of its own
 * file. */
#include "core/arena.h"
#include "sampler_fixture.h"

enum { RUNS = 3, DRAWS = 28, MANY = 5000 };

static const int DIMENSIONS[] = {1, 2, 5};

/* Tells whether theta[d, 1 x columns] equals columns of block[d, RUNS x DRAWS] from `first` on, byte for
 * byte. */
static bool same_columns(int d, int columns, const double *theta, const double *block, int first) {
  for (int i = 0; i < d; i++)
    if (memcmp(theta + i * columns, block + i * RUNS * DRAWS + first, (size_t)columns * sizeof *theta) != 0)
      return false;
  return true;
}

/* Checks finite draws; the same key gives the same bytes; a draw does not depend on how many other runs and
 * draws there are. */
static void check_streams(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood) {
  SCRATCH_ARENA(memory);
  const int d = prior->d;
  int64_t fallbacks[RUNS];
  History history = fixture_history(&memory, d, RUNS, 0, 6, likelihood);
  double *block = fixture_draw(method, prior, &history, 0, DRAWS, 0, NULL, fallbacks);
  double *again = fixture_draw(method, prior, &history, 0, DRAWS, 0, NULL, NULL);
  CU_ASSERT(memcmp(block, again, (size_t)(d * RUNS * DRAWS) * sizeof *block) == 0);
  for (int i = 0; i < d * RUNS * DRAWS; i++) CU_ASSERT_FATAL(isfinite(block[i]));
  for (int run = 0; run < RUNS; run++) {
    /* DPS is known to diverge (see dps.c), and the evidence of Poisson rewards is more precise than what a
     * denoiser learns; the others need no fallback on such data. */
    const bool beyond = prior->denoiser && !prior->mixture && !likelihood_is_conjugate(likelihood);
    const bool counted = strcmp(method->name, "dps") != 0 && !beyond && fallbacks[run] != 0;
    if (counted)
      printf("\n    %s, prior %s in %d dimensions, likelihood %s: %lld fallbacks", method->name,
             prior->ops->name, d, likelihood->ops->name, (long long)fallbacks[run]);
    CU_ASSERT_FALSE(counted);
    History alone = fixture_history(&memory, d, 1, (uint32_t)run, 6, likelihood);
    for (int draws = 1; draws <= DRAWS; draws += DRAWS - 1) {
      double *few = fixture_draw(method, prior, &alone, (uint32_t)run, draws, 0, NULL, NULL);
      CU_ASSERT(same_columns(d, draws, few, block, run * DRAWS));
      free(few);
    }
  }
  free(block);
  free(again);
}

/* Checks mean and covariance of 5 000 draws against the exact posterior, within 5 standard errors; also
 * without observations. */
static void check_exact(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood) {
  SCRATCH_ARENA(memory);
  for (int n = 0; n <= 6; n += 3) {
    History history = fixture_history(&memory, prior->d, 2, 0, n, likelihood);
    double *theta = fixture_draw(method, prior, &history, 0, MANY, 0, NULL, NULL);
    for (int run = 0; run < 2; run++) {
      FixtureData data = fixture_data(prior->d, n, likelihood->noise, (uint32_t)run);
      FixturePosterior exact = fixture_posterior(prior->mixture, &data);
      fixture_check_moments(prior->d, 2, MANY, run, theta, exact.total_mean, exact.total_covariance, 5);
    }
    free(theta);
  }
}

static bool has_key(const SamplerOps *method, const char *name) {
  for (const ConfigKey *key = sampler_keys(method); key->name; key++)
    if (strcmp(key->name, name) == 0) return true;
  return false;
}

/* Checks moments in closed form against 5 000 draws, within 5 standard errors, and, where these are from the
 * exact posterior, against it to rounding; the same bytes for a run on its own. With rewards that are not
 * Gaussian the moments are those of the approximation, from which draws of one candidate each are made,
 * unless a fallback says that they are not to be trusted: such draws are moved to the posterior. Returns how
 * many moments were compared. */
static int check_moments(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood,
                         const char *set) {
  SCRATCH_ARENA(memory);
  enum { D = FIXTURE_DIMENSION };
  const int d = prior->d;
  const bool exact = method->exact && likelihood_is_conjugate(likelihood) && !set;
  const char *sets[2];
  int count = 0;
  if (set) sets[count++] = set;
  if (!likelihood_is_conjugate(likelihood) && has_key(method, "candidates")) sets[count++] = "candidates=1";
  double mean[2][D * 2], covariance[2][D * D * 2];
  int compared = 0;
  for (int n = 0; n <= 6; n += 3) {
    History history = fixture_history(&memory, d, 2, 0, n, likelihood);
    double *theta = fixture_draw(method, prior, &history, 0, MANY, count, sets, NULL);
    int64_t fallbacks[2] = {0};
    for (int runs = 1; runs <= 2; runs++) {
      History some = fixture_history(&memory, d, runs, 0, n, likelihood);
      memset(fallbacks, 0, sizeof fallbacks);
      fixture_moments(method, prior, &some, 1, count, sets, mean[runs - 1], covariance[runs - 1], fallbacks);
    }
    for (int run = 0; run < 2; run++) {
      double own_mean[D], own_covariance[D * D];
      for (int i = 0; i < d; i++) own_mean[i] = mean[1][i * 2 + run];
      for (int i = 0; i < d * d; i++) own_covariance[i] = covariance[1][i * 2 + run];
      if (run == 0) {
        CU_ASSERT(memcmp(own_mean, mean[0], (size_t)d * sizeof *own_mean) == 0);
        CU_ASSERT(memcmp(own_covariance, covariance[0], (size_t)(d * d) * sizeof *own_mean) == 0);
      }
      CU_ASSERT(fallbacks[run] == 0 || !likelihood_is_conjugate(likelihood));
      if (fallbacks[run] > 0) continue;
      fixture_check_moments(d, 2, MANY, run, theta, own_mean, own_covariance, 5);
      compared++;
      if (!exact) continue;
      FixtureData data = fixture_data(d, n, likelihood->noise, (uint32_t)run);
      FixturePosterior known = fixture_posterior(prior->mixture, &data);
      for (int i = 0; i < d; i++) CHECK_NEAR(own_mean[i], known.total_mean[i], 1e-9);
      for (int i = 0; i < d * d; i++) CHECK_NEAR(own_covariance[i], known.total_covariance[i], 1e-9);
    }
    free(theta);
  }
  return compared;
}

/* Checks every method that needs all of `needs` and fits the prior and the likelihood, if any of the three is
 * wanted; adds to the numbers of tests. */
static void check_methods(unsigned needs, const Prior *prior, const Likelihood *likelihood, int *pairs,
                          int *exact) {
  char sentence[256];
  const bool wanted = harness_wants(prior->ops->name) || harness_wants(likelihood->ops->name);
  for (int i = 0; sampler_method(i); i++) {
    const SamplerOps *method = sampler_method(i);
    if ((method->needs & needs) != needs || !(wanted || harness_wants(method->name))) continue;
    if (sampler_misfit(method, prior, likelihood, sizeof sentence, sentence)) continue;
    check_streams(method, prior, likelihood);
    ++*pairs;
    if (sampler_has_moments(method, prior->mixture, likelihood_is_conjugate(likelihood))) {
      CU_ASSERT(check_moments(method, prior, likelihood, NULL) > 0);
      CU_ASSERT(check_moments(method, prior, likelihood, "temper=0.5") > 0);
      if (prior_stand_in(prior)) CU_ASSERT(check_moments(method, prior, likelihood, "guard=0.4") > 0);
    }
    if (!method->exact || !prior->mixture || !likelihood_is_conjugate(likelihood)) continue;
    check_exact(method, prior, likelihood);
    ++*exact;
  }
}

static void test_every_sampler_prior_and_likelihood(void) {
  SCRATCH_ARENA(memory);
  int pairs = 0, exact = 0;
  for (int family = 0; prior_family(family); family++)
    for (size_t k = 0; k < sizeof DIMENSIONS / sizeof *DIMENSIONS; k++) {
      Prior prior = fixture_fitted_prior(&memory, prior_family(family), DIMENSIONS[k], false);
      for (int i = 0; likelihood_family(i); i++) {
        const Likelihood likelihood = {.ops = likelihood_family(i), .noise = 0.7};
        check_methods(0, &prior, &likelihood, &pairs, &exact);
      }
    }
  CU_ASSERT((pairs > 0 && exact > 0) || !harness_wants(NULL));
}

/* Checks every sampler of a reverse chain, with stages even in the logarithm of the signal-to-noise ratio. */
static void test_every_chain_of_even_stages(void) {
  int pairs = 0, exact = 0;
  for (int family = 0; prior_family(family); family++) {
    if (!(prior_family(family)->able & PRIOR_CHAIN)) continue;
    SCRATCH_ARENA(memory);
    Prior prior = fixture_fitted_prior(&memory, prior_family(family), 2, true);
    for (int i = 0; likelihood_family(i); i++) {
      const Likelihood likelihood = {.ops = likelihood_family(i), .noise = 0.7};
      check_methods(NEEDS_CHAIN, &prior, &likelihood, &pairs, &exact);
    }
  }
  CU_ASSERT(pairs > 0 || !harness_wants(NULL));
}

static void test_registry(void) {
  int count = 0;
  for (; sampler_method(count); count++) {
    const SamplerOps *method = sampler_method(count);
    CU_ASSERT(method->name[0] && method->summary[0] && method->reference[0] && method->default_prior[0]);
    CU_ASSERT(method->create && method->sample);
    CU_ASSERT_PTR_EQUAL(sampler_find(method->name), method);
    CU_ASSERT_STRING_EQUAL(sampler_name(count), method->name);
  }
  CU_ASSERT(count > 0);
  CU_ASSERT_PTR_NULL(sampler_name(count));
  CU_ASSERT_PTR_NULL(sampler_method(-1));
  CU_ASSERT_PTR_NULL(sampler_find("no such sampler"));
}

/* Checks that a method whose options temper the posterior says so for each value but the default, and that
 * all others always draw from the posterior. */
static void test_target(void) {
  SCRATCH_ARENA(memory);
  for (int i = 0; sampler_method(i); i++) {
    const SamplerOps *method = sampler_method(i);
    const char *const sets[] = {"", "lambda=2", "eta=0.5", "eta=auto"};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
      const char *set = sets[s];
      Config *options = NULL;
      if (s > 0 && !has_key(method, "lambda")) continue;
      CHECK_OK(config_options(&memory, "test", sampler_keys(method), s > 0, &set, &options));
      const Sampler sampler = {.ops = method, .setup = {.options = options}};
      CU_ASSERT_EQUAL(sampler_targets_posterior(&sampler), s == 0 || s == 3);
    }
  }
}

/* ---- refusals, with a prior and a likelihood that can do nothing */

static const PriorOps BARE_OPS = {.name = "bare"};

static Status create(const char *name, const Prior *prior, const Likelihood *likelihood) {
  SCRATCH_ARENA(memory);
  const SamplerOps *method = sampler_find(name);
  SamplerSetup setup = {.prior = prior, .likelihood = likelihood, .runs = 2, .draws = 1};
  Config *options = NULL;
  Sampler sampler;
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
  setup.options = options;
  Status status = sampler_create(&memory, method, &setup, &sampler);
  return status;
}

static void test_refusals(void) {
  SCRATCH_ARENA(memory);
  const Likelihood gaussian = fixture_likelihood(1);
  const LikelihoodOps curved_ops = {.name = "curved"};
  const Likelihood curved = {.ops = &curved_ops, .noise = 1};
  const SamplerOps closed = {.name = "closed", .needs = NEEDS_CONJUGATE};
  char sentence[256];
  Mixture two = fixture_mixture(&memory, 2, 2, 1);
  const Prior bare = {.ops = &BARE_OPS, .d = 2};
  const Prior mixture_only = {.ops = &BARE_OPS, .d = 2, .mixture = &two};
  CHECK_FAILS(create("ts", &bare, &gaussian), STATUS_INPUT,
              "sampler ts needs a Gaussian prior in closed form; prior bare is not one");
  CHECK_FAILS(create("tuned_ts", &mixture_only, &gaussian), STATUS_INPUT,
              "sampler tuned_ts needs a Gaussian prior; prior bare has 2 components");
  CHECK_FAILS(create("mixts", &bare, &gaussian), STATUS_INPUT,
              "sampler mixts needs a Gaussian mixture prior in closed form; prior bare is not one");
  CHECK_FAILS(create("diffts", &mixture_only, &gaussian), STATUS_INPUT,
              "sampler diffts needs a prior with a reverse chain; prior bare has none");
  CHECK_FAILS(create("dps", &bare, &gaussian), STATUS_INPUT,
              "sampler dps needs a prior with a reverse chain; prior bare has none");
  CU_ASSERT_TRUE(sampler_misfit(&closed, &mixture_only, &curved, sizeof sentence, sentence));
  CU_ASSERT_STRING_EQUAL(sentence, "sampler closed needs a likelihood that is quadratic in phi' theta "
                                   "(gaussian); likelihood curved is not");
  CU_ASSERT_FALSE(sampler_misfit(&closed, &mixture_only, &gaussian, sizeof sentence, sentence));
  CHECK_OK(create("mixts", &mixture_only, &gaussian));
  CHECK_OK(create("mixts", &mixture_only, &curved));
}

/* ---- a method whose second draw of run 1 is not finite, and one that fails half-way through create */

static void broken_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks) {
  (void)self, (void)fallbacks;
  int lanes = history->runs * draws;
  rng_lanes_normal(&rng, history->d, theta);
  theta[lanes + draws + 1] = NAN;
}

static Status plain_create(Sampler *self, const SamplerSetup *setup) {
  (void)self, (void)setup;
  return STATUS_OK;
}

static Status failing_create(Sampler *self, const SamplerSetup *setup) {
  (void)self, (void)setup;
  return status_set(STATUS_INTERNAL, "no memory");
}

static void test_non_finite_draw_is_replaced(void) {
  SCRATCH_ARENA(memory);
  const SamplerOps broken = {.name = "broken", .create = plain_create, .sample = broken_sample};
  const Likelihood likelihood = fixture_likelihood(1);
  const Prior bare = {.ops = &BARE_OPS, .d = 2};
  int64_t fallbacks[2];
  History history = fixture_history(&memory, 2, 2, 0, 1, &likelihood);
  double *theta = fixture_draw(&broken, &bare, &history, 0, 3, 0, NULL, fallbacks);
  CU_ASSERT_EQUAL(fallbacks[0], 0);
  CU_ASSERT_EQUAL(fallbacks[1], 1);
  for (int n = 0; n < 6; n++) CU_ASSERT((theta[n] == 0 && theta[6 + n] == 0) == (n == 4));
  free(theta);
}

/* Checks that lanes, and the entries of the matrices of a chunk of them, do not overflow. */
static void test_too_many_draws(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  const Prior wide = {.ops = &BARE_OPS, .d = 5793};
  const SamplerOps ops = {.name = "any", .create = failing_create};
  const SamplerSetup setup = {.prior = &wide, .likelihood = &likelihood, .runs = 1, .draws = 1};
  PriorFit fit = fixture_fit(4, 0.8, LAST_STAGE_REPAIRED);
  Sampler sampler;
  Prior prior;
  CHECK_FAILS(sampler_create(&memory, &ops, &setup, &sampler), STATUS_INPUT,
              "in 5793 dimensions are too many");
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  fixture_refused("ts", &prior, &likelihood, 65536, 32768, "temper=1",
                  "sampler ts: 32768 draws for each of 65536 runs in 2 dimensions are too many");
  fixture_refused("smc", &prior, &likelihood, 4096, 1, "particles=1000000",
                  "sampler smc: 1000000 particles for each of 4096 runs are too many");
  fixture_refused("smc_tempered", &prior, &likelihood, 4096, 1, "particles=1000000",
                  "sampler smc_tempered: 1000000 particles for each of 4096 runs are too many");
}

static void test_failed_create_is_handed_up(void) {
  SCRATCH_ARENA(memory);
  const SamplerOps failing = {.name = "failing", .create = failing_create, .sample = broken_sample};
  const Likelihood likelihood = fixture_likelihood(1);
  const Prior bare = {.ops = &BARE_OPS, .d = 2};
  const SamplerSetup setup = {.prior = &bare, .likelihood = &likelihood, .runs = 1, .draws = 1};
  Sampler sampler;
  CHECK_FAILS(sampler_create(&memory, &failing, &setup, &sampler), STATUS_INTERNAL, "no memory");
}

int main(void) {
  CU_TestInfo tests[] = {
      {"registry", test_registry},
      {"options that temper the posterior", test_target},
      {"every sampler with every prior and likelihood it fits", test_every_sampler_prior_and_likelihood},
      {"every sampler of a chain with even stages", test_every_chain_of_even_stages},
      {"refusals", test_refusals},
      {"a draw that is not finite is replaced and counted", test_non_finite_draw_is_replaced},
      {"too many draws", test_too_many_draws},
      {"what a failed create says is handed up", test_failed_create_is_handed_up},
      CU_TEST_INFO_NULL};
  return harness_run("sampler", tests);
}
