/* Langevin Monte Carlo and Feel-Good Thompson sampling: the law of the unadjusted chain on Gaussian targets,
 * which is known in closed form, and the feel-good term by quadrature. */
#include "core/arena.h"
#include "sampler/gradient/step_size.h"

#include "catch_up_fixture.h"
#include "glm_fixture.h"

enum { STEP_DIMENSION = 21 };

static Prior standard_prior(Arena *memory, int d) {
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  ASSERT(prior_standard(memory, d, &fit, &prior) == STATUS_OK);
  return prior;
}

/* Returns N(0, variance) in one dimension. */
static Prior wide_prior(Arena *memory, double variance) {
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture;
  ASSERT(mixture_create(memory, 1, 1, &mixture) == STATUS_OK);
  *mixture.weight = 1, *mixture.covariance = variance;
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  return fixture_exact_prior(memory, &mixture, &fit);
}

/* Returns theta[d, chains] after `steps` updates from the start, on the evidence of `n` rounds, with a prior
 * of mean 0 and equal variances. */
static double *run_chains(Arena *memory, const char *name, Prior prior, int n, int chains, int set_count,
                          const char *const *sets, const Likelihood *likelihood, double *precision,
                          double *covariance, double *mean, double eta) {
  const int d = prior.d;
  Rounds rounds = make_rounds(d, 0, 1, n, false, likelihood);
  History history = empty_history(memory, &rounds, likelihood);
  for (int l = 0; l < n; l++) append_round(&history, &rounds, l);
  FixtureSampler chain = make_sampler(memory, name, &prior, likelihood, 0, 1, chains, set_count, sets);
  sampler_observe(&chain.sampler, &history, chain.fallbacks);
  double *theta = draw_from(&chain, &history, chains);
  CU_ASSERT_EQUAL(chain.fallbacks[0], 0);
  if (precision)
    linear_target(&history, 0, eta, *mixture_precision(prior.mixture, 0), precision, covariance, mean);
  free_sampler(&chain);
  free_rounds(&rounds);
  return theta;
}

/* Checks that theta' = (I - h P) theta + .. + sqrt(2 h) z settles at the mean of the target and the
 * covariance S with S = (I - h P) S (I - h P) + 2 h I: S = (P - h P^2 / 2)^-1. Within 5 standard errors of
 * 8000 chains; h = 0.6 / lambda_max would be off by 40 %, so the bias itself is tested. */
static void test_stationary_law(void) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 8000, N = 8 };
  const Likelihood likelihood = fixture_likelihood(0.7);
  for (int d = 1; d <= 3; d++) {
    /* h / (eta t): the same for all chains and steps. */
    static const char *const sets[] = {"eta=3", "step_rule=eta_t", "step_size=0.5", "steps=400"};
    const double h = 0.5 / (3 * N);
    double precision[9], covariance[9], mean[3], biased[9], expected[9];
    double *theta = run_chains(&memory, "lmc", standard_prior(&memory, d), N, CHAINS, 4, sets, &likelihood,
                               precision, covariance, mean, 3);
    /* Each round repeats `steps` updates; catching up makes N of them. */
    double trace = 0;
    for (int i = 0; i < d; i++) {
      trace += precision[i * d + i];
      for (int j = 0; j < d; j++) {
        biased[i * d + j] = precision[i * d + j];
        for (int k = 0; k < d; k++)
          biased[i * d + j] -= 0.5 * h * precision[i * d + k] * precision[k * d + j];
      }
    }
    fixture_invert(d, biased, expected);
    CU_ASSERT(h * trace / d > 0.1 && h * trace < 2); /* the bias is visible, the chain is stable */
    fixture_check_moments(d, 1, CHAINS, 0, theta, mean, expected, 5);
    free(theta);
  }
}

/* Checks small steps and logistic rewards: mean and covariance by quadrature in two dimensions, within 5
 * standard errors plus 2 % for the bias of a = 0.02 (1 %). */
