/* The library as C programs call it: the order in which things end, and calls that it cannot
 * answer. tests/program/program_package.py has what Python calls as well. */
#include "harness.h"
#include "library/thompson.h"
#include "sampler/sampler.h"

#include <limits.h>

enum { D = 2, DRAWS = 200 };
static const double X[] = {1, 0.5, -0.5, 1, 0.25, 2}, Y[] = {1, 0, 1};

static thompson_prior *make_prior(void) {
  const double weight[] = {0.25, 0.75}, mean[] = {-1, 2, 1, 0}, covariance[] = {1, 0, 0, 1, 2, 0.5, 0.5, 1};
  thompson_prior *prior;
  CHECK_OK(thompson_prior_from_mixture(2, D, weight, mean, covariance, &prior));
  return prior;
}

/* Whoever is freed first, under the sanitizers too. */
static void test_order_of_the_end(void) {
  static double theta[DRAWS * D];
  const int ids[] = {0, 1, 2};
  thompson_prior *prior = make_prior(), *learned;
  thompson_posterior *posterior, *copy;
  thompson_agents *agents;
  CHECK_OK(thompson_posterior_new(prior, "diffts", "gaussian", NULL, 1, &posterior));
  CHECK_OK(thompson_agents_new(prior, 5, "mixts", "gaussian", NULL, 1, &agents));
  thompson_prior_close(prior);
  CHECK_OK(thompson_observe(posterior, 3, X, Y));
  CHECK_OK(thompson_posterior_copy(posterior, &copy));
  thompson_posterior_free(posterior);
  CHECK_OK(thompson_draw(copy, DRAWS, theta));
  thompson_posterior_free(copy);
  for (int round = 0; round < 2; round++) CHECK_OK(thompson_agents_observe(agents, 3, ids, X, Y));
  CHECK_OK(thompson_agents_observe(agents, 1, (int[]){4}, X, Y));
  CHECK_OK(thompson_agents_learn_prior(agents, &learned));
  thompson_prior_close(learned);
  CHECK_OK(thompson_agents_draw(agents, 1, ids, DRAWS, theta));
  thompson_agents_free(agents);
}

static void test_p_value_of_what_is_forgotten(void) {
  static const char *const likelihoods[] = {"logistic", "poisson"}, *const memories[] = {"memory=filtered",
                                                                                         "memory.keep=2"};
  thompson_prior *prior = make_prior();
  for (int k = 0; k < 4; k++) {
    thompson_posterior *posterior;
    double p;
    CHECK_OK(thompson_posterior_new(prior, "mixts", likelihoods[k / 2], memories[k % 2], 1, &posterior));
    CHECK_OK(thompson_observe(posterior, 3, X, Y));
    CHECK_FAILS(thompson_p_value(posterior, &p), THOMPSON_INPUT, "memory = filtered or keep forgets them");
    thompson_posterior_free(posterior);
  }
  thompson_prior_close(prior);
}

/* Draws that cannot be counted are refused, and the agents go on. */
static void test_too_many_draws(void) {
  const int ids[] = {0};
  double theta[D];
  thompson_prior *prior = make_prior();
  thompson_agents *agents;
  CHECK_OK(thompson_agents_new(prior, 20, "mixts", "gaussian", NULL, 1, &agents));
  CHECK_FAILS(thompson_agents_draw(agents, 0, NULL, 1 << 27, theta), THOMPSON_INPUT, "too many");
  CHECK_FAILS(thompson_agents_draw(agents, 1, ids, INT_MAX, theta), THOMPSON_INPUT, "too many");
  CHECK_OK(thompson_agents_draw(agents, 1, ids, 1, theta));
  thompson_agents_free(agents);
  thompson_prior_close(prior);
}

/* Checks the log evidence of one reward under one Gaussian, log N(y; 0, s^2 + noise^2), and that of a click
 * under it, 1/2 by symmetry; and that asking leaves the next draws as they are. */
