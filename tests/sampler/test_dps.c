/* DPS: its gradient against finite differences, whole draws against Algorithm 4 written out from the
 * observations, and what happens where it diverges. */
#include "core/arena.h"
#include "sampler/diffusion/dps.h"

#include "sampler_fixture.h"

static const SamplerOps *dps(void) { return sampler_find("dps"); }

/* Computes the sum of squared residuals at S_0_hat(s), from the observations; S_0_hat of one lane goes to
 * clean[d]. */
static double residual_at(const Chain *chain, int t, const FixtureData *data, const double *s,
                          double *clean) {
  const double bar = chain->schedule.alpha_bar[t];
  double sum = 0;
  chain->noise(chain, t, 1, s, clean);
  for (int i = 0; i < chain->d; i++) clean[i] = (s[i] - sqrt(1 - bar) * clean[i]) / sqrt(bar);
  for (int l = 0; l < data->n; l++) {
    double rest = data->y[l];
    for (int i = 0; i < chain->d; i++)
      rest -= data->phi[l][i] * (chain->shift[i] + chain->scale[i] * clean[i]);
    sum += rest * rest;
  }
  return sum;
}

/* Computes -sum (y - phi' theta) phi scale / sigma^2: minus the score of the likelihood with respect to
 * S_0_hat. */
static void score_at(const Chain *chain, const FixtureData *data, const double *clean, double *gradient) {
  for (int i = 0; i < chain->d; i++) gradient[i] = 0;
  for (int l = 0; l < data->n; l++) {
    double rest = data->y[l];
    for (int i = 0; i < chain->d; i++)
      rest -= data->phi[l][i] * (chain->shift[i] + chain->scale[i] * clean[i]);
    for (int i = 0; i < chain->d; i++)
      gradient[i] -= rest * data->phi[l][i] * chain->scale[i] / (data->noise * data->noise);
  }
}

/* Computes the gradient by central differences of the residual through S_0_hat(S_t); the mixture's exact
 * chain is smooth, so the step 1e-5 gives 1e-7. */
static void gradient_by_differences(const Chain *chain, int t, const FixtureData *data, const double *s,
                                    double *gradient) {
  const double h = 1e-5;
  double moved[FIXTURE_DIMENSION], clean[FIXTURE_DIMENSION];
  for (int i = 0; i < chain->d; i++) {
    memcpy(moved, s, (size_t)chain->d * sizeof *s);
    moved[i] = s[i] + h;
    gradient[i] = residual_at(chain, t, data, moved, clean);
    moved[i] = s[i] - h;
    gradient[i] = (gradient[i] - residual_at(chain, t, data, moved, clean)) / (2 * h);
  }
}