static void test_logistic_law(void) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 4000, N = 20, POINTS = 201, D = 2 };
  static const char *const sets[] = {"step_size=0.02", "steps=100"};
  const Likelihood likelihood = glm("logistic");
  Prior prior = standard_prior(&memory, D);
  Rows rows = make_rows(&likelihood, D, N, 2, 1);
  History history = make_history(&memory, 1, &rows, &likelihood);
  double moments[6] = {0}, expected[6] = {0}, deviation[2];
  for (int k = 0; k < POINTS * POINTS; k++) {
    double theta[D] = {-6 + 12.0 * (k / POINTS) / (POINTS - 1), -6 + 12.0 * (k % POINTS) / (POINTS - 1)};
    double weight = exp(log_likelihood(&rows, theta) - 0.5 * (theta[0] * theta[0] + theta[1] * theta[1]));
    double terms[6] = {1, theta[0], theta[1], theta[0] * theta[0], theta[0] * theta[1], theta[1] * theta[1]};
    for (int i = 0; i < 6; i++) expected[i] += weight * terms[i];
  }
  for (int i = 5; i >= 0; i--) expected[i] /= expected[0];
  FixtureSampler chain = make_sampler(&memory, "lmc", &prior, &likelihood, 0, 1, CHAINS, 2, sets);
  double *theta = draw_from(&chain, &history, CHAINS); /* catches up: 20 rounds of 100 updates */
  for (int n = 0; n < CHAINS; n++) {
    double x = theta[n], y = theta[CHAINS + n], terms[6] = {1, x, y, x * x, x * y, y * y};
    for (int i = 0; i < 6; i++) moments[i] += terms[i] / CHAINS;
  }
  for (int i = 0; i < 2; i++) {
    double variance = expected[i == 0 ? 3 : 5] - expected[1 + i] * expected[1 + i];
    deviation[i] = sqrt(variance);
    CHECK_NEAR(moments[1 + i], expected[1 + i], 5 * deviation[i] / sqrt(CHAINS) + 0.02 * deviation[i]);
    CHECK_NEAR(moments[i == 0 ? 3 : 5] - moments[1 + i] * moments[1 + i], variance,
               variance * (5 * sqrt(2.0 / CHAINS) + 0.02));
  }
  free(theta);
  free_sampler(&chain);
}

/* Checks that draws are the first chains of each run, whatever their number. */
static void test_draws_are_chains(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, CHAINS = 50, FEW = 7, D = 2 };
  const Likelihood likelihood = fixture_likelihood(0.7);
  Prior prior = standard_prior(&memory, D);
  Rounds rounds = make_rounds(D, 0, RUNS, 3, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  FixtureSampler chain = make_sampler(&memory, "lmc", &prior, &likelihood, 0, RUNS, CHAINS, 0, NULL);
  for (int l = 0; l < rounds.n; l++) {
    append_round(&history, &rounds, l);
    sampler_observe(&chain.sampler, &history, chain.fallbacks);
  }
  double *all = draw_from(&chain, &history, CHAINS), *few = draw_from(&chain, &history, FEW);
  for (int i = 0; i < D * RUNS; i++)
    CU_ASSERT(memcmp(few + i * FEW, all + i * CHAINS, FEW * sizeof *few) == 0);
  free(all);
  free(few);
  free_sampler(&chain);
  free_rounds(&rounds);
}

/* Checks that a chain in a mixture prior starts as a draw from it: both modes are present before the first
 * observation. */
static void test_start_covers_the_modes(void) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 4000 };
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, 1, 2, &mixture));
  mixture.weight[0] = 0.25, mixture.weight[1] = 0.75;
  mixture.mean[0] = -5, mixture.mean[1] = 5;
  mixture.covariance[0] = mixture.covariance[1] = 0.1;
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  Rounds rounds = make_rounds(1, 0, 1, 1, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  FixtureSampler chain = make_sampler(&memory, "lmc", &prior, &likelihood, 0, 1, CHAINS, 0, NULL);
  double *theta = draw_from(&chain, &history, CHAINS);
  int left = 0;
  for (int n = 0; n < CHAINS; n++) left += theta[n] < 0;
  CHECK_NEAR(left / (double)CHAINS, 0.25, 5 * sqrt(0.25 * 0.75 / CHAINS));
  free(theta);
  free_sampler(&chain);
  free_rounds(&rounds);
}