static void test_log_evidence(void) {
  static const char *const samplers[] = {"localised", "smc_tempered", "twisted", "mixts"};
  const double weight = 1, mean = 0, variance = 2.25, x = 1, y = 1.3, click = 1, total = variance + 0.25,
               expected = -0.5 * (y * y / total + log(2 * M_PI * total));
  thompson_prior *prior;
  CHECK_OK(thompson_prior_from_mixture(1, 1, &weight, &mean, &variance, &prior));
  for (int k = 0; k < 4; k++)
    for (int clicks = 0; clicks < (k < 3 ? 2 : 1); clicks++) { /* mixts knows that of Gaussian rewards */
      thompson_posterior *posterior, *same;
      double value, error, asked[2], other[2];
      CHECK_OK(thompson_posterior_new(prior, samplers[k], clicks ? "logistic" : "gaussian",
                                      clicks ? NULL : "noise=0.5", 7, &posterior));
      CHECK_OK(thompson_observe(posterior, 1, &x, clicks ? &click : &y));
      CHECK_OK(thompson_posterior_copy(posterior, &same));
      CHECK_OK(thompson_log_evidence(posterior, &value, &error));
      CHECK_NEAR(value, clicks ? log(0.5) : expected, 3 * error + 1e-3);
      CU_ASSERT(error < (k < 3 ? 0.1 : 1e-12));
      CHECK_OK(thompson_draw(posterior, 2, asked));
      CHECK_OK(thompson_draw(same, 2, other));
      CU_ASSERT(memcmp(asked, other, sizeof asked) == 0);
      thompson_posterior_free(posterior);
      thompson_posterior_free(same);
    }
  thompson_posterior *posterior;
  double value, error;
  CHECK_OK(thompson_posterior_new(prior, "mala", "gaussian", NULL, 1, &posterior));
  CHECK_FAILS(thompson_log_evidence(posterior, &value, &error), THOMPSON_INPUT,
              "does not know the log evidence");
  thompson_posterior_free(posterior);
  thompson_prior_close(prior);
}

/* One measurement y of theta in one dimension, under N(theta, 0.25); `left` calls until it fails. */
typedef struct {
  double y;
  int left;
} Measurement;

static int measurement_log_density(void *context, int m, int d, const double *theta, double *value) {
  Measurement *of = context;
  CU_ASSERT_EQUAL(d, 1);
  if (of->left-- <= 0) return 7;
  for (int k = 0; k < m; k++) value[k] = -0.5 * (pow((of->y - theta[k]) / 0.5, 2) + log(2 * M_PI * 0.25));
  return 0;
}

/* Checks a likelihood that is freed before its posterior, and a function that fails: a draw that failed is
 * made again with the same numbers. */
static void test_likelihood(void) {
  enum { M = 200 };
  const double weight = 1, mean = 0, variance = 2.25, total = variance + 0.25;
  double first[M], again[M], value, error;
  Measurement measurement = {.y = 1.3, .left = 1000};
  const thompson_likelihood_functions functions = {.log_density = measurement_log_density,
                                                   .context = &measurement},
                                      none = {.log_density = NULL};
  thompson_prior *prior;
  thompson_likelihood *likelihood;
  thompson_posterior *posterior, *copy;
  CHECK_OK(thompson_prior_from_mixture(1, 1, &weight, &mean, &variance, &prior));
  CHECK_FAILS(thompson_likelihood_from_functions(&none, &likelihood), THOMPSON_INPUT, "log_density");
  CHECK_OK(thompson_likelihood_from_functions(&functions, &likelihood));
  CHECK_FAILS(thompson_posterior_from_likelihood(prior, "mala", likelihood, NULL, 1, &posterior),
              THOMPSON_INPUT, "needs the gradient");
  CHECK_OK(thompson_posterior_from_likelihood(prior, "smc_tempered", likelihood, NULL, 1, &posterior));
  thompson_likelihood_free(likelihood);
  CHECK_OK(thompson_log_evidence(posterior, &value, &error));
  CHECK_NEAR(value, -0.5 * (1.3 * 1.3 / total + log(2 * M_PI * total)), 3 * error);
  CHECK_OK(thompson_posterior_copy(posterior, &copy));
  measurement.left = 3;
  CHECK_FAILS(thompson_draw(posterior, M, first), THOMPSON_INPUT,
              "log_density of the likelihood failed: it returned 7");
  CU_ASSERT_EQUAL(measurement.left, -1);
  measurement.left = 1000;
  CHECK_OK(thompson_draw(posterior, M, first));
  CHECK_OK(thompson_draw(copy, M, again));
  CU_ASSERT(memcmp(first, again, sizeof first) == 0);
  CU_ASSERT_EQUAL(thompson_observation_count(posterior), 0);
  thompson_posterior_free(posterior);
  thompson_posterior_free(copy);
  thompson_prior_close(prior);
}

