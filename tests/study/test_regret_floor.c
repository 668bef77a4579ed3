/* The floor of regret: the oracle's posterior means against closed forms, integrals and enumeration; what it
 * learns in a round; where there is no floor. Its value in known cases is tested in
 * program_regret_floor.py. */
#include "harness.h"
#include "study_text.h"

#include "model/denoiser/denoiser.h"
#include "problem/problem.h"
#include "problem/world.h"
#include "study/probe/regret_floor.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status make_problem(const char *keys, Problem *out) {
  char text[512];
  snprintf(text, sizeof text, "{name: t, %s, policies: [random]}\n", keys);
  return study_text_problem(text, out);
}

/* Computes the posterior mean for theta ~ N(m_c, S_c), weights w_c: after evidence (precision l I, vector b)
 * component c has the mean (S_c^-1 + l I)^-1 (S_c^-1 m_c + b), and its weight is multiplied by N(b / l; m_c,
 * S_c + I / l). For gm_cross all m_c are 0, and both axes (1, 1) and (1, -1) are principal. */
static void cross_mean(double precision, const double *vector, double *mean) {
  static const double variance[2][2] = {{1.99, 0.01}, {0.1, 1.9}}; /* along (1, 1) and (1, -1) */
  double along[2] = {(vector[0] + vector[1]) / sqrt(2), (vector[0] - vector[1]) / sqrt(2)}, sum[2] = {0},
         log_weight[2], own[2][2];
  for (int c = 0; c < 2; c++) {
    log_weight[c] = 0;
    for (int k = 0; k < 2; k++) {
      const double total = 1 + precision * variance[c][k];
      own[c][k] = along[k] * variance[c][k] / total;
      log_weight[c] += 0.5 * along[k] * own[c][k] - 0.5 * log(total);
    }
  }
  const double first = 1 / (1 + exp(log_weight[1] - log_weight[0]));
  for (int k = 0; k < 2; k++) sum[k] = first * own[0][k] + (1 - first) * own[1][k];
  mean[0] = (sum[0] + sum[1]) / sqrt(2), mean[1] = (sum[0] - sum[1]) / sqrt(2);
}

/* Computes the mass of N(m, s^2) between a and b, and the integral of x over it. */
static void truncated(double m, double s, double a, double b, double *mass, double *first) {
  const double low = (a - m) / s, high = (b - m) / s;
  *mass = 0.5 * (erf(high / sqrt(2)) - erf(low / sqrt(2)));
  *first = m * *mass + s * (exp(-low * low / 2) - exp(-high * high / 2)) / sqrt(2 * acos(-1));
}

/* Computes the mean for the uniform distribution on the letter H: three rectangles. */
static void h_mean(double precision, const double *vector, double *mean) {
  static const double box[3][4] = {{-3, -2.5, -3, 3}, {2.5, 3, -3, 3}, {-2.5, 2.5, -0.25, 0.25}};
  const double s = 1 / sqrt(precision);
  double total = 0, sum[2] = {0};
  for (int r = 0; r < 3; r++) {
    double mass[2], first[2];
    for (int i = 0; i < 2; i++)
      truncated(vector[i] / precision, s, box[r][2 * i], box[r][2 * i + 1], &mass[i], &first[i]);
    total += mass[0] * mass[1];
    sum[0] += first[0] * mass[1], sum[1] += first[1] * mass[0];
  }
  mean[0] = sum[0] / total, mean[1] = sum[1] / total;
}

/* Checks means to within a share of the smaller of 1 and the evidence's standard deviation. A smooth density
 * is summed to a thousandth of it; the edges of H are off by up to half a cell, 0.0065, where the sum is over
 * the table. */
