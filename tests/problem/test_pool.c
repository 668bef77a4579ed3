/* The contextual bandits of the VITS paper against their definitions: moments of theta*, features and noise,
 * the pool behind the features, quadratic rewards. */
#include "harness.h"
#include "study_text.h"

#include "problem/problem.h"
#include "problem/world.h"

#include <stdlib.h>
#include <string.h>

/* Makes the problem of a study of one setting, with `world` in its section `problem`. */
static Status make_problem(const char *world, const char *likelihood, Problem *out) {
  char text[512];
  snprintf(text, sizeof text, "name: t\nlikelihood: %s\nproblem: {family: pool%s}\npolicies: [random]\n",
           likelihood, world);
  return study_text_problem(text, out);
}

static void make_world(const char *world, uint32_t first_run, int runs, Problem *problem, World *out) {
  CHECK_OK(make_problem(world, "gaussian", problem));
  CHECK_OK(world_create(problem, 0, first_run, runs, out));
}

static double feature(const World *world, int k, int i, int b) {
  return world->features[(size_t)(k * world->problem->d + i) * (size_t)world->runs + (size_t)b];
}

static double signal(const World *world, int k, int b) {
  double u = 0;
  for (int i = 0; i < world->problem->d; i++)
    u += feature(world, k, i, b) * world->theta[i * world->runs + b];
  return u;
}

static void test_defaults(void) {
  SCRATCH_ARENA(memory);
  Problem problem;
  CHECK_OK(make_problem("", "gaussian", &problem));
  CU_ASSERT_EQUAL(problem.d, 20);
  CU_ASSERT_EQUAL(problem.arms, 50);
  CU_ASSERT_TRUE(problem.resample_arms);
  CHECK_NEAR(problem.likelihood.noise, sqrt(2), 1e-15);
  Prior prior;
  CHECK_OK(problem_exact_prior(&memory, &problem, &(PriorFit){.schedule.stages = 1, .schedule.alpha = 0.5},
                               &prior));
  const Mixture *exact = prior.mixture;
  CU_ASSERT_EQUAL(exact->components, 1);
  for (int i = 0; i < 20; i++) {
    CHECK_NEAR(exact->mean[i], 0, 0);
    for (int j = 0; j < 20; j++) {
      CHECK_NEAR(exact->covariance[20 * i + j], i == j ? 0.05 : 0, 1e-15);
      CHECK_NEAR(mixture_precision(exact, 0)[20 * i + j], i == j ? 20 : 0, 1e-12);
    }
  }
  problem_destroy(&problem);
}

/* Checks alpha as printed in Appendix H, times problem.noise. */
static void test_noise(void) {
  static const struct {
    const char *world;
    double expected;
  } cases[] = {{", zeta: 0.1", 1.00498756211209},
               {", zeta: 2, noise: 0.5", 1.11803398874989},
               {", zeta: 0.1, reward: quadratic", 1.83475611458308}, /* 1.01 sqrt(3.3) */
               {", zeta: 1, reward: quadratic, dimension: 2, noise: 3", 14.6969384566991}}; /* 6 sqrt(6) */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem problem;
    CHECK_OK(make_problem(cases[i].world, "gaussian", &problem));
    CHECK_NEAR(problem.likelihood.noise, cases[i].expected, 1e-12);
    problem_destroy(&problem);
  }
}

/* Checks that a signal to noise ratio of 1 means E signal^2 = alpha^2. Over 4000 independent runs of one arm;
 * the standard error is 4000^-1/2 times the standard deviation of (phi' theta)^2 / alpha^2, 1.5 for d = 20,
 * and of its square, 3.9. Four of them. */
static void test_signal_to_noise(void) {
  for (int quadratic = 0; quadratic < 2; quadratic++) {
    Problem problem;
    World world;
    enum { RUNS = 4000 };
    make_world(quadratic ? ", zeta: 0.5, arms: 1, reward: quadratic" : ", zeta: 0.5, arms: 1", 0, RUNS,
               &problem, &world);
    world_advance(&world, 1);
    double ratio = 0, alpha = problem.likelihood.noise;
    for (int b = 0; b < RUNS; b++) {
      double u = signal(&world, 0, b), mean = quadratic ? u * u : u;
      CHECK_NEAR(world.mean[b], mean, 1e-12 * (1 + fabs(mean)));
      ratio += mean * mean / (alpha * alpha) / RUNS;
    }
    CHECK_NEAR(ratio, 1, quadratic ? 0.25 : 0.1);
    world_destroy(&world);
    problem_destroy(&problem);
  }
}