/* Checks that many draws are made together, byte for byte as a sampler of draws for themselves makes them,
 * under a prior in 40 coordinates of which one is seen; and that what a call leaves behind does not depend on
 * how many draws it made. */
static void test_draws_together(void) {
  enum { MANY = 300, WIDE = 40, SEED = 7 };
  SCRATCH_ARENA(memory);
  static double covariance[WIDE * WIDE], theta[MANY * WIDE], expected[WIDE * MANY], one[WIDE], other[WIDE];
  const double weight = 1, mean[WIDE] = {0}, x[WIDE] = {1}, y = 1;
  const SamplerOps *method = sampler_find("mixts");
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 1};
  const RngLanes rng = rng_lanes(rng_key(SEED, RNG_AGENT), 0, 1, MANY, 0);
  int64_t fallbacks = 0;
  thompson_prior *prior;
  thompson_posterior *posterior, *same;
  Prior inner;
  Config *options;
  History history;
  Sampler sampler;
  Mixture mixture;
  for (int i = 0; i < WIDE * WIDE; i++) covariance[i] = i % (WIDE + 1) == 0 ? 1 : 0.5;
  CHECK_OK(thompson_prior_from_mixture(1, WIDE, &weight, mean, covariance, &prior));
  CHECK_OK(thompson_posterior_new(prior, "mixts", "gaussian", "noise=1", SEED, &posterior));
  CHECK_OK(thompson_observe(posterior, 1, x, &y));
  CHECK_OK(thompson_posterior_copy(posterior, &same));
  CHECK_OK(thompson_draw(posterior, MANY, theta));
  CHECK_OK(thompson_draw(same, 2, expected));
  CHECK_OK(thompson_draw(posterior, 1, one));
  CHECK_OK(thompson_draw(same, 1, other));
  CU_ASSERT(memcmp(one, other, sizeof one) == 0);
  CHECK_OK(mixture_create(&memory, WIDE, 1, &mixture));
  mixture.weight[0] = 1;
  memcpy(mixture.covariance, covariance, sizeof covariance);
  const PriorFit fit = {.schedule = {.stages = 1, .alpha = 0.5}, .closed_only = true};
  CHECK_OK(prior_from_mixture(&memory, &mixture, &fit, &inner));
  CHECK_OK(history_create(&memory, WIDE, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, 1));
  history_record(&history, NULL, x, &y);
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), 0, NULL, &options));
  const SamplerSetup setup = {.prior = &inner,
                              .likelihood = &likelihood,
                              .runs = 1,
                              .draws = MANY,
                              .for_themselves = true,
                              .observations = 1,
                              .options = options};
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  CU_ASSERT(sampler.observed);
  sampler_sample(&sampler, &history, rng, MANY, expected, &fallbacks);
  bool equal = true;
  for (int m = 0; m < MANY; m++)
    for (int i = 0; i < WIDE; i++) equal = equal && theta[m * WIDE + i] == expected[i * MANY + m];
  CU_ASSERT(equal);
  thompson_posterior_free(posterior);
  thompson_posterior_free(same);
  thompson_prior_close(prior);
}

int main(void) {
  CU_TestInfo tests[] = {{"order of the end", test_order_of_the_end},
                         {"p-value of what is forgotten", test_p_value_of_what_is_forgotten},
                         {"log evidence", test_log_evidence},
                         {"likelihood of a function", test_likelihood},
                         {"too many draws", test_too_many_draws},
                         {"draws together", test_draws_together},
                         CU_TEST_INFO_NULL};
  return harness_run("library", tests);
}
