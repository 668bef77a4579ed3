/* The recursive variational Gaussian approximation: closed form for Gaussian rewards; for logistic and
 * Poisson ones its implicit equations, checked by dense quadrature, and the posterior in two dimensions. */
#include "catch_up_fixture.h"
#include "core/arena.h"
#include "glm_fixture.h"

static Prior standard_prior(Arena *memory, int d) {
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  ASSERT(prior_standard(memory, d, &fit, &prior) == STATUS_OK);
  return prior;
}

static void test_gaussian_rewards(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 70 };
  static const char *const sets[] = {"eta=6", "lambda=0.3"};
  for (int d = 1; d <= 19; d += 9) {
    const Likelihood likelihood = fixture_likelihood(0.7);
    Prior prior = standard_prior(&memory, d);
    Rounds rounds = make_rounds(d, 0, RUNS, 12, false, &likelihood);
    History history = empty_history(&memory, &rounds, &likelihood);
    FixtureSampler rvga = make_sampler(&memory, "rvga", &prior, &likelihood, 0, RUNS, 1, 2, sets);
    double *mean = fixture_new((size_t)(d * RUNS), sizeof *mean);
    double *covariance = fixture_new((size_t)(d * d * RUNS), sizeof *covariance);
    double precision[400], expected[400], target[20];
    for (int l = 0; l < rounds.n; l++) {
      append_round(&history, &rounds, l);
      sampler_observe(&rvga.sampler, &history, rvga.fallbacks);
    }
    rvga.sampler.ops->gaussian(&rvga.sampler, mean, covariance);
    for (int run = 0; run < RUNS; run++) {
      linear_target(&history, run, 6, 0.3, precision, expected, target);
      for (int i = 0; i < d; i++) CHECK_NEAR(mean[i * RUNS + run], target[i], 1e-11);
      for (int i = 0; i < d * d; i++) CHECK_NEAR(covariance[i * RUNS + run], expected[i], 1e-12);
    }
    free(mean);
    free(covariance);
    free_sampler(&rvga);
    free_rounds(&rounds);
  }
}

/* Computes E[l'(u)] and E[-l''(u)] for u ~ N(alpha, nu), by the trapezoidal rule. */
static void expect(const Rows *rows, double y, double alpha, double nu, double *slope, double *curvature) {
  enum { POINTS = 2001 };
  double total = 0;
  *slope = *curvature = 0;
  for (int k = 0; k < POINTS; k++) {
    double x = -10 + 20.0 * k / (POINTS - 1), weight = exp(-0.5 * x * x);
    double mean = mean_reward(rows, alpha + sqrt(nu) * x);
    total += weight;
    *slope += weight * (y - mean);
    *curvature += weight * (rows->likelihood.ops == likelihood_find("logistic") ? mean * (1 - mean) : mean);
  }
  *slope /= total, *curvature /= total;
}

/* Checks the implicit equations after one observation from N(0, I): P = I + k phi phi', mu = s phi with s =
 * E[l'], k = E[-l''] under N(mu, P^-1) itself. Tolerance: the error of 20 nodes at variances up to 6. */
static void test_implicit_equations(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, RUNS = 20 };
  static const char *const names[] = {"logistic", "poisson"};
  for (int l = 0; l < 2; l++) {
    const Likelihood likelihood = glm(names[l]);
    Prior prior = standard_prior(&memory, D);
    Rows rows[RUNS];
    for (int run = 0; run < RUNS; run++) rows[run] = make_rows(&likelihood, D, 1, 1.5, (uint32_t)run);
    History history = make_history(&memory, RUNS, rows, &likelihood);
    FixtureSampler rvga = make_sampler(&memory, "rvga", &prior, &likelihood, 0, RUNS, 1, 0, NULL);
    double mean[D * RUNS], covariance[D * D * RUNS];
    sampler_observe(&rvga.sampler, &history, rvga.fallbacks);
    rvga.sampler.ops->gaussian(&rvga.sampler, mean, covariance);
    for (int run = 0; run < RUNS; run++) {
      const double *phi = rows[run].phi[0];
      double alpha = 0, nu = 0, square = 0, slope, curvature;
      for (int i = 0; i < D; i++) {
        alpha += phi[i] * mean[i * RUNS + run], square += phi[i] * phi[i];
        for (int j = 0; j < D; j++) nu += phi[i] * covariance[(i * D + j) * RUNS + run] * phi[j];
      }
      expect(&rows[run], rows[run].y[0], alpha, nu, &slope, &curvature);
      CHECK_NEAR(nu, square / (1 + square * curvature), 1e-4 * nu);
      for (int i = 0; i < D; i++) CHECK_NEAR(mean[i * RUNS + run], slope * phi[i], 1e-4);
    }
    free_sampler(&rvga);
  }
}