static void test_theta(void) {
  SCRATCH_ARENA(memory);
  Problem problem;
  enum { RUNS = 4000 };
  CHECK_OK(make_problem("", "gaussian", &problem));
  double *theta = malloc(20 * RUNS * sizeof *theta), mean = 0, square = 0;
  problem_theta(&problem, 0, 0, RUNS, theta);
  for (int n = 0; n < 20 * RUNS; n++) mean += theta[n], square += theta[n] * theta[n];
  /* 80 000 normals of variance 1 / 20: standard errors sqrt(0.05 / 80000) and 0.05 sqrt(2 / 80000); 4. */
  CHECK_NEAR(mean / (20 * RUNS), 0, 0.0032);
  CHECK_NEAR(square / (20 * RUNS), 0.05, 0.001);
  Samples samples;
  CHECK_OK(problem_training_samples(&memory, &problem, 0, RUNS, &samples));
  CU_ASSERT_EQUAL(samples.n, RUNS);
  square = 0;
  for (int n = 0; n < 20 * RUNS; n++) square += samples.theta[n] * samples.theta[n];
  CHECK_NEAR(square / (20 * RUNS), 0.05, 0.001);
  CU_ASSERT_TRUE(samples.theta[0] != theta[0]); /* never the theta* of a run */
  free(theta);
  problem_destroy(&problem);
}

/* Checks that without noise every feature vector is one of K, the same in all rounds of a run and different
 * in another run; with replacement: of K members about K / e are missing in a round. */
static void test_pool(void) {
  enum { ARMS = 40, RUNS = 25, ROUNDS = 30 };
  Problem problem;
  World world;
  make_world(", zeta: 0, dimension: 3, arms: 40", 0, RUNS, &problem, &world);
  static double seen[RUNS][2 * ARMS];
  int counts[RUNS] = {0};
  double missed = 0;
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    world_advance(&world, round);
    for (int b = 0; b < RUNS; b++) {
      bool present[2 * ARMS] = {false};
      int distinct = 0;
      for (int k = 0; k < ARMS; k++) {
        int m = 0;
        while (m < counts[b] && seen[b][m] != feature(&world, k, 0, b)) m++;
        if (m == counts[b] && m < 2 * ARMS) seen[b][counts[b]++] = feature(&world, k, 0, b);
        distinct += !present[m], present[m] = true;
      }
      missed += (ARMS - distinct) / (double)(RUNS * ROUNDS * ARMS);
    }
  }
  for (int b = 0; b < RUNS; b++) {
    CU_ASSERT_EQUAL(counts[b], ARMS); /* 30 rounds of 40 draws: one is missing with probability 40 e^-30 */
    for (int c = 0; c < b; c++) CU_ASSERT_TRUE(seen[b][0] != seen[c][0]);
  }
  /* (1 - 1/40)^40 = 0.3632; 750 rounds, whose missing share has standard deviation 0.05 each. */
  CHECK_NEAR(missed, 0.3632, 0.0075);
  world_destroy(&world);
  problem_destroy(&problem);
}

/* Checks that features have mean 0 and variance 1 + zeta^2, of which zeta^2 is fresh in each round. Within a
 * run the members' part is shared, so averages are over runs: one arm of 20 coordinates in 500 runs, 2
 * rounds. */
static void test_features(void) {
  enum { RUNS = 500, D = 20 };
  Problem problem;
  World world;
  make_world(", zeta: 0.5, arms: 1", 0, RUNS, &problem, &world);
  static double first[D * RUNS];
  double mean = 0, square = 0, product = 0;
  world_advance(&world, 1);
  memcpy(first, world.features, sizeof first);
  world_advance(&world, 2);
  for (int n = 0; n < D * RUNS; n++) {
    mean += first[n] / (D * RUNS);
    square += first[n] * first[n] / (D * RUNS);
    product += first[n] * world.features[n] / (D * RUNS); /* arms: 1, so the member is the same */
  }
  /* 10 000 values of variance 1.25: 4 standard errors are 4 sqrt(1.25 / 1e4), and 4 1.25 sqrt(2 / 1e4); the
   * product has variance 1.25^2 + 1 < 2.6. */
  CHECK_NEAR(mean, 0, 0.045);
  CHECK_NEAR(square, 1.25, 0.071);
  CHECK_NEAR(product, 1, 0.065);
  world_destroy(&world);
  problem_destroy(&problem);
}