static void test_gradient(void) {
  SCRATCH_ARENA(memory);
  enum { STAGES = 20, OBSERVATIONS = 5 };
  const Likelihood likelihood = fixture_likelihood(0.5);
  for (int d = 1; d <= 3; d++) {
    PriorFit fit = fixture_fit(STAGES, 0.9, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, d, 3, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    const Chain *chain = prior.chain;
    FixtureData data = fixture_data(d, OBSERVATIONS, likelihood.noise, 0);
    History history = fixture_history(&memory, d, 1, 0, OBSERVATIONS, &likelihood);
    double lambda[9], b[3], constant = 0;
    history_evidence(&(HistoryView){&history, 1, 0, 1, chain->shift, chain->scale}, lambda, b);
    for (int l = 0; l < OBSERVATIONS; l++) {
      double rest = data.y[l];
      for (int i = 0; i < d; i++) rest -= data.phi[l][i] * chain->shift[i];
      constant += rest * rest / (likelihood.noise * likelihood.noise);
    }
    DpsEvidence evidence = {.d = d,
                            .lanes = 1,
                            .variance = likelihood.noise * likelihood.noise,
                            .precision = lambda,
                            .vector = b,
                            .constant = &constant};
    for (int t = 1; t <= STAGES; t += 3) {
      double s[3], clean[3], residual, gradient[3], scratch[3], expected[3], expected_clean[3];
      Rng rng = fixture_rng((uint32_t)t, 5);
      rng_normal(&rng, d, s);
      const DpsPoint point = {
          .denoised = clean, .residual = &residual, .gradient = gradient, .scratch = scratch};
      dps_gradient(chain, t, &evidence, DPS_THROUGH_NETWORK, s, &point);
      double sum = residual_at(chain, t, &data, s, expected_clean);
      gradient_by_differences(chain, t, &data, s, expected);
      CHECK_NEAR(residual, sum, 1e-10 * (1 + sum));
      for (int i = 0; i < d; i++) {
        CHECK_NEAR(clean[i], expected_clean[i], 1e-12 * (1 + fabs(clean[i])));
        CHECK_NEAR(gradient[i], expected[i], 1e-6 * (1 + sum));
      }
      dps_gradient(chain, t, &evidence, DPS_AT_ESTIMATE, s, &point);
      score_at(chain, &data, clean, expected);
      for (int i = 0; i < d; i++) CHECK_NEAR(gradient[i], expected[i], 1e-10 * (1 + sum));
    }
  }
}

/* Makes one draw by Algorithm 4, misprints corrected, from the observations and from its stream. */
static void algorithm_4(const Chain *chain, const FixtureData *data, bool through_network, double step_size,
                        Rng rng, double *s) {
  const int d = chain->d;
  const double *bar = chain->schedule.alpha_bar;
  double clean[FIXTURE_DIMENSION], gradient[FIXTURE_DIMENSION], z[FIXTURE_DIMENSION];
  rng_normal(&rng, d, s);
  for (int t = chain->schedule.stages; t >= 1; t--) {
    const double alpha = bar[t] / bar[t - 1], beta = 1 - alpha;
    const double beta_tilde = (1 - bar[t - 1]) / (1 - bar[t]) * beta;
    double zeta = step_size / sqrt(residual_at(chain, t, data, s, clean));
    if (through_network)
      gradient_by_differences(chain, t, data, s, gradient);
    else
      score_at(chain, data, clean, gradient);
    rng_normal(&rng, d, z);
    for (int i = 0; i < d; i++)
      s[i] = sqrt(bar[t - 1]) * beta / (1 - bar[t]) * clean[i] +
             sqrt(alpha) * (1 - bar[t - 1]) / (1 - bar[t]) * s[i] + sqrt(beta_tilde) * z[i] -
             zeta * gradient[i];
  }
  for (int i = 0; i < d; i++) s[i] = chain->shift[i] + chain->scale[i] * s[i];
}

/* Checks that draws follow Algorithm 4, with four stages, so that the error of the finite differences is not
 * blown up: 1e-5. */
static void check_draws_follow_algorithm_4(double noise) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 5, OBSERVATIONS = 4, D = 2 };
  const Likelihood likelihood = fixture_likelihood(noise);
  const char *const sets[][2] = {{"gradient=through_network", "step_size=1"},
                                 {"gradient=through_network", "step_size=0.1"},
                                 {"gradient=at_estimate", "step_size=1"},
                                 {"gradient=at_estimate", "step_size=0.1"}};
  PriorFit fit = fixture_fit(4, 0.6, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, D, 1, 0, OBSERVATIONS, &likelihood);
  FixtureData data = fixture_data(D, OBSERVATIONS, likelihood.noise, 0);
  for (int k = 0; k < 4; k++) {
    int64_t fallbacks;
    double *theta = fixture_draw(dps(), &prior, &history, 0, DRAWS, 2, sets[k], &fallbacks);
    CU_ASSERT_EQUAL(fallbacks, 0);
    for (uint32_t m = 0; m < DRAWS; m++) {
      Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draw = m};
      double expected[D];
      algorithm_4(prior.chain, &data, k < 2, k % 2 == 0 ? 1 : 0.1, rng, expected);
      for (int i = 0; i < D; i++) CHECK_NEAR(theta[i * DRAWS + (int)m], expected[i], 1e-5);
    }
    free(theta);
  }
}

static void test_draws_follow_algorithm_4(void) {
  check_draws_follow_algorithm_4(1);
  check_draws_follow_algorithm_4(2);
}