static void check_plane(const char *theta, void (*expected)(double, const double *, double *), double share) {
  static const double precisions[] = {0.3, 1, 5, 40, 200, 1000, 1e4, 1e6},
                      places[][2] = {{2.7, 1.5}, {0.1, 0.05}, {-2.6, -2.4}};
  char keys[64];
  Problem problem;
  Prior prior;
  PlanarMean plane;
  SCRATCH_ARENA(memory);
  snprintf(keys, sizeof keys, "problem: {theta: %s}", theta);
  CHECK_OK(make_problem(keys, &problem));
  CHECK_OK(
      problem_exact_prior(&memory, &problem, &(PriorFit){.schedule = {.stages = 1, .alpha = 0.5}}, &prior));
  CHECK_OK(study_planar_mean_create(&memory, &prior, &plane));
  for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
    for (size_t at = 0; at < sizeof places / sizeof *places; at++) {
      const double vector[2] = {precisions[p] * places[at][0], precisions[p] * places[at][1]};
      double mean[2], exact[2];
      study_planar_mean(&plane, precisions[p], vector, mean);
      expected(precisions[p], vector, exact);
      for (int i = 0; i < 2; i++) CHECK_NEAR(mean[i], exact[i], share * fmin(1, 1 / sqrt(precisions[p])));
    }
  double mean[2];
  study_planar_mean(&plane, 0, (double[]){0, 0}, mean); /* both are symmetric */
  for (int i = 0; i < 2; i++) CHECK_NEAR(mean[i], 0, 0.02);
  problem_destroy(&problem);
}

static void test_planar_means(void) {
  check_plane("cross", cross_mean, 1e-3);
  check_plane("H", h_mean, 0.06);
}

/* ---- rounds */

enum { RUNS = 200, ROUNDS = 3 };

typedef void Expected(const RegretFloor *, int b, double *mean);

/* Checks some rounds of a block: means as expected, and all that was learned is theta* plus noise of variance
 * 1 / precision, whatever the arms. */
static void check_rounds(const char *keys, int d, Expected *expected) {
  Problem problem;
  World world;
  RegretFloor floor;
  const Task task = {.first_run = 64, .runs = RUNS};
  double regret[RUNS], mean[8], squares = 0;
  SCRATCH_ARENA(memory);
  CHECK_OK(make_problem(keys, &problem));
  CU_ASSERT_EQUAL_FATAL(problem.d, d);
  CHECK_OK(regret_floor_check(&problem));
  CHECK_OK(world_create(&problem, 0, 64, RUNS, &world));
  CHECK_OK(regret_floor_create(&memory, &problem, &task, &floor));
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    world_advance(&world, round);
    regret_floor_play(&floor, &world, regret);
    for (int b = 0; b < RUNS; b++) CU_ASSERT_TRUE(regret[b] >= 0);
  }
  for (int b = 0; b < RUNS; b++) {
    double longest = 0;
    for (int k = 0; k < problem.arms; k++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += pow(world.features[(size_t)(k * d + i) * RUNS + (size_t)b], 2);
      longest = fmax(longest, square);
    }
    const double sigma = problem.likelihood.noise;
    if (!problem.resample_arms) CHECK_NEAR(floor.precision[b], ROUNDS * longest / (sigma * sigma), 1e-9);
    for (int i = 0; i < d; i++) {
      const double z = floor.vector[i * RUNS + b] - floor.precision[b] * world.theta[i * RUNS + b];
      squares += z * z / floor.precision[b] / (d * RUNS);
    }
  }
  CHECK_NEAR(squares, 1, 4 * sqrt(2.0 / (d * RUNS))); /* chi-squared */
  world_advance(&world, ROUNDS + 1);
  double precision[RUNS], vector[8 * RUNS];
  memcpy(precision, floor.precision, sizeof precision);
  memcpy(vector, floor.vector, (size_t)d * RUNS * sizeof *vector);
  regret_floor_play(&floor, &world, regret);
  double *now = floor.precision, *there = floor.vector;
  floor.precision = precision, floor.vector = vector; /* the evidence behind the means of the last round */
  for (int b = 0; b < RUNS; b++) {
    expected(&floor, b, mean);
    for (int i = 0; i < d; i++) CHECK_NEAR(floor.mean[i * RUNS + b], mean[i], 1e-9);
  }
  floor.precision = now, floor.vector = there;
  world_destroy(&world);
  problem_destroy(&problem);
}

static void expect_gaussian(const RegretFloor *floor, int b, double *mean) {
  for (int i = 0; i < floor->d; i++) mean[i] = floor->vector[i * RUNS + b] / (1 + floor->precision[b]);
}

static void expect_cross(const RegretFloor *floor, int b, double *mean) {
  cross_mean(floor->precision[b], (double[]){floor->vector[b], floor->vector[RUNS + b]}, mean);
}