/* ---- Feel-Good Thompson sampling */

static void test_without_feel_good(void) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 30, D = 3 };
  static const char *const none[] = {"optimism=0"};
  const Likelihood likelihood = fixture_likelihood(0.7);
  double *plain = run_chains(&memory, "lmc", standard_prior(&memory, D), 6, CHAINS, 0, NULL, &likelihood,
                             NULL, NULL, NULL, 0);
  double *zero = run_chains(&memory, "fgts", standard_prior(&memory, D), 6, CHAINS, 1, none, &likelihood,
                            NULL, NULL, NULL, 0);
  double *some = run_chains(&memory, "fgts", standard_prior(&memory, D), 6, CHAINS, 0, NULL, &likelihood,
                            NULL, NULL, NULL, 0);
  CU_ASSERT(memcmp(plain, zero, D * CHAINS * sizeof *plain) == 0);
  CU_ASSERT(memcmp(plain, some, D * CHAINS * sizeof *plain) != 0);
  free(plain);
  free(zero);
  free(some);
}

/* Checks the feel-good term in one dimension, also with a prior by which the potential is whitened. The
 * target is exp(-P (x - m)^2 / 2 + eta mu rounds R |x|), by quadrature: mean of x and of |x|, within 5
 * standard errors plus 1 % of a standard deviation for the bias of small steps. */
static void check_feel_good(double prior_variance) {
  SCRATCH_ARENA(memory);
  enum { CHAINS = 10000, N = 6, POINTS = 40001 };
  static const char *const sets[] = {"eta=2", "optimism=0.4", "step_size=0.02", "steps=100"};
  const Likelihood likelihood = fixture_likelihood(0.7);
  double precision, variance, mean, total = 0, first = 0, size = 0, square = 0, sums[2] = {0};
  double *theta = run_chains(&memory, "fgts", wide_prior(&memory, prior_variance), N, CHAINS, 4, sets,
                             &likelihood, &precision, &variance, &mean, 2);
  /* eta (1 / prior_variance + sum phi^2) = precision. */
  const double pull = 2 * 0.4 * sqrt(N * (precision / 2 - 1 / prior_variance));
  for (int k = 0; k < POINTS; k++) {
    double x = mean - 10 + 20.0 * k / (POINTS - 1);
    double weight = exp(-0.5 * precision * (x - mean) * (x - mean) + pull * (fabs(x) - fabs(mean)));
    total += weight, first += weight * x, size += weight * fabs(x), square += weight * x * x;
  }
  first /= total, size /= total, square /= total;
  for (int n = 0; n < CHAINS; n++) sums[0] += theta[n] / CHAINS, sums[1] += fabs(theta[n]) / CHAINS;
  double tolerance = (5 / sqrt(CHAINS) + 0.01) * sqrt(square - first * first);
  CHECK_NEAR(sums[0], first, tolerance);
  CHECK_NEAR(sums[1], size, tolerance);
  CU_ASSERT(fabs(first - mean) > 2 * tolerance); /* the effect of the term is visible */
  free(theta);
}

static void test_feel_good(void) {
  check_feel_good(1);
  check_feel_good(9);
}

/* ---- steps on quadratic potentials */

/* Takes a step as it is written: theta - h (P (theta - mean) - pull theta / |theta|) + sqrt(2 h) z, clipped
 * to the limit; returns how many coordinates were beyond it. */