/* Checks that without observations, and with step 0, it is denoiser_chain_sample with the literal last stage,
 * up to the rounding of another order of the same sum. */
static void test_no_evidence_is_the_chain(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 70, D = 2 };
  const Likelihood likelihood = fixture_likelihood(1);
  const char *zero_step = "step_size=0";
  PriorFit fit = fixture_fit(30, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 2);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  Chain chain = *prior.chain;
  double expected[D * DRAWS], scratch[2 * D * DRAWS];
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = DRAWS};
  chain.last_stage = LAST_STAGE_LITERAL;
  denoiser_chain_sample(&chain, &rng, expected, scratch);
  for (int n = 0; n <= 3; n += 3) {
    History history = fixture_history(&memory, D, 1, 0, n, &likelihood);
    double *theta = fixture_draw(dps(), &prior, &history, 0, DRAWS, n == 0 ? 0 : 1, &zero_step, NULL);
    for (int i = 0; i < D * DRAWS; i++) CHECK_NEAR(theta[i], expected[i], 1e-10);
    free(theta);
  }
}

/* Checks that divergence is guarded. The step does not shrink with the evidence: with 1 000 observations of
 * features of size 10 it is 2 sqrt(1 000) 10 = 630 in the last stages, wherever the state is. The chain runs
 * away (Section 6.2 of the paper), states are held at the guard and counted, and no draw is NaN. A step 1 000
 * times smaller behaves. */
static void test_divergence_is_guarded(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 20, D = 2 };
  const Likelihood likelihood = fixture_likelihood(1);
  const char *small = "step_size=0.001";
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  Prior prior;
  History history;
  int64_t fallbacks;
  CHECK_OK(prior_standard(&memory, D, &fit, &prior));
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  Rng rng = fixture_rng(3, 3);
  for (int l = 0; l < 1000; l++) {
    double phi[D], y;
    rng_normal(&rng, D, phi);
    rng_normal(&rng, 1, &y);
    for (int i = 0; i < D; i++) phi[i] *= 10;
    history_record(&history, NULL, phi, &y);
  }
  double *theta = fixture_draw(dps(), &prior, &history, 0, DRAWS, 0, NULL, &fallbacks);
  CU_ASSERT(fallbacks > 0);
  for (int i = 0; i < D * DRAWS; i++) CU_ASSERT(fabs(theta[i]) <= CHAIN_GUARD);
  free(theta);
  theta = fixture_draw(dps(), &prior, &history, 0, DRAWS, 1, &small, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);
  free(theta);
}

/* Checks a reward of exactly 0, where the residual at theta = 0 vanishes but not the one at S_0_hat: the draw
 * is guided all the same. */
static void test_zero_reward(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 5 };
  const Likelihood likelihood = fixture_likelihood(1);
  const FixtureData data = {.d = 1, .n = 1, .noise = 1, .phi = {{1}}, .y = {0}};
  const char *at_estimate = "gradient=at_estimate";
  PriorFit fit = fixture_fit(4, 0.6, LAST_STAGE_REPAIRED);
  Prior prior;
  History history;
  const double phi = 1, y = 0;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  CHECK_OK(history_create(&memory, 1, 1, &likelihood, &history));
  history_record(&history, NULL, &phi, &y);
  double *theta = fixture_draw(dps(), &prior, &history, 0, DRAWS, 1, &at_estimate, NULL);
  for (uint32_t m = 0; m < DRAWS; m++) {
    Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draw = m};
    double expected;
    algorithm_4(prior.chain, &data, false, 1, rng, &expected);
    CHECK_NEAR(theta[m], expected, 1e-10);
  }
  free(theta);
}

int main(void) {
  CU_TestInfo tests[] = {
      {"gradient against finite differences", test_gradient},
      {"draws follow Algorithm 4", test_draws_follow_algorithm_4},
      {"no evidence is denoiser_chain_sample, literal last stage", test_no_evidence_is_the_chain},
      {"divergence is guarded and counted", test_divergence_is_guarded},
      {"a reward of zero", test_zero_reward},
      CU_TEST_INFO_NULL};
  return harness_run("dps", tests);
}