/* Checks 60 logistic observations in two dimensions: mean within a quarter of a posterior standard deviation
 * and variances within 10 % of the posterior's, by quadrature. (One pass over the observations errs by this
 * much: the first ones are absorbed under a wide Gaussian.) */
static void test_posterior(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, N = 60, POINTS = 301 };
  const Likelihood likelihood = glm("logistic");
  Prior prior = standard_prior(&memory, D);
  for (uint32_t seed = 0; seed < 3; seed++) {
    Rows rows = make_rows(&likelihood, D, N, 2, seed);
    History history = make_history(&memory, 1, &rows, &likelihood);
    FixtureSampler rvga = make_sampler(&memory, "rvga", &prior, &likelihood, 0, 1, 1, 0, NULL);
    double mean[D], covariance[D * D], sums[5] = {0}, largest = -INFINITY;
    for (int pass = 0; pass < 2; pass++)
      for (int k = 0; k < POINTS * POINTS; k++) {
        double theta[D] = {-6 + 12.0 * (k / POINTS) / (POINTS - 1), -6 + 12.0 * (k % POINTS) / (POINTS - 1)};
        double log_weight = log_likelihood(&rows, theta) - 0.5 * (theta[0] * theta[0] + theta[1] * theta[1]);
        if (pass == 0) {
          largest = fmax(largest, log_weight);
          continue;
        }
        double weight = exp(log_weight - largest);
        sums[0] += weight;
        for (int i = 0; i < 2; i++)
          sums[1 + i] += weight * theta[i], sums[3 + i] += weight * theta[i] * theta[i];
      }
    sampler_observe(&rvga.sampler, &history, rvga.fallbacks);
    rvga.sampler.ops->gaussian(&rvga.sampler, mean, covariance);
    for (int i = 0; i < 2; i++) {
      double expected = sums[1 + i] / sums[0], variance = sums[3 + i] / sums[0] - expected * expected;
      CHECK_NEAR(mean[i], expected, 0.25 * sqrt(variance));
      CHECK_NEAR(covariance[i * D + i], variance, 0.1 * variance);
    }
    free_sampler(&rvga);
  }
}

/* Checks that the recursion is the same whether told round by round or all at once. */
static void test_catching_up(void) {
  SCRATCH_ARENA(memory);
  enum { D = 4, RUNS = 3, N = 9 };
  const Likelihood likelihood = glm("logistic");
  Prior prior = standard_prior(&memory, D);
  Rounds rounds = make_rounds(D, 0, RUNS, N, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  FixtureSampler told = make_sampler(&memory, "rvga", &prior, &likelihood, 0, RUNS, 2, 0, NULL);
  FixtureSampler late = make_sampler(&memory, "rvga", &prior, &likelihood, 0, RUNS, 2, 0, NULL);
  for (int l = 0; l < N; l++) {
    append_round(&history, &rounds, l);
    sampler_observe(&told.sampler, &history, told.fallbacks);
  }
  double *first = draw_from(&told, &history, 2), *second = draw_from(&late, &history, 2);
  CU_ASSERT(memcmp(first, second, D * RUNS * 2 * sizeof *first) == 0);
  free(first);
  free(second);
  free_sampler(&told);
  free_sampler(&late);
  free_rounds(&rounds);
}

int main(void) {
  CU_TestInfo tests[] = {{"Gaussian rewards: the closed form", test_gaussian_rewards},
                         {"the implicit equations hold", test_implicit_equations},
                         {"near the posterior of logistic rewards", test_posterior},
                         {"told one by one or all at once", test_catching_up},
                         CU_TEST_INFO_NULL};
  return harness_run("rvga", tests);
}
