/* LaplaceDPS: without evidence it is the chain itself; a stage is Lemma 6; its law for a Gaussian prior,
 * biased by design, is the one computed by propagating the linear-Gaussian recursion, and for many stages the
 * one of the exponential integrals. */
#include "core/arena.h"
#include "laplace_fixture.h"
#include "sampler/chunk.h"

static void test_no_history_is_the_chain(void) {
  SCRATCH_ARENA(memory);
  enum { SAMPLES = 300 };
  double samples_theta[5 * SAMPLES];
  for (int family = 0; prior_family(family); family++)
    for (int d = 1; d <= 5; d++) {
      PriorFit fit = fixture_fit(12, 0.8, LAST_STAGE_LITERAL);
      Mixture mixture = fixture_mixture(&memory, d, 2, 1.5);
      Samples samples = {.d = d, .n = SAMPLES, .theta = samples_theta};
      Prior prior;
      RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
      mixture_sample(&mixture, &rng, samples_theta);
      CHECK_OK(prior_fit(&memory, prior_family(family), &fit, &samples, &prior));
      if (prior.chain) {
        laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "last_stage=prior");
        laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "last_stage=literal");
        laplace_check_no_history(&prior, LAST_STAGE_REPAIRED, "last_stage=repaired");
      }
    }
}

static void test_stage_is_a_product_of_gaussians(void) { laplace_check_product(0); }

/* ---- Gaussian prior: the law of the whole chain */

static void test_gaussian_prior_finite_stages(void) { laplace_check_finite_stages(0); }

/* e^x E_n(x) = integral over w in (0, 1) of exp(-x (1/w - 1)) w^(n-2), midpoint rule: 1e-8. */
static double scaled_exponential_integral(int n, double x) {
  enum { POINTS = 100000 };
  double sum = 0;
  for (int i = 0; i < POINTS; i++) {
    double w = (i + 0.5) / POINTS;
    sum += exp(-x * (1 / w - 1)) * (n == 1 ? 1 / w : 1);
  }
  return sum / POINTS;
}

/* For N(0, 1), evidence precision L and many stages the variance tends to e^2L E2(2L),
 * the mean to L e^L E1(L) theta-bar; sd over the posterior's is .745 at L = 1 and .709 at L = 10. The
 * recursion at alpha = .999, T = 8 000 is within 1% of the limit (the error is of the order (1 - alpha) log(1
 * - alpha)); 8 000 draws at alpha = .998, T = 4 000 agree with the recursion there within 5 standard errors.
 */
static void test_gaussian_prior_many_stages(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 8000, STAGES = 4000 };
  const double alpha = 0.998, bar = 1.5, ratio[] = {0.745, 0.709};
  for (int k = 0; k < 2; k++) {
    const double precision = k == 0 ? 1 : 10, vector = precision * bar, zero = 0, one = 1;
    const Likelihood likelihood = fixture_likelihood(1 / sqrt(precision));
    const double variance = scaled_exponential_integral(2, 2 * precision);
    const double mean = precision * scaled_exponential_integral(1, precision) * bar;
    CHECK_NEAR(sqrt(variance * (1 + precision)), ratio[k], 0.001);
    Moments moments = laplace_law(1, 2 * STAGES, 0.999, 0, &zero, &one, &precision, &vector);
    CHECK_NEAR(moments.covariance[0], variance, 0.01 * variance);
    CHECK_NEAR(moments.mean[0], mean, 0.01 * mean);
    moments = laplace_law(1, STAGES, alpha, 0, &zero, &one, &precision, &vector);
    PriorFit fit = fixture_fit(STAGES, alpha, LAST_STAGE_REPAIRED);
    Prior prior;
    CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
    History history = one_observation(&memory, bar, &likelihood);
    double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    fixture_check_moments(1, 1, DRAWS, 0, theta, moments.mean, moments.covariance, 5);
    free(theta);
  }
}

/* ---- consistency and guard */

/* Theorem 3. With evidence of precision 1e8 the repaired chain sits on theta-bar to 5 x 1e-4; the literal one
 * is off by (1 - alpha) theta-bar for N(0, 1), because its last stage is the prior's mean of s_0 given s_1.
 */
static void test_consistency_needs_the_repair(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 200 };
  const double bar = 1.2, alpha = 0.97;
  const Likelihood likelihood = fixture_likelihood(1e-4);
  const char *repaired = "last_stage=repaired", *literal = "last_stage=literal";
  PriorFit fit = fixture_fit(100, alpha, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  History history = one_observation(&memory, bar, &likelihood);
  double *good = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &repaired, NULL);
  double *biased = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &literal, NULL);
  for (int m = 0; m < DRAWS; m++) {
    CHECK_NEAR(good[m], bar, 5e-4);
    CHECK_NEAR(biased[m], alpha * bar, 5e-4);
  }
  free(good);
  free(biased);
}

/* A reward a million standard deviations from the prior in the second of two runs, which ends in the second
 * chunk: its states are held at CHAIN_GUARD and each time is counted, for that run only. */
static void test_guard(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 50, STAGES = 10 };
  const Likelihood likelihood = fixture_likelihood(0.1);
  const double phi[2] = {1, 1}, y[2] = {0, -1e6};
  PriorFit fit = fixture_fit(STAGES, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  History history;
  int64_t fallbacks[2];
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  CHECK_OK(history_create(&memory, 1, 2, &likelihood, &history));
  history_record(&history, NULL, phi, y);
  double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 0, NULL, fallbacks);
  CU_ASSERT_EQUAL(fallbacks[0], 0);
  CU_ASSERT_EQUAL(fallbacks[1], DRAWS * (STAGES + 1));
  for (int m = 0; m < DRAWS; m++) CHECK_NEAR(theta[DRAWS + m], -CHAIN_GUARD, 0);
  free(theta);
}

static void test_guard_of_numbers_that_are_not_finite(void) {
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 2, .lanes = 4};
  const Chunk chunk = chunk_begin(rng);
  const double expected[8] = {1, -100, 100, -100, 100, 0, -100, 0};
  double s[8] = {1, -100.5, INFINITY, -INFINITY, 1e300, NAN, -100, -NAN};
  int64_t fallbacks[2] = {0};
  chunk_guard(&chunk, 2, s, fallbacks);
  for (int i = 0; i < 8; i++) CHECK_NEAR(s[i], expected[i], 0);
  CU_ASSERT_EQUAL(fallbacks[0], 3);
  CU_ASSERT_EQUAL(fallbacks[1], 3);
}

int main(void) {
  CU_TestInfo tests[] = {{"no history is chain_sample, to the bit", test_no_history_is_the_chain},
                         {"a stage is a product of two Gaussians", test_stage_is_a_product_of_gaussians},
                         {"Gaussian prior, finite stages", test_gaussian_prior_finite_stages},
                         {"Gaussian prior, many stages", test_gaussian_prior_many_stages},
                         {"consistency needs the repaired last stage", test_consistency_needs_the_repair},
                         {"guard", test_guard},
                         {"guard of numbers that are not finite", test_guard_of_numbers_that_are_not_finite},
                         CU_TEST_INFO_NULL};
  return harness_run("laplace_dps", tests);
}
