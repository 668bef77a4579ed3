/* The bandit of Appendix G of the VITS paper: unit vectors, theta* and its twin among them, a world that
 * stays. */
#include "harness.h"
#include "study_text.h"

#include "problem/problem.h"
#include "problem/world.h"

#include <stdlib.h>

static Status make_problem(const char *world, const char *likelihood, Problem *out) {
  char text[512];
  snprintf(text, sizeof text, "name: t\nlikelihood: %s\nproblem: {family: twin%s}\npolicies: [random]\n",
           likelihood, world);
  return study_text_problem(text, out);
}

static double dot(const World *world, int k, int l, int b) {
  int d = world->problem->d, runs = world->runs;
  double sum = 0;
  for (int i = 0; i < d; i++)
    sum += world->features[(size_t)(k * d + i) * (size_t)runs + (size_t)b] *
           world->features[(size_t)(l * d + i) * (size_t)runs + (size_t)b];
  return sum;
}

/* Computes the squared sine of the angle between theta* and its twin theta* + 0.1 e: with e's part p along
 * theta* and the rest r, it is 0.01 r^2 / ((1 + 0.1 p)^2 + 0.01 r^2), averaged over p ~ N(0, 1), r^2 ~ chi^2
 * with 9 degrees by quadrature on a grid. */
static double expected_sine(void) {
  double sum = 0, weights = 0;
  for (double p = -6; p <= 6; p += 0.05)
    for (double s = 0.05; s < 60; s += 0.1) { /* r^2 */
      double weight = exp(-p * p / 2 - s / 2) * pow(s, 3.5);
      sum += weight * 0.01 * s / ((1 + 0.1 * p) * (1 + 0.1 * p) + 0.01 * s), weights += weight;
    }
  return sum / weights;
}

static void test_arms(void) {
  enum { RUNS = 2000 };
  Problem problem;
  World world;
  CHECK_OK(make_problem("", "gaussian", &problem));
  CU_ASSERT_EQUAL(problem.d, 10);
  CU_ASSERT_EQUAL(problem.arms, 10);
  CU_ASSERT_EQUAL(problem.likelihood.noise, 1);
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  double sine = 0, others = 0, squares = 0, theta_mean = 0;
  for (int b = 0; b < RUNS; b++) {
    for (int k = 0; k < 10; k++) CHECK_NEAR(dot(&world, k, k, b), 1, 1e-12);
    for (int i = 0; i < 10; i++)
      CU_ASSERT_EQUAL(world.features[i * RUNS + b], world.theta[i * RUNS + b]); /* arm 0 is theta* */
    CU_ASSERT_EQUAL(world.best[b], 0);
    CHECK_NEAR(world.mean[b], 1, 1e-12);
    double twin = dot(&world, 0, 1, b);
    CHECK_NEAR(world.mean[RUNS + b], twin, 1e-12);
    CU_ASSERT_TRUE(twin > 0.8 && twin < 1);
    sine += (1 - twin * twin) / RUNS;
    theta_mean += world.theta[b] / RUNS;
    for (int k = 2; k < 10; k++) {
      others += world.mean[k * RUNS + b] / (8 * RUNS);
      squares += world.mean[k * RUNS + b] * world.mean[k * RUNS + b] / (8 * RUNS);
    }
  }
  /* The squared sine has standard deviation 0.036 (about 0.01 chi^2 of 9): 4 standard errors over 2000
   * runs. */
  CHECK_NEAR(sine, expected_sine(), 0.0033);
  /* A random direction gives phi' theta* mean 0, variance 1/10, and fourth moment 3/120: 16 000 of them,
   * independent given theta*; 4 standard errors. */
  CHECK_NEAR(others, 0, 0.01);
  CHECK_NEAR(squares, 0.1, 0.0040);
  CHECK_NEAR(theta_mean, 0, 4 * sqrt(0.1 / RUNS));
  world_destroy(&world);
  problem_destroy(&problem);
}

/* Checks that the arms stay for the run, whatever the block and the number of arms. */
static void test_common_random_numbers(void) {
  Problem few, many;
  World block, alone, more;
  CHECK_OK(make_problem(", arms: 5", "gaussian", &few));
  CHECK_OK(make_problem(", arms: 9", "gaussian", &many));
  CHECK_OK(world_create(&few, 0, 4, 6, &block));
  CHECK_OK(world_create(&few, 0, 8, 1, &alone));
  CHECK_OK(world_create(&many, 0, 8, 1, &more));
  for (uint32_t round = 1; round < 3; round++) {
    world_advance(&block, round), world_advance(&alone, round), world_advance(&more, round);
    for (int i = 0; i < 50; i++) {
      CU_ASSERT_EQUAL(block.features[i * 6 + 4], alone.features[i]);
      CU_ASSERT_EQUAL(more.features[i], alone.features[i]);
    }
  }
  CU_ASSERT_TRUE(block.theta[0] != block.theta[1]);
  double phi[60], y[6], regret[6];
  int arm[6] = {0, 1, 2, 3, 4, 0};
  world_play(&block, arm, phi, y, regret);
  for (int b = 0; b < 6; b++) CHECK_NEAR(regret[b], 1 - dot(&block, 0, arm[b], b), 1e-12);
  CHECK_NEAR(regret[0], 0, 0);
  world_destroy(&block), world_destroy(&alone), world_destroy(&more);
  problem_destroy(&few), problem_destroy(&many);
}

static void test_logistic_and_samples(void) {
  SCRATCH_ARENA(memory);
  Problem problem;
  World world;
  Samples samples;
  CHECK_OK(make_problem(", dimension: 4", "logistic", &problem));
  CHECK_OK(world_create(&problem, 0, 0, 2, &world));
  for (int b = 0; b < 2; b++) {
    CHECK_NEAR(world.mean[b], 1 / (1 + exp(-1)), 1e-14);
    CHECK_NEAR(world.mean[2 + b], 1 / (1 + exp(-dot(&world, 0, 1, b))), 1e-14);
  }
  CHECK_OK(problem_training_samples(&memory, &problem, 0, 300, &samples));
  for (int n = 0; n < 300; n++) {
    double square = 0;
    for (int i = 0; i < 4; i++) square += samples.theta[i * 300 + n] * samples.theta[i * 300 + n];
    CHECK_NEAR(square, 1, 1e-12);
  }
  CHECK_FAILS(problem_check_exact_prior(&problem), STATUS_INPUT, "no exact prior");
  world_destroy(&world);
  problem_destroy(&problem);
}

static void test_refusals(void) {
  Problem problem;
  CHECK_FAILS(make_problem(", arms: 1", "gaussian", &problem), STATUS_INPUT, "at least 2");
  CHECK_FAILS(make_problem(", resample_arms: true", "gaussian", &problem), STATUS_INPUT, "fixed");
}

int main(void) {
  CU_TestInfo tests[] = {{"theta*, its twin and random unit vectors", test_arms},
                         {"arms that stay, common random numbers, regret", test_common_random_numbers},
                         {"logistic rewards; training samples", test_logistic_and_samples},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  return harness_run("twin", tests);
}
