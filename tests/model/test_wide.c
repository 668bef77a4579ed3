/* The weight of a guard, learned from tasks (src/model/prior/prior_wide.c): against sums over all ways to
 * divide the tasks between the prior and the wide Gaussian, and against quadrature. */
#include "harness.h"

#include "core/rng.h"
#include "model/history/likelihoods.h"
#include "model/prior/prior.h"

enum { TASKS = 8, EACH = 5 };

/* Computes the posterior mean of g ~ Beta(g0, 1 - g0): each of the 2^n divisions, with k tasks wide, has the
 * weight exp(sum of their ratios) Beta(g0 + k, 1 - g0 + n - k), and under it the mean is (g0 + k) / (1 +
 * n). */
static double by_enumeration(double g0, int n, const double *log_ratio) {
  double sum = 0, mean = 0;
  for (unsigned division = 0; division < 1u << n; division++) {
    double weight = 0;
    int k = 0;
    for (int t = 0; t < n; t++)
      if (division >> t & 1) weight += log_ratio[t], k++;
    weight = exp(weight + lgamma(g0 + k) + lgamma(1 - g0 + n - k) - lgamma(1 + n));
    sum += weight;
    mean += weight * (g0 + k) / (1 + n);
  }
  return mean / sum;
}

static void test_enumeration(void) {
  const double log_ratio[TASKS] = {0.3, -2, 5, 0, -0.7, 1.1, -9, 2}, g0[] = {0.05, 0.2, 0.9};
  double share[TASKS + 1];
  for (int k = 0; k < 3; k++)
    for (int n = 0; n <= TASKS; n++)
      CHECK_NEAR(prior_wide_posterior_mean(g0[k], n, log_ratio, share), by_enumeration(g0[k], n, log_ratio),
                 1e-12);
}

/* Checks that tasks that are certain count one each, however many and however certain. */
static void test_certain(void) {
  enum { MANY = 2000 };
  static double log_ratio[MANY], share[MANY + 1];
  for (int t = 0; t < MANY; t++) log_ratio[t] = t % 4 ? -1e5 : 1e5;
  CHECK_NEAR(prior_wide_posterior_mean(0.2, MANY, log_ratio, share), (0.2 + MANY / 4) / (1 + MANY), 1e-12);
}

static double log_normal(double x, double mean, double variance) {
  return -0.5 * (x - mean) * (x - mean) / variance - 0.5 * log(2 * M_PI * variance);
}

/* Computes the mean of exp(log likelihood) over theta ~ sum of weight N(mean, variance), on a grid. */
static double marginal(const Likelihood *likelihood, const double (*rows)[2], int components,
                       const double *weight, const double *mean, const double *variance) {
  const double step = 0.002;
  double sum = 0;
  for (double theta = -20; theta < 20; theta += step) {
    double density = 0, log_likelihood = 0;
    for (int c = 0; c < components; c++) density += weight[c] * exp(log_normal(theta, mean[c], variance[c]));
    for (int r = 0; r < EACH; r++)
      log_likelihood += likelihood->ops->log_likelihood(likelihood, rows[r][1], rows[r][0] * theta);
    sum += step * density * exp(log_likelihood);
  }
  return sum;
}

/* Checks tasks of theta = -4 .. 3, under 0.7 N(1, 0.2) + 0.3 N(-1, 0.5) or the wide Gaussian of 3 times its
 * standard deviation. The Laplace approximation of binary rewards costs precision: 0.03 of the weight, as the
 * logarithm of the marginal likelihood of five of them is off by up to 0.1, and by less in ratios. */
static void check_learned(const Likelihood *likelihood, double tolerance) {
  SCRATCH_ARENA(memory);
  const double weight[] = {0.7, 0.3}, mean[] = {1, -1}, variance[] = {0.2, 0.5}, one = 1;
  const double center = 0.4, wide = 9 * (0.7 * 0.2 + 0.3 * 0.5 + 0.7 * 0.36 + 0.3 * 1.96);
  double log_ratio[TASKS], rows[EACH][2], learned = 0.2;
  Mixture mixture;
  Logs logs;
  CHECK_OK(mixture_create(&memory, 1, 2, &mixture));
  for (int c = 0; c < 2; c++)
    mixture.weight[c] = weight[c], mixture.mean[c] = mean[c], mixture.covariance[c] = variance[c];
  CHECK_OK(mixture_prepare(&mixture));
  CHECK_OK(logs_create(&memory, 1, likelihood, &logs));
  for (int t = 0; t < TASKS; t++) {
    for (int r = 0; r < EACH; r++) {
      Rng rng = {.key = rng_key(5, RNG_TEST), .run = (uint32_t)t, .draw = (uint32_t)r};
      double uniform, normal;
      rng_normal(&rng, 1, &rows[r][0]);
      rng_uniform(&rng, 1, &uniform);
      rng_normal(&rng, 1, &normal);
      rows[r][1] = likelihood->ops->sample(likelihood, rows[r][0] * (t - 4), uniform, normal);
      CHECK_OK(logs_add(&logs, t, &rows[r][0], rows[r][1]));
    }
    log_ratio[t] = log(marginal(likelihood, rows, 1, &one, &center, &wide) /
                       marginal(likelihood, rows, 2, weight, mean, variance));
  }
  CHECK_OK(prior_wide_learn(&mixture, 3, &logs, &learned));
  CHECK_NEAR(learned, by_enumeration(0.2, TASKS, log_ratio), tolerance);
  CU_ASSERT(learned > 0.3); /* most have theta elsewhere */
}

static void test_learned(void) {
  check_learned(&(Likelihood){.ops = &likelihood_gaussian, .noise = 0.7}, 1e-6);
  check_learned(&(Likelihood){.ops = likelihood_find("logistic")}, 0.03);
}

int main(void) {
  CU_TestInfo tests[] = {{"all divisions", test_enumeration},
                         {"tasks that are certain", test_certain},
                         {"from logs", test_learned},
                         CU_TEST_INFO_NULL};
  return harness_run("wide", tests);
}
