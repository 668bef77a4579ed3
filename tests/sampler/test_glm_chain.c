/* Chain samplers under generalised linear models: every stage of diffts and whole draws follow a dense Newton
 * iteration (glm_fixture.h); the tolerance of IRLS has no visible effect; the gradient of dps is that of
 * finite differences. */
#include "core/arena.h"
#include "sampler/diffusion/dps.h"
#include "sampler/diffusion/laplace_dps.h"

#include "glm_fixture.h"

/* ---- Theorem 4 */

/* Checks a stage of one run in coordinates shift + scale z, from IRLS's last evidence on. The mean of the
 * draw is sqrt(alpha_bar) times the dense maximum of log p(h | s / sqrt(alpha_bar)) + log N(s; mu, v I); its
 * covariance is that of the Laplace approximation there. IRLS stops within 1e-3 standard deviations of the
 * mode, after a step with R of at most about sqrt(2e-3), and the precision is the one before that step:
 * 5%. */
static void test_stage(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, LANES = 4, STAGES = 6 };
  static const char *const families[] = {"logistic", "poisson"};
  const double alpha_bars[STAGES] = {0.05, 0.2, 0.5, 0.8, 0.95, 1},
               variances[STAGES] = {1, 0.3, 0.2, 0.1, 0.03, 0.01};
  const double shift[D] = {0.3, -0.2, 0.1}, scale[D] = {0.8, 1.2, 0.5};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    Rows rows = make_rows(&likelihood, D, 30, 2, 5);
    History history = make_history(&memory, 1, &rows, &likelihood);
    const HistoryView view = {&history, LANES, 0, LANES, shift, scale};
    LaplaceEvidence
        stage[D + 1]; /* one for the mean and one for each column of the root: all see the same stages */
    Rng rng = fixture_rng(1, 8);
    for (int e = 0; e <= D; e++) CHECK_OK(laplace_dps_evidence_create(&memory, D, LANES, LANES, &stage[e]));
    for (int t = 0; t < STAGES; t++) {
      const double v = variances[t], bar = alpha_bars[t];
      double mu[D * LANES], mean[D * LANES], s[D * LANES], z[D * LANES], covariance[LANES][D * D];
      int64_t fallbacks = 0;
      memset(covariance, 0, sizeof covariance);
      rng_normal(&rng, D * LANES, mu);
      for (int e = 0; e <= D; e++) {
        memset(z, 0, sizeof z);
        for (int n = 0; n < LANES && e > 0; n++) z[(e - 1) * LANES + n] = 1;
        const LaplaceStage about = {.v = v, .alpha_bar = bar, .mu = mu};
        laplace_dps_glm_product(&stage[e], &view, &about, z, s, &fallbacks);
        if (e == 0) memcpy(mean, s, sizeof s);
        for (int n = 0; n < LANES; n++)
          for (int i = 0; i < D * D; i++)
            covariance[n][i] += (s[i / D * LANES + n] - mean[i / D * LANES + n]) *
                                (s[i % D * LANES + n] - mean[i % D * LANES + n]);
      }
      CU_ASSERT_EQUAL(fallbacks, 0);
      for (int n = 0; n < LANES; n++) {
        double clean_scale[D], own_mu[D], prior[D * D] = {0}, mode[D], expected[D * D];
        for (int i = 0; i < D; i++) {
          own_mu[i] = mu[i * LANES + n], prior[i * (D + 1)] = 1 / v;
          clean_scale[i] = scale[i] / sqrt(bar); /* theta = shift + scale s / sqrt(alpha_bar) */
        }
        newton(&rows, shift, clean_scale, own_mu, prior, mode, expected);
        for (int i = 0; i < D; i++) {
          CHECK_NEAR(mean[i * LANES + n], mode[i], 1e-3 * sqrt(v));
          for (int j = 0; j < D; j++)
            CHECK_NEAR(covariance[n][i * D + j], expected[i * D + j],
                       0.05 * sqrt(expected[i * (D + 1)] * expected[j * (D + 1)]));
        }
      }
    }
  }
}

/* Checks whole draws of Algorithm 2 with Theorem 4 in d = 1, where the root of the covariance is unique. The
 * errors of the stages, 1e-3 standard deviations of the mean and up to 2% of the deviation, hardly add up:
 * 0.01. */