static void expect_signs(const RegretFloor *floor, int b, double *mean) {
  for (int i = 0; i < floor->d; i++) mean[i] = tanh(floor->vector[i * RUNS + b]);
}

/* Computes what is expected of the file, which holds (k, k^2 / 10), k = 0 .. 9; eight of them are kept for
 * theta*, and only these occur. */
static void expect_file(const RegretFloor *floor, int b, double *mean) {
  double total = 0;
  CU_ASSERT_EQUAL(floor->members, 8);
  mean[0] = mean[1] = 0;
  for (int m = 0; m < 8; m++) {
    const double x = floor->set[m], y = floor->set[8 + m], precision = floor->precision[b];
    CHECK_NEAR(y, x * x / 10, 1e-12);
    const double away[2] = {x - floor->vector[b] / precision, y - floor->vector[RUNS + b] / precision},
                 weight = exp(-0.5 * precision * (away[0] * away[0] + away[1] * away[1]));
    total += weight, mean[0] += weight * x, mean[1] += weight * y;
  }
  mean[0] /= total, mean[1] /= total;
}

static void test_rounds(void) {
  char path[] = "/tmp/test_regret_floor.XXXXXX", keys[200];
  const int file = mkstemp(path);
  for (int k = 0; k < 10; k++) dprintf(file, "%d.0,%g\n", k, k * k / 10.0);
  close(file);
  check_rounds("problem: {theta: gaussian, dimension: 5, arms: 7, noise: 0.5}", 5, expect_gaussian);
  check_rounds("problem: {theta: gaussian, dimension: 3, features: basis}", 3, expect_gaussian);
  check_rounds("problem: {theta: cross, arms: 5, resample_arms: true}", 2, expect_cross);
  check_rounds("problem: {theta: ising, dimension: 4, arms: 9, noise: 2}", 4, expect_signs);
  snprintf(keys, sizeof keys,
           "problem: {theta: file, file: %s, arms: 4, noise: 3}, prior: {test_fraction: 0.8}", path);
  check_rounds(keys, 2, expect_file);
  unlink(path);
}

static void check_refused(const char *keys, const char *why) {
  Problem problem;
  CHECK_OK(make_problem(keys, &problem));
  CHECK_FAILS(regret_floor_check(&problem), STATUS_INPUT, why);
  problem_destroy(&problem);
}

static void test_refusals(void) {
  check_refused("likelihood: logistic, problem: {theta: cross}", "Gaussian rewards");
  check_refused("problem: {theta: cross, unknown: per_arm}", "per_arm");
  check_refused("problem: {family: pool, reward: quadratic}", "quadratic");
  check_refused("problem: {family: twin}", "reveal nothing about theta*");
  check_refused("problem: {theta: ising, dimension: 21}", "distribution is known");
}

static void test_basis(void) {
  Problem problem;
  World world;
  CHECK_OK(make_problem("problem: {theta: gaussian, dimension: 3, features: basis}", &problem));
  CU_ASSERT_EQUAL(problem.arms, 3);
  CHECK_OK(world_create(&problem, 0, 0, 2, &world));
  for (int at = 0; at < 18; at++) CU_ASSERT_EQUAL(world.features[at], at / 6 == at / 2 % 3);
  for (int at = 0; at < 6; at++) CU_ASSERT_EQUAL(world.mean[at], world.theta[at]); /* arm i has theta*_i */
  world_destroy(&world);
  problem_destroy(&problem);
  CHECK_OK(make_problem("problem: {theta: cross, features: basis, arms: 2}", &problem));
  problem_destroy(&problem);
  CHECK_FAILS(make_problem("problem: {theta: cross, features: basis, arms: 5}", &problem), STATUS_INPUT,
              "2 unit vectors");
  CHECK_FAILS(make_problem("problem: {theta: cross, features: basis, unknown: per_arm}", &problem),
              STATUS_INPUT, "share one context");
}

int main(void) {
  CU_TestInfo tests[] = {{"means of densities in the plane", test_planar_means},
                         {"means, and what a round tells", test_rounds},
                         {"where there is no floor", test_refusals},
                         {"arms that are unit vectors", test_basis},
                         CU_TEST_INFO_NULL};
  return harness_run("regret floor", tests);
}
