/* The closed-form priors and their exact reverse chains, against SciPy's densities, differences of the noised
 * density, and the linear recursion that the chain of a Gaussian follows. */
#include "core/arena.h"
#include "mixture_golden.h"
#include "model/mixture/mixture_density.h"
#include "model/prior/prior_oracle.h"
#include "sampler_fixture.h"

static const int DIMENSIONS[] = {1, 2, 5};
enum { DIMENSION_COUNT = 3 };

static void test_golden_density(void) {
  SCRATCH_ARENA(memory);
  StoreFile *file = golden_open();
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c];
    PriorFit fit = golden_fit();
    Mixture mixture = golden_mixture(&memory, file, d);
    double points[GOLDEN_MOST * GOLDEN_POINTS], density[GOLDEN_POINTS], expected[GOLDEN_POINTS];
    double score[GOLDEN_MOST * GOLDEN_POINTS], expected_score[GOLDEN_MOST * GOLDEN_POINTS];
    Prior prior;
    CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &prior));
    golden_read(file, "points", d, points);
    golden_read(file, "density", d, expected);
    golden_read(file, "score", d, expected_score);
    prior.ops->log_density(&prior, GOLDEN_POINTS, points, density);
    prior.ops->score(&prior, GOLDEN_POINTS, points, score, NULL);
    for (int n = 0; n < GOLDEN_POINTS; n++)
      CHECK_NEAR(density[n], expected[n], 1e-10 * (1 + fabs(expected[n])));
    for (int n = 0; n < d * GOLDEN_POINTS; n++)
      CHECK_NEAR(score[n], expected_score[n], 1e-9 * (1 + fabs(expected_score[n])));
  }
  store_abandon(file);
}

/* Checks eps = -sqrt(1 - abar) grad log q(s_t), by differences of the density of the noised mixture; stages
 * in any order; also at far points (100 standard deviations). */
static void test_exact_noise(void) {
  SCRATCH_ARENA(memory);
  enum { POINTS = 40 };
  StoreFile *file = golden_open();
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    for (int standardise = 0; standardise < 2; standardise++) {
      int d = DIMENSIONS[c], stages[] = {50, 1, 7, 50, 100};
      PriorFit fit = golden_fit();
      fit.schedule.stages = 100, fit.schedule.alpha = 0.97, fit.standardise = standardise;
      Mixture mixture = golden_mixture(&memory, file, d);
      Prior prior;
      CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &prior));
      CU_ASSERT_PTR_NULL(prior.chain->loss);
      double mean[GOLDEN_MOST], covariance[25];
      golden_read(file, "total_mean", d, mean);
      golden_read(file, "total_covariance", d, covariance);
      for (int i = 0; i < d; i++) {
        CHECK_NEAR(prior.chain->shift[i], standardise ? mean[i] : 0, 1e-12);
        CHECK_NEAR(prior.chain->scale[i], standardise ? sqrt(covariance[i * d + i]) : 1, 1e-12);
      }
      for (int k = 0; k < 5; k++) {
        Mixture reference = fixture_noised(&memory, &mixture, prior.chain, stages[k]);
        double s[GOLDEN_MOST * POINTS], eps[GOLDEN_MOST * POINTS], up[POINTS], down[POINTS], step = 1e-5;
        RngLanes rng = golden_lanes(POINTS, 20);
        rng_lanes_normal(&rng, d, s);
        for (int n = POINTS / 2; n < POINTS; n++) s[n] = n % 2 ? 100 : -100;
        prior.chain->noise(prior.chain, stages[k], POINTS, s, eps);
        for (int i = 0; i < d; i++) {
          double *row = s + i * POINTS;
          for (int n = 0; n < POINTS; n++) row[n] += step;
          mixture_log_density(&reference, POINTS, s, up);
          for (int n = 0; n < POINTS; n++) row[n] -= 2 * step;
          mixture_log_density(&reference, POINTS, s, down);
          for (int n = 0; n < POINTS; n++) row[n] += step;
          double factor = -sqrt(1 - prior.chain->schedule.alpha_bar[stages[k]]);
          for (int n = 0; n < POINTS; n++) {
            double rounding = 1e-15 * (fabs(up[n]) + 1) / step;
            CHECK_NEAR(eps[i * POINTS + n], factor * (up[n] - down[n]) / (2 * step), 1e-6 + 2 * rounding);
          }
        }
      }
    }
  }
  store_abandon(file);
}

/* Checks d eps / d s by central differences of eps, whose error is of the order of the third derivatives
 * times the square of the step, plus the rounding of eps over the step. Also at far points, where a wrong
 * order of sums would cancel, and for components with independent coordinates, which have zeros to skip. */
