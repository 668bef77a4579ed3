/* LaplaceDPS with evidence that is noised like the sample (evidence_c = 1) or that enters once, at the start
 * (evidence_c = -1, tilted transport): the same checks as of LaplaceDPS, the law in closed form, and runs
 * that start at different stages. */
#include "core/arena.h"
#include "laplace_fixture.h"

static void test_no_history_is_the_chain(void) {
  SCRATCH_ARENA(memory);
  for (int d = 1; d <= 5; d++) {
    PriorFit fit = fixture_fit(12, 0.8, LAST_STAGE_LITERAL);
    Mixture mixture = fixture_mixture(&memory, d, 2, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "evidence_c=1");
    laplace_check_no_history(&prior, LAST_STAGE_LITERAL, "evidence_c=-1");
  }
}

static void test_stage_with_noised_evidence(void) { laplace_check_product(1); }

static void test_gaussian_prior_finite_stages(void) {
  laplace_check_finite_stages(-1);
  laplace_check_finite_stages(1);
}

/* evidence_c = -1 with the prior N(0, I) is exact but for the variance of the stages, beta_tilde_t (with the
 * last stage's repair) in place of beta, which is of the order (1 - alpha) log(1 - alpha) in all: variance 1
 * / (1 + L) less the sum of what each stage lacks, and mean L / (1 + L) theta-bar, where LaplaceDPS has .745
 * and .709 of the standard deviation. Draws agree with the recursion within 5 standard errors. */
static void test_tilted_transport_is_exact_for_the_standard_prior(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 8000, STAGES = 4000 };
  const double alpha = 0.998, bar = 1.5, precisions[] = {0.01, 1, 10, 100};
  const char *tilted = "evidence_c=-1";
  for (int k = 0; k < 4; k++) {
    const double precision = precisions[k], vector = precision * bar, zero = 0, one = 1;
    const Likelihood likelihood = fixture_likelihood(1 / sqrt(precision));
    const double variance = 1 / (1 + precision), mean = variance * vector;
    double lack = 0;
    Moments moments = laplace_law(1, STAGES, alpha, -1, &zero, &one, &precision, &vector);
    for (int t = 1; t <= STAGES && pow(alpha, t) > (1 - pow(alpha, t)) * precision; t++) {
      double before = t > 1 ? t - 1 : 1; /* Sigma_1 = beta_tilde_2 */
      double v = (1 - alpha) * (1 - pow(alpha, before)) / (1 - pow(alpha, before + 1));
      lack += pow(alpha, t - 1) * (1 - alpha - v);
    }
    CHECK_NEAR(lack, 0, (1 - alpha) * log(1 / (1 - alpha)));
    CHECK_NEAR(moments.covariance[0] + lack, variance, 1e-9);
    CHECK_NEAR(moments.mean[0], mean, 1e-9);
    PriorFit fit = fixture_fit(STAGES, alpha, LAST_STAGE_REPAIRED);
    Prior prior;
    CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
    History history = one_observation(&memory, bar, &likelihood);
    double *theta = fixture_draw(diffts(), &prior, &history, 0, DRAWS, 1, &tilted, NULL);
    fixture_check_moments(1, 1, DRAWS, 0, theta, moments.mean, moments.covariance, 5);
    free(theta);
  }
}

/* One chunk whose runs start at different stages, the last of them at 0: every run as if it were alone, and
 * the last is N(0, I) times the evidence. */
static void test_tilted_runs_do_not_depend_on_each_other(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 4, DRAWS = 9, STAGES = 30 };
  const double phi[RUNS] = {0.1, 1, 3, 100}, y[RUNS] = {1, -1, 2, 150};
  const Likelihood likelihood = fixture_likelihood(1);
  const char *tilted = "evidence_c=-1";
  PriorFit fit = fixture_fit(STAGES, 0.95, LAST_STAGE_REPAIRED);
  Prior prior;
  History block, alone;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  CHECK_OK(history_create(&memory, 1, RUNS, &likelihood, &block));
  history_record(&block, NULL, phi, y);
  double *theta = fixture_draw(diffts(), &prior, &block, 0, DRAWS, 1, &tilted, NULL);
  for (int run = 0; run < RUNS; run++) {
    CHECK_OK(history_create(&memory, 1, 1, &likelihood, &alone));
    history_record(&alone, NULL, phi + run, y + run);
    double *single = fixture_draw(diffts(), &prior, &alone, (uint32_t)run, DRAWS, 1, &tilted, NULL);
    CU_ASSERT(memcmp(single, theta + run * DRAWS, DRAWS * sizeof *single) == 0);
    free(single);
  }
  for (int m = 0; m < DRAWS; m++) {
    Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = RUNS - 1, .round = 7, .draw = (uint32_t)m};
    double z;
    rng_normal(&rng, 1, &z);
    CHECK_NEAR(theta[(RUNS - 1) * DRAWS + m], 100 * 150 / 10001.0 + z / sqrt(10001.0), 1e-12);
  }
  free(theta);
}

static void test_evidence_constant_needs_a_conjugate_likelihood(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  PriorFit fit = fixture_fit(3, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  fixture_refused("diffts", &prior, &likelihood, 1, 1, "evidence_c=-1",
                  "sampler diffts takes evidence_c = -1 only with a likelihood that is quadratic");
  fixture_refused("diffts", &prior, &likelihood, 1, 1, "evidence_c=1",
                  "sampler diffts takes evidence_c = 1 only with a likelihood that is quadratic");
}

int main(void) {
  CU_TestInfo tests[] = {
      {"no history is chain_sample, to the bit", test_no_history_is_the_chain},
      {"a stage with noised evidence", test_stage_with_noised_evidence},
      {"Gaussian prior, finite stages", test_gaussian_prior_finite_stages},
      {"tilted transport is exact for the standard prior",
       test_tilted_transport_is_exact_for_the_standard_prior},
      {"tilted runs do not depend on each other", test_tilted_runs_do_not_depend_on_each_other},
      {"evidence_c needs a conjugate likelihood", test_evidence_constant_needs_a_conjugate_likelihood},
      CU_TEST_INFO_NULL};
  return harness_run("laplace_tilt", tests);
}
