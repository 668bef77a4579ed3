/* smc_tempered, against the exact posterior of a mixture and quadrature in the plane. */
#include "catch_up_fixture.h"
#include "core/arena.h"
#include "glm_fixture.h"
#include "plane_fixture.h"

static double component_density(const Mixture *mixture, int c, const double *theta) {
  const double *s = mixture->covariance + 4 * c, x = theta[0] - mixture->mean[2 * c],
               y = theta[1] - mixture->mean[2 * c + 1], det = s[0] * s[3] - s[1] * s[2];
  return mixture->weight[c] * exp(-0.5 * (s[3] * x * x - 2 * s[1] * x * y + s[0] * y * y) / det) / sqrt(det);
}

/* Checks one expectation under the posterior, f[draws]: the draws pick from a cloud that is worth ess
 * independent draws, so that the variance of their mean is var(f) (1 / draws + 1 / ess). 5 standard errors.
 * var(f) is that of the draws, or `least` where that is larger. */
static void check_expectation(int draws, double ess, const double *f, double least, double expected) {
  double sum = 0, squares = 0;
  for (int m = 0; m < draws; m++) sum += f[m], squares += f[m] * f[m];
  double variance = squares / draws - sum / draws * (sum / draws);
  CHECK_NEAR(sum / draws, expected, 5 * sqrt(fmax(variance, least) * (1.0 / draws + 1 / ess)));
}

/* Checks draws theta[2, runs x draws] of one run; the prior's weight of component 0 at theta has the
 * posterior weight of component 0 as its mean. */
static void check_plane(const Mixture *prior, const PlanePosterior *exact, int runs, int draws, int run,
                        double ess, const double *theta) {
  double *f = fixture_new((size_t)draws, sizeof *f);
  const double *x[2] = {theta + run * draws, theta + (runs + run) * draws};
  for (int i = 0; i < 2; i++) check_expectation(draws, ess, x[i], 0, exact->total_mean[i]);
  for (int k = 0; k < 4; k++) {
    for (int m = 0; m < draws; m++)
      f[m] = (x[k / 2][m] - exact->total_mean[k / 2]) * (x[k % 2][m] - exact->total_mean[k % 2]);
    check_expectation(draws, ess, f, 0, exact->total_covariance[k]);
  }
  for (int m = 0; m < draws; m++) {
    const double point[2] = {x[0][m], x[1][m]}, first = component_density(prior, 0, point);
    f[m] = first / (first + component_density(prior, 1, point));
  }
  /* A share: its variance is at most p (1 - p), which draws of a rare mode underestimate. */
  check_expectation(draws, ess, f, exact->weight[0] * (1 - exact->weight[0]), exact->weight[0]);
  free(f);
}

/* Draws n unit-ball rows for theta* = (0.8, 0.8) or (0.8, -0.8) by the run; sums into lambda[4], b[2]. */
static void cross_row(Rng *rng, int run, double *phi, double *y, double *lambda, double *b) {
  double normal[3], length;
  rng_normal(rng, 3, normal);
  length = 1.2 * hypot(normal[0], normal[1]);
  for (int i = 0; i < 2; i++) phi[i] = normal[i] / length;
  *y = 0.8 * phi[0] + (run % 2 ? -0.8 : 0.8) * phi[1] + normal[2];
  for (int i = 0; i < 2; i++) {
    b[i] += phi[i] * *y;
    for (int j = 0; j < 2; j++) lambda[2 * i + j] += phi[i] * phi[j];
  }
}

static void test_tempered_has_the_exact_posterior(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 4, DRAWS = 8000 };
  const int sizes[] = {1, 20, 200};
  const char *particles = "particles=4000";
  const Likelihood likelihood = fixture_likelihood(1);
  Mixture mixture = fixture_cross(&memory);
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  double *theta = fixture_new(2 * RUNS * DRAWS, sizeof *theta);
  for (int k = 0; k < 3; k++) {
    double lambda[RUNS][4] = {{0}}, b[RUNS][2] = {{0}};
    History history;
    Rng rng[RUNS];
    CHECK_OK(history_create(&memory, 2, RUNS, &likelihood, &history));
    for (int run = 0; run < RUNS; run++) rng[run] = fixture_rng((uint32_t)run, 6000);
    for (int l = 0; l < sizes[k]; l++) {
      double phi[2 * RUNS], y[RUNS], row[2];
      for (int run = 0; run < RUNS; run++) {
        cross_row(&rng[run], run, row, &y[run], lambda[run], b[run]);
        phi[run] = row[0], phi[RUNS + run] = row[1];
      }
      history_record(&history, NULL, phi, y);
    }
    FixtureSampler smc =
        make_sampler(&memory, "smc_tempered", &prior, &likelihood, 0, RUNS, DRAWS, 1, &particles);
    draw_into(&smc, &history, DRAWS, theta);
    for (int run = 0; run < RUNS; run++) {
      PlanePosterior exact = plane_posterior(&mixture, lambda[run], b[run]);
      CU_ASSERT(smc.sampler.notes[run].ess >= 0.48 * 4000 && smc.sampler.notes[run].ess <= 4000);
      CU_ASSERT_EQUAL(smc.fallbacks[run], 0);
      check_plane(&mixture, &exact, RUNS, DRAWS, run, smc.sampler.notes[run].ess, theta);
    }
    free_sampler(&smc);
  }
  free(theta);
}