static void test_exact_jacobian(void) {
  SCRATCH_ARENA(memory);
  enum { POINTS = 70, MOST = GOLDEN_MOST };
  StoreFile *file = golden_open();
  for (int c = 0; c < 2 * DIMENSION_COUNT; c++) {
    const int d = DIMENSIONS[c / 2], stages[] = {1, 40, 100}, independent = c % 2;
    PriorFit fit = golden_fit();
    fit.schedule.stages = 100, fit.schedule.alpha = 0.97;
    Mixture mixture = golden_mixture(&memory, file, d);
    for (int k = 0; independent && k < mixture.components * d * d; k++)
      if (k % (d * d) % (d + 1) != 0) mixture.covariance[k] = 0;
    Prior prior;
    CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &prior));
    for (int k = 0; k < 3; k++) {
      double s[MOST * POINTS], eps[MOST * POINTS], same[MOST * POINTS], up[MOST * POINTS],
          down[MOST * POINTS];
      double jacobian[MOST * MOST * POINTS], step = 1e-5;
      RngLanes rng = golden_lanes(POINTS, 23);
      rng_lanes_normal(&rng, d, s);
      for (int n = 60; n < POINTS; n++) s[n] = n % 2 ? 100 : -100;
      prior.chain->noise_jacobian(prior.chain, stages[k], POINTS, s, eps, jacobian);
      prior.chain->noise(prior.chain, stages[k], POINTS, s, same);
      for (int n = 0; n < d * POINTS; n++) CHECK_NEAR(eps[n], same[n], 1e-11 * (1 + fabs(same[n])));
      for (int j = 0; j < d; j++) {
        double *row = s + j * POINTS;
        for (int n = 0; n < POINTS; n++) row[n] += step;
        prior.chain->noise(prior.chain, stages[k], POINTS, s, up);
        for (int n = 0; n < POINTS; n++) row[n] -= 2 * step;
        prior.chain->noise(prior.chain, stages[k], POINTS, s, down);
        for (int n = 0; n < POINTS; n++) row[n] += step;
        for (int i = 0; i < d; i++)
          for (int n = 0; n < POINTS; n++) {
            const int at = i * POINTS + n;
            const double expected = (up[at] - down[at]) / (2 * step);
            CHECK_NEAR(jacobian[(i * d + j) * POINTS + n], expected,
                       1e-5 * (1 + fabs(expected)) + 1e-15 * fabs(up[at]) / step);
            CHECK_NEAR(jacobian[(i * d + j) * POINTS + n], jacobian[(j * d + i) * POINTS + n], 0);
          }
      }
    }
  }
  store_abandon(file);
}

/* Checks the chain of a Gaussian. It is linear: along the coordinates of a diagonal covariance the variance
 * follows v_{t-1} = g_t^2 v_t + Sigma_t with g_t = (1 - beta_t / (abar_t l + 1 - abar_t)) / sqrt(alpha_t). 5
 * standard errors. */
static void test_gaussian_chain(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, N = 40000 };
  PriorFit fit = golden_fit();
  fit.standardise = false;
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, D, 1, &mixture));
  mixture.weight[0] = 1, mixture.covariance[0] = 0.3, mixture.covariance[3] = 1.7;
  for (int literal = 0; literal < 2; literal++) {
    fit.last_stage = literal ? LAST_STAGE_LITERAL : LAST_STAGE_REPAIRED;
    Prior prior;
    CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &prior));
    const Schedule *schedule = &prior.chain->schedule;
    double *theta = golden_array(D * N), *scratch = golden_array(2 * D * N), mean[D] = {0},
           covariance[D * D] = {0};
    for (int i = 0; i < D; i++) {
      double variance = 1;
      for (int t = schedule->stages; t >= 1; t--) {
        double signal = schedule->alpha_bar[t],
               marginal = signal * mixture.covariance[i * D + i] + 1 - signal;
        double gain = (1 - schedule->beta[t] / marginal) / sqrt(schedule->alpha[t]);
        double added = t > 1 ? schedule->beta_tilde[t] : literal ? 0 : schedule->beta_tilde[2];
        variance = gain * gain * variance + added;
      }
      covariance[i * D + i] = variance;
    }
    RngLanes rng = golden_lanes(N, 21);
    denoiser_chain_sample(prior.chain, &rng, theta, scratch);
    CU_ASSERT(golden_moment_error(D, N, theta, mean, covariance) < 5);
    free(theta), free(scratch);
  }
}

/* Checks that the exact chain gives back the mixture's moments as its step shrinks. The chain is narrower
 * than the mixture, because beta_tilde is the reverse variance of a point mass: by up to 0.11 of a variance
 * with 100 stages, 0.06 with 400, 0.03 with 1600 (measured; the statistical error is 0.01 of a standard
 * deviation, 0.02 of a variance). */