static void test_algorithm_2(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 40, STAGES = 12 };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    PriorFit fit = fixture_fit(STAGES, 0.8, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, 1, 2, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    const Chain *chain = prior.chain;
    const double *bar = chain->schedule.alpha_bar;
    Rows rows = make_rows(&likelihood, 1, 20, 1.5, 6);
    History history = make_history(&memory, 1, &rows, &likelihood);
    double *theta = fixture_draw(sampler_find("diffts"), &prior, &history, 6, DRAWS, 0, NULL, NULL);
    for (uint32_t m = 0; m < DRAWS; m++) {
      Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = 6, .round = 7, .draw = m};
      double s = 0;
      for (int t = STAGES + 1; t >= 1; t--) {
        double mu = 0, v = 1, precision, scale = chain->scale[0] / sqrt(bar[t - 1]), mode, variance, z;
        if (t <= STAGES) {
          double eps, alpha = bar[t] / bar[t - 1], two = bar[2] / bar[1];
          chain->noise(chain, t, 1, &s, &eps);
          mu = (s - (1 - alpha) / sqrt(1 - bar[t]) * eps) / sqrt(alpha);
          v = (1 - alpha) * (1 - bar[t - 1]) / (1 - bar[t]);
          if (t == 1) v = (1 - two) * (1 - bar[1]) / (1 - bar[2]);
        }
        precision = 1 / v;
        newton(&rows, chain->shift, &scale, &mu, &precision, &mode, &variance);
        rng_normal(&rng, 1, &z);
        s = mode + sqrt(variance) * z;
      }
      CHECK_NEAR(theta[m], chain->shift[0] + chain->scale[0] * s, 0.01);
    }
    free(theta);
  }
}

/* ---- the effect of the tolerance of IRLS */

enum { TOLERANCE_D = 3 };

/* Computes s[TOLERANCE_D, lanes] <- draws of Algorithm 2, always from the same normals. */
static void draw_chain(LaplaceEvidence *glm_state, const Chain *chain, const HistoryView *view, double *s) {
  const Schedule *schedule = &chain->schedule;
  const int lanes = view->lanes, n = TOLERANCE_D * lanes;
  double *mu = fixture_new((size_t)n, sizeof *mu), *z = fixture_new((size_t)n, sizeof *z);
  int64_t fallbacks = 0;
  Rng rng = fixture_rng(2, 9);
  for (int t = schedule->stages + 1; t >= 1; t--) {
    const bool start = t > schedule->stages;
    const double v = start ? 1 : schedule_variance(schedule, t, LAST_STAGE_REPAIRED);
    if (!start) denoiser_chain_mean(chain, t, lanes, s, mu);
    rng_normal(&rng, n, z);
    const LaplaceStage stage = {.v = v, .alpha_bar = schedule->alpha_bar[t - 1], .mu = mu};
    laplace_dps_glm_product(glm_state, view, &stage, z, s, &fallbacks);
  }
  CU_ASSERT_EQUAL(fallbacks, 0);
  free(mu);
  free(z);
}

/* Compares draws of 50 stages with IRLS as it is with the same draws with IRLS to rounding: mean and
 * deviation within 1e-3 standard deviations (measured: 4e-4), single draws within 0.1 (measured: 0.04; a draw
 * between two modes of the prior is thrown). */
static void test_tolerance(void) {
  SCRATCH_ARENA(memory);
  enum { D = TOLERANCE_D, LANES = 2000 };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++)
    for (int observations = 5; observations <= 80; observations *= 4) {
      const Likelihood likelihood = glm(families[k]);
      PriorFit fit = fixture_fit(50, 0.94, LAST_STAGE_REPAIRED);
      Mixture mixture = fixture_mixture(&memory, D, 2, 1.5);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      Rows rows = make_rows(&likelihood, D, observations, 1, 9);
      History history = make_history(&memory, 1, &rows, &likelihood);
      const HistoryView view = {&history, LANES, 0, LANES, prior.chain->shift, prior.chain->scale};
      double *s[2];
      for (int exact = 0; exact < 2; exact++) {
        LaplaceEvidence glm_state;
        s[exact] = fixture_new((size_t)(D * LANES), sizeof **s);
        CHECK_OK(laplace_dps_evidence_create(&memory, D, LANES, LANES, &glm_state));
        if (exact) glm_state.irls.tolerance = 1e-12;
        draw_chain(&glm_state, prior.chain, &view, s[exact]);
      }
      for (int i = 0; i < D; i++) {
        double mean[2] = {0}, variance[2] = {0}, largest = 0;
        for (int e = 0; e < 2; e++) {
          const double *x = s[e] + i * LANES;
          for (int n = 0; n < LANES; n++) mean[e] += x[n] / LANES;
          for (int n = 0; n < LANES; n++) variance[e] += (x[n] - mean[e]) * (x[n] - mean[e]) / LANES;
        }
        for (int n = i * LANES; n < (i + 1) * LANES; n++) largest = fmax(largest, fabs(s[0][n] - s[1][n]));
        CHECK_NEAR((mean[0] - mean[1]) / sqrt(variance[1]), 0, 1e-3);
        CHECK_NEAR(sqrt(variance[0] / variance[1]), 1, 1e-3);
        CHECK_NEAR(largest / sqrt(variance[1]), 0, 0.1);
        CU_ASSERT(largest > 0); /* the tolerance was in force */
      }
      free(s[0]);
      free(s[1]);
    }
}