static int plain_step(int d, const double *precision, const double *mean, double pull, double h, double limit,
                      const double *z, double *theta) {
  double moved[STEP_DIMENSION], square = 0;
  int touched = 0;
  for (int i = 0; i < d; i++) square += theta[i] * theta[i];
  for (int i = 0; i < d; i++) {
    double g = -pull * theta[i] / sqrt(square);
    for (int j = 0; j < d; j++) g += precision[i * d + j] * (theta[j] - mean[j]);
    moved[i] = theta[i] - h * g + sqrt(2 * h) * z[i];
  }
  for (int i = 0; i < d; i++) {
    touched += fabs(moved[i]) > limit;
    theta[i] = fabs(moved[i]) > limit ? copysign(limit, moved[i]) : moved[i];
  }
  return touched;
}

/* Checks three steps of the first round, from where the chains start; of those with the larger feel-good term
 * most leave the guard of 100 deviations. */
static void check_steps(int d, int chains, const char *name, double optimism) {
  SCRATCH_ARENA(memory);
  enum { STEPS = 3 };
  const double eta = 2, h = 0.02 / eta, limit = 100 / sqrt(eta);
  char option[64];
  snprintf(option, sizeof option, "optimism=%g", optimism);
  const char *const sets[] = {"eta=2", "step_rule=eta_t", "step_size=0.02", "steps=3", option};
  const Likelihood likelihood = fixture_likelihood(0.7);
  Prior prior = standard_prior(&memory, d);
  Rounds rounds = make_rounds(d, 0, 1, 1, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  FixtureSampler chain =
      make_sampler(&memory, name, &prior, &likelihood, 0, 1, chains, optimism > 0 ? 5 : 4, sets);
  double precision[STEP_DIMENSION * STEP_DIMENSION], covariance[STEP_DIMENSION * STEP_DIMENSION];
  double mean[STEP_DIMENSION], theta[STEP_DIMENSION], z[STEP_DIMENSION], square = 0;
  int touched = 0;
  double *start = draw_from(&chain, &history, chains);
  append_round(&history, &rounds, 0);
  double *moved = draw_from(&chain, &history, chains);
  linear_target(&history, 0, eta, 1, precision, covariance, mean);
  for (int i = 0; i < d; i++) square += rounds.phi[i] * rounds.phi[i];
  for (int n = 0; n < chains; n++) {
    Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_OBSERVE), .round = 1, .draw = (uint32_t)n};
    for (int i = 0; i < d; i++) theta[i] = start[i * chains + n];
    for (int k = 0; k < STEPS; k++) {
      rng_normal(&rng, d, z);
      touched += plain_step(d, precision, mean, eta * optimism * sqrt(square), h, limit, z, theta);
    }
    for (int i = 0; i < d; i++) CHECK_NEAR(moved[i * chains + n], theta[i], 1e-11 * (1 + fabs(theta[i])));
  }
  CU_ASSERT_EQUAL(chain.fallbacks[0], touched);
  CU_ASSERT((touched > 0) == (optimism > 100));
  free(start), free(moved);
  free_sampler(&chain);
  free_rounds(&rounds);
}

static void test_steps(void) {
  static const int chains[] = {1, 3, 8, 13, 70};
  for (int d = 1; d <= STEP_DIMENSION; d += d < 6 ? 1 : 5)
    for (int k = 0; k < 5; k++) {
      check_steps(d, chains[k], "lmc", 0);
      check_steps(d, chains[k], "fgts", 0.5);
      check_steps(d, chains[k], "fgts", 1e5);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"stationary law on Gaussian targets", test_stationary_law},
                         {"stationary law under logistic rewards", test_logistic_law},
                         {"draws are chains", test_draws_are_chains},
                         {"chains start in every mode", test_start_covers_the_modes},
                         {"no feel-good term is Langevin Monte Carlo", test_without_feel_good},
                         {"feel-good term by quadrature", test_feel_good},
                         {"steps are those that are written", test_steps},
                         CU_TEST_INFO_NULL};
  return harness_run("lmc", tests);
}