static void test_mixture_chain(void) {
  SCRATCH_ARENA(memory);
  enum { N = 20000 };
  const int stages[] = {100, 400};
  const double tolerance[] = {0.15, 0.09};
  StoreFile *file = golden_open();
  for (int c = 0; c < 2 * DIMENSION_COUNT; c++) {
    int d = DIMENSIONS[c / 2], fine = c % 2;
    PriorFit fit = golden_fit();
    fit.schedule.stages = stages[fine], fit.schedule.alpha = pow(0.92, 100.0 / stages[fine]);
    Mixture mixture = golden_mixture(&memory, file, d);
    Prior prior;
    CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &prior));
    double *theta = golden_array((size_t)d * N), *scratch = golden_array(2 * (size_t)d * N);
    double mean[GOLDEN_MOST], covariance[25], reached_mean[GOLDEN_MOST], reached[25];
    RngLanes rng = golden_lanes(N, 22);
    denoiser_chain_sample(prior.chain, &rng, theta, scratch);
    golden_moments(d, N, theta, reached_mean, reached);
    golden_read(file, "total_mean", d, mean);
    golden_read(file, "total_covariance", d, covariance);
    for (int i = 0; i < d; i++) {
      CHECK_NEAR(reached_mean[i], mean[i], 0.05 * sqrt(covariance[i * d + i]));
      for (int j = 0; j < d; j++)
        CHECK_NEAR(reached[i * d + j], covariance[i * d + j],
                   tolerance[fine] * sqrt(covariance[i * d + i] * covariance[j * d + j]));
    }
    free(theta), free(scratch);
  }
  store_abandon(file);
}

/* Computes what prior_score asks of a function, here for the exact chain: E[x_0 | x_t] = (x - sqrt(1 - abar)
 * eps) / sqrt(abar). */
static int mean_of_chain(void *context, int m, int d, const double *x, int t, double *mean) {
  const Chain *chain = context;
  enum { MOST = 128 };
  double s[GOLDEN_MOST * MOST], eps[GOLDEN_MOST * MOST], of_state, of_noise;
  if (m > MOST || x[0] > 50) return 1;
  schedule_denoise_factors(&chain->schedule, t, &of_state, &of_noise);
  for (int k = 0; k < m; k++)
    for (int i = 0; i < d; i++) s[i * m + k] = x[k * d + i];
  chain->noise(chain, t, m, s, eps);
  for (int k = 0; k < m; k++)
    for (int i = 0; i < d; i++) mean[k * d + i] = of_state * s[i * m + k] + of_noise * eps[i * m + k];
  return 0;
}

/* Checks a chain made from means that a function supplies: the noise up to rounding, products with its
 * Jacobian up to the central differences (3e-3 of the noise: 1e-4 of a product, measured 2e-5 at most), a
 * direction of 0, and NaN where the function fails; with more lanes than one question holds. */
static void test_chain_of_means(void) {
  SCRATCH_ARENA(memory);
  enum { POINTS = 200 };
  StoreFile *file = golden_open();
  for (int c = 0; c < DIMENSION_COUNT; c++) {
    const int d = DIMENSIONS[c], stages[] = {1, 7, 100};
    PriorFit fit = golden_fit();
    fit.schedule.stages = 100, fit.schedule.alpha = 0.97, fit.standardise = false;
    Mixture mixture = golden_mixture(&memory, file, d);
    Prior exact, given;
    CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &exact));
    CHECK_OK(prior_score(&memory, d, 100, exact.chain->schedule.alpha_bar + 1, mean_of_chain,
                         (void *)(uintptr_t)exact.chain, &given));
    for (int k = 0; k < 3; k++) {
      double s[GOLDEN_MOST * POINTS], v[GOLDEN_MOST * POINTS], mine[GOLDEN_MOST * POINTS],
          expected[GOLDEN_MOST * POINTS];
      RngLanes rng = golden_lanes(POINTS, 24);
      rng_lanes_normal(&rng, d, s);
      rng_lanes_normal(&rng, d, v);
      for (int i = 0; i < d; i++) v[i * POINTS + 1] = 0;
      given.chain->noise(given.chain, stages[k], POINTS, s, mine);
      exact.chain->noise(exact.chain, stages[k], POINTS, s, expected);
      for (int n = 0; n < d * POINTS; n++) CHECK_NEAR(mine[n], expected[n], 1e-9 * (1 + fabs(expected[n])));
      given.chain->noise_vjp(given.chain, stages[k], POINTS, s, v, mine);
      exact.chain->noise_vjp(exact.chain, stages[k], POINTS, s, v, expected);
      for (int n = 0; n < d * POINTS; n++) CHECK_NEAR(mine[n], expected[n], 1e-4 * (1 + fabs(expected[n])));
      s[0] = 60;
      given.chain->noise(given.chain, stages[k], POINTS, s, mine);
      CU_ASSERT_TRUE(isnan(mine[0]));
    }
    const double rising[] = {0.5, 0.6};
    CU_ASSERT_EQUAL(prior_score(&memory, d, 2, rising, mean_of_chain, NULL, &given), STATUS_INPUT);
  }
  store_abandon(file);
}

int main(void) {
  CU_TestInfo tests[] = {{"densities against SciPy", test_golden_density},
                         {"noise of the exact chain", test_exact_noise},
                         {"Jacobian of the noise", test_exact_jacobian},
                         {"exact chain of a Gaussian", test_gaussian_chain},
                         {"exact chain of a mixture", test_mixture_chain},
                         {"chain of somebody else's means", test_chain_of_means},
                         CU_TEST_INFO_NULL};
  return harness_run("exact_chain", tests);
}