/* Checks that a run meets the same world in every block, and that rewards add alpha times the round's noise
 * to the mean. */
static void test_common_random_numbers(void) {
  Problem problem, same;
  World block, alone;
  make_world(", arms: 7, dimension: 5, zeta: 0.3", 4, 6, &problem, &block);
  make_world(", arms: 7, dimension: 5, zeta: 0.3", 8, 1, &same, &alone);
  int arms[6] = {0, 1, 2, 3, 4, 5}, last = 6;
  double phi[30], y[6], regret[6], own_phi[5], own_y, own_regret;
  for (uint32_t round = 3; round > 0; round--) { /* rounds in any order */
    world_advance(&block, round), world_advance(&alone, round);
    world_play(&block, arms, phi, y, regret);
    world_play(&alone, &last, own_phi, &own_y, &own_regret);
    for (int i = 0; i < 5; i++) CU_ASSERT_EQUAL(block.theta[i * 6 + 4], alone.theta[i]);
    for (int i = 0; i < 35; i++) CU_ASSERT_EQUAL(block.features[i * 6 + 4], alone.features[i]);
    CHECK_NEAR(y[4] - signal(&block, 4, 4), own_y - signal(&alone, 6, 0), 1e-12);
    CHECK_NEAR(y[4] - signal(&block, 4, 4), sqrt(1.09) * block.noise[6 + 4], 1e-12);
  }
  world_destroy(&block), world_destroy(&alone);
  problem_destroy(&problem), problem_destroy(&same);
}

/* Checks that the best arm of a quadratic world has the largest |phi' theta*|, and that regret is that of the
 * squares. */
static void test_quadratic(void) {
  enum { RUNS = 50, ARMS = 12 };
  Problem problem;
  World world;
  make_world(", arms: 12, reward: quadratic", 0, RUNS, &problem, &world);
  world_advance(&world, 1);
  double phi[20 * RUNS], y[RUNS], regret[RUNS];
  int zero[RUNS] = {0}, negative = 0;
  world_play(&world, zero, phi, y, regret);
  for (int b = 0; b < RUNS; b++) {
    int best = 0;
    for (int k = 1; k < ARMS; k++)
      if (fabs(signal(&world, k, b)) > fabs(signal(&world, best, b))) best = k;
    double top = signal(&world, best, b), mine = signal(&world, 0, b);
    CU_ASSERT_EQUAL(world.best[b], best);
    negative += top < 0;
    CHECK_NEAR(regret[b], top * top - mine * mine, 1e-12 * (1 + top * top));
    CHECK_NEAR(y[b], mine * mine + problem.likelihood.noise * world.noise[RUNS + b],
               1e-12 * (1 + fabs(y[b])));
  }
  CU_ASSERT_TRUE(negative > 5); /* a best arm that a linear reward would rank last */
  world_play(&world, world.best, phi, y, regret);
  for (int b = 0; b < RUNS; b++) CHECK_NEAR(regret[b], 0, 0);
  world_destroy(&world);
  problem_destroy(&problem);
}

/* Checks Bernoulli rewards of probability sigmoid(phi' theta*), which never go with quadratic rewards. */
static void test_logistic(void) {
  Problem problem;
  World world;
  CHECK_OK(make_problem("", "logistic", &problem));
  CHECK_OK(world_create(&problem, 0, 0, 3, &world));
  world_advance(&world, 1);
  for (int k = 0; k < 50; k++) CHECK_NEAR(world.mean[k * 3 + 1], 1 / (1 + exp(-signal(&world, k, 1))), 1e-14);
  world_destroy(&world);
  problem_destroy(&problem);
  CHECK_FAILS(make_problem(", reward: quadratic", "logistic", &problem), STATUS_INPUT, "likelihood gaussian");
}

int main(void) {
  CU_TestInfo tests[] = {{"defaults of the paper, and the exact prior N(0, I / d)", test_defaults},
                         {"reward noise alpha, times problem.noise", test_noise},
                         {"signal to noise ratio 1 for linear and quadratic rewards", test_signal_to_noise},
                         {"theta* and training samples have variance 1 / d", test_theta},
                         {"arms come from a fixed pool, with replacement", test_pool},
                         {"moments of the features", test_features},
                         {"common random numbers", test_common_random_numbers},
                         {"quadratic rewards: best arm, regret, reward", test_quadratic},
                         {"logistic rewards; refused with quadratic", test_logistic},
                         CU_TEST_INFO_NULL};
  return harness_run("pool", tests);
}