/* ---- dps */

/* Returns the deviance at S_0_hat(s); S_0_hat goes to clean[d]. */
static double deviance_at(const Chain *chain, int t, const Rows *rows, const double *s, double *clean) {
  const double bar = chain->schedule.alpha_bar[t];
  double theta[D_MOST], sum = 0;
  chain->noise(chain, t, 1, s, clean);
  for (int i = 0; i < chain->d; i++) {
    clean[i] = (s[i] - sqrt(1 - bar) * clean[i]) / sqrt(bar);
    theta[i] = chain->shift[i] + chain->scale[i] * clean[i];
  }
  for (int l = 0; l < rows->n; l++) {
    double y = rows->y[l], best = 0; /* of logistic rewards 0 */
    if (rows->likelihood.ops == likelihood_find("poisson") && y > 0) best = y * log(y) - y;
    sum += 2 * (best - log_reward(rows, y, predicted(rows, l, theta)));
  }
  return sum;
}

/* Checks the gradient of dps by central differences of step 1e-5: 1e-6 of the deviance. */
static void test_dps_gradient(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, STAGES = 20 };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    PriorFit fit = fixture_fit(STAGES, 0.9, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, D, 3, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    const Chain *chain = prior.chain;
    Rows rows = make_rows(&likelihood, D, 12, 1.5, 7);
    History history = make_history(&memory, 1, &rows, &likelihood);
    const HistoryView view = {&history, 1, 0, 1, chain->shift, chain->scale};
    const DpsEvidence evidence = {.d = D, .lanes = 1, .rows = &view, .variance = 1};
    for (int t = 1; t <= STAGES; t += 3) {
      double s[D], clean[D], deviance, gradient[D], half[D], scratch[D], point[D], expected_clean[D];
      const double h = 1e-5;
      Rng rng = fixture_rng((uint32_t)t, 5);
      rng_normal(&rng, D, s);
      const DpsPoint at = {
          .denoised = clean, .residual = &deviance, .gradient = gradient, .scratch = scratch};
      dps_gradient(chain, t, &evidence, DPS_THROUGH_NETWORK, s, &at);
      double sum = deviance_at(chain, t, &rows, s, expected_clean);
      CHECK_NEAR(deviance, sum, 1e-10 * (1 + sum));
      for (int i = 0; i < D; i++) {
        double moved[D];
        memcpy(moved, s, sizeof moved);
        moved[i] = s[i] + h;
        double above = deviance_at(chain, t, &rows, moved, point);
        moved[i] = s[i] - h;
        double below = deviance_at(chain, t, &rows, moved, point);
        CHECK_NEAR(clean[i], expected_clean[i], 1e-12 * (1 + fabs(clean[i])));
        CHECK_NEAR(gradient[i], (above - below) / (2 * h), 1e-6 * (1 + sum));
      }
      /* Half the gradient at the estimate: minus that of the log likelihood, as `derivatives` has it. */
      double hessian[D * D], none[D * D] = {0};
      dps_gradient(chain, t, &evidence, DPS_AT_ESTIMATE, s, &at);
      derivatives(&rows, chain->shift, chain->scale, ZEROS, none, clean, half, hessian);
      for (int i = 0; i < D; i++) CHECK_NEAR(gradient[i], -half[i], 1e-10 * (1 + sum));
    }
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"a stage is Theorem 4", test_stage},
                         {"whole draws of Algorithm 2 with Theorem 4", test_algorithm_2},
                         {"the tolerance of IRLS does not show", test_tolerance},
                         {"gradient of dps against finite differences", test_dps_gradient},
                         CU_TEST_INFO_NULL};
  return harness_run("glm_chain", tests);
}
