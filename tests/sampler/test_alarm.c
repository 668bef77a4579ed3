/* P-values of histories under a prior (src/sampler/check/alarm.h): uniform when the prior is right, small
 * when the world differs from it. */
#include "sampler_fixture.h"

#include "sampler/check/alarm.h"

enum { HISTORIES = 2048, FEWER = 256, SIMULATED = 199 };

/* Makes n observations of each theta[2, HISTORIES], at arms uniform in the square [-1, 1]^2. */
static History observe(Arena *memory, const double *theta, int n, const Likelihood *likelihood) {
  History history;
  static double phi[2 * HISTORIES], y[HISTORIES];
  ASSERT(history_create(memory, 2, HISTORIES, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, n) == STATUS_OK);
  for (int l = 0; l < n; l++) {
    for (int run = 0; run < HISTORIES; run++) {
      Rng rng = fixture_rng((uint32_t)run, 6000 + (uint32_t)l);
      double uniform[3], noise, u = 0;
      rng_uniform(&rng, 3, uniform);
      rng_normal(&rng, 1, &noise);
      for (int i = 0; i < 2; i++) {
        phi[i * HISTORIES + run] = 2 * uniform[i] - 1;
        u += phi[i * HISTORIES + run] * theta[i * HISTORIES + run];
      }
      y[run] = likelihood->ops->sample(likelihood, u, uniform[2], noise);
    }
    history_record(&history, NULL, phi, y);
  }
  return history;
}

static void sample(const Prior *prior, double *theta) {
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = HISTORIES, .round = 7000};
  prior->ops->sample(prior, &rng, theta);
}

static int rising(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the largest distance of the distribution of x[n] from the uniform one. */
static double uniform_distance(int n, double *x) {
  double most = 0;
  qsort(x, (size_t)n, sizeof *x, rising);
  for (int k = 0; k < n; k++) most = fmax(most, fmax((k + 1.0) / n - x[k], x[k] - (double)k / n));
  return most;
}

/* Checks that the Kolmogorov-Smirnov distance is below its upper 0.1% quantile, 1.95 / sqrt(n), plus the step
 * of the p-values. */
static void check_uniform(const Prior *prior, Likelihood likelihood, int histories, int n) {
  SCRATCH_ARENA(memory);
  static double theta[2 * HISTORIES], p[HISTORIES];
  Alarm *alarm;
  sample(prior, theta);
  const History history = observe(&memory, theta, n, &likelihood);
  CU_ASSERT_FATAL(alarm_fits(prior, &likelihood, n));
  CHECK_OK(alarm_create(&memory, prior, &likelihood, n, SIMULATED, FIXTURE_SEED, &alarm));
  for (int run = 0; run < histories; run++) p[run] = alarm_p_value(alarm, &history, run, (uint32_t)run);
  CHECK_NEAR(uniform_distance(histories, p), 0, 1.95 / sqrt(histories) + 1.0 / (SIMULATED + 1));
}

static void test_mixture(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 3, 2);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  check_uniform(&prior, fixture_likelihood(1), HISTORIES, 1); /* fewer than the dimensions */
  check_uniform(&prior, fixture_likelihood(1), HISTORIES, 10);
  check_uniform(&prior, (Likelihood){.ops = likelihood_find("logistic")}, FEWER, 5);
  check_uniform(&prior, (Likelihood){.ops = likelihood_find("poisson")}, FEWER, 5);
}

/* Checks a learned prior: its own samples and the mixture next to it differ, as it has hardly learned
 * anything. */
static void test_learned(void) {
  SCRATCH_ARENA(memory);
  enum { SAMPLES = 400 };
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 2, 1.5);
  static double theta[2 * SAMPLES];
  Samples samples = {.d = 2, .n = SAMPLES, .theta = theta};
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
  Prior prior;
  mixture_sample(&mixture, &rng, theta);
  CHECK_OK(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior));
  check_uniform(&prior, fixture_likelihood(1), HISTORIES, 5);
}

/* Checks worlds on four rays along the axes, under the prior `cross` along the diagonals: p < 0.01 for most
 * histories of 50 observations. */
static void check_wrong_world(Likelihood likelihood, int asked) {
  SCRATCH_ARENA(memory);
  static double theta[2 * HISTORIES];
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture cross = fixture_cross(&memory);
  const Prior prior = fixture_exact_prior(&memory, &cross, &fit);
  Alarm *alarm;
  for (int run = 0; run < HISTORIES; run++) {
    Rng rng = fixture_rng((uint32_t)run, 8000);
    double uniform;
    rng_uniform(&rng, 1, &uniform);
    theta[run % 2 * HISTORIES + run] = (run & 2 ? 1 : -1) * 3 * sqrt(uniform);
  }
  const History history = observe(&memory, theta, 50, &likelihood);
  CHECK_OK(alarm_create(&memory, &prior, &likelihood, 50, SIMULATED, FIXTURE_SEED, &alarm));
  int surprising = 0;
  for (int run = 0; run < asked; run++)
    surprising += alarm_p_value(alarm, &history, run, (uint32_t)run) < 0.01;
  CU_ASSERT(surprising > asked / 2);
}

static void test_wrong_world(void) {
  check_wrong_world(fixture_likelihood(1), 128);
  check_wrong_world((Likelihood){.ops = likelihood_find("poisson")}, 32);
}

static void test_where_it_is_none(void) {
  SCRATCH_ARENA(memory);
  const Likelihood gaussian = fixture_likelihood(1), logistic = {.ops = likelihood_find("logistic")};
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Prior standard, ising;
  CHECK_OK(prior_standard(&memory, 2, &fit, &standard));
  CHECK_OK(prior_ising(&memory, 2, &fit, &ising));
  CU_ASSERT(alarm_fits(&standard, &gaussian, 1000000));
  CU_ASSERT(alarm_fits(&standard, &logistic, ALARM_ROWS));
  CU_ASSERT_FALSE(alarm_fits(&standard, &logistic, ALARM_ROWS + 1));
  CU_ASSERT_FALSE(alarm_fits(&ising, &gaussian, 1));
}

int main(void) {
  CU_TestInfo tests[] = {{"uniform under a mixture", test_mixture},
                         {"uniform under a learned prior", test_learned},
                         {"another world", test_wrong_world},
                         {"where there is none", test_where_it_is_none},
                         CU_TEST_INFO_NULL};
  return harness_run("alarm", tests);
}