/* Computes the posterior by the midpoint rule on [-6, 6]^2 (steps of 0.02, against a narrowest scale of
 * 0.07). */
static PlanePosterior quadrature(const Mixture *prior, const Rows *rows) {
  enum { GRID = 600 };
  PlanePosterior out = {.total_mean = {0}};
  double total = 0, at_zero = log_likelihood(rows, ZEROS);
  for (int pass = 0; pass < 2; pass++)
    for (int a = 0; a < GRID * GRID; a++) {
      const double theta[2] = {-6 + 12 * (a / GRID + 0.5) / GRID, -6 + 12 * (a % GRID + 0.5) / GRID};
      double likelihood = exp(log_likelihood(rows, theta) - at_zero);
      double first = component_density(prior, 0, theta) * likelihood;
      double density = first + component_density(prior, 1, theta) * likelihood;
      if (pass == 0) {
        total += density, out.weight[0] += first;
        for (int i = 0; i < 2; i++) out.total_mean[i] += density * theta[i];
      } else {
        for (int i = 0; i < 4; i++)
          out.total_covariance[i] += density / total * (theta[i / 2] - out.total_mean[i / 2]) *
                                     (theta[i % 2] - out.total_mean[i % 2]);
      }
      if (pass == 0 && a == GRID * GRID - 1)
        for (int i = 0; i < 2; i++) out.total_mean[i] /= total;
    }
  out.weight[0] /= total;
  return out;
}

static void check_quadrature(const char *name) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, DRAWS = 8000, N = 30 };
  const Likelihood likelihood = glm(name);
  const char *particles = "particles=4000";
  const Rows rows[RUNS] = {make_rows(&likelihood, 2, N, 1.5, 1), make_rows(&likelihood, 2, N, 1.5, 2)};
  Mixture mixture = fixture_cross(&memory);
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = make_history(&memory, RUNS, rows, &likelihood);
  double *theta = fixture_new(2 * RUNS * DRAWS, sizeof *theta);
  FixtureSampler smc =
      make_sampler(&memory, "smc_tempered", &prior, &likelihood, 0, RUNS, DRAWS, 1, &particles);
  draw_into(&smc, &history, DRAWS, theta);
  for (int run = 0; run < RUNS; run++) {
    PlanePosterior exact = quadrature(&mixture, &rows[run]);
    check_plane(&mixture, &exact, RUNS, DRAWS, run, smc.sampler.notes[run].ess, theta);
    CU_ASSERT_EQUAL(smc.fallbacks[run], 0);
  }
  free_sampler(&smc);
  free(theta);
}

static void test_tempered_with_other_likelihoods(void) {
  check_quadrature("logistic");
  check_quadrature("poisson");
}

/* Checks two particles, which have no covariance in the plane: the Cholesky factor needs jitter, and that is
 * counted. */
static void test_two_particles(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 10 };
  const Likelihood likelihood = fixture_likelihood(1);
  const char *particles = "particles=2";
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  int64_t fallbacks;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  History history = fixture_history(&memory, 2, 1, 0, 3, &likelihood);
  double *theta =
      fixture_draw(sampler_find("smc_tempered"), &prior, &history, 0, DRAWS, 1, &particles, &fallbacks);
  for (int m = 0; m < 2 * DRAWS; m++) CU_ASSERT(isfinite(theta[m]));
  CU_ASSERT(fallbacks > 0);
  free(theta);
}

/* Checks that by default there are 20 d^2 particles, at least 1000: the last weighting leaves half of them or
 * more. */
static void test_particles_grow(void) {
  static const int dimensions[] = {3, 20}, particles[] = {1000, 8000};
  for (int k = 0; k < 2; k++) {
    SCRATCH_ARENA(memory);
    enum { DRAWS = 10 };
    const int d = dimensions[k];
    const Likelihood likelihood = fixture_likelihood(1);
    PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
    Prior prior;
    CHECK_OK(prior_standard(&memory, d, &fit, &prior));
    History history;
    const double phi[20] = {1, 1}, y = 3;
    CHECK_OK(history_create(&memory, d, 1, &likelihood, &history));
    CHECK_OK(history_reserve(&history, 1));
    history_record(&history, NULL, phi, &y);
    double *theta = fixture_new((size_t)(d * DRAWS), sizeof *theta);
    FixtureSampler smc = make_sampler(&memory, "smc_tempered", &prior, &likelihood, 0, 1, DRAWS, 0, NULL);
    draw_into(&smc, &history, DRAWS, theta);
    CU_ASSERT(smc.sampler.notes[0].ess >= 0.48 * particles[k] && smc.sampler.notes[0].ess <= particles[k]);
    free_sampler(&smc);
    free(theta);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"exact posterior of a mixture", test_tempered_has_the_exact_posterior},
                         {"quadrature with other likelihoods", test_tempered_with_other_likelihoods},
                         {"two particles", test_two_particles},
                         {"particles grow with the dimension", test_particles_grow},
                         CU_TEST_INFO_NULL};
  return harness_run("smc_tempered", tests);
}
