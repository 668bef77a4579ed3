/* Past tasks have the law of the problem: arms at random, rewards of its likelihood given the samples that
 * priors are otherwise fitted to, and nothing in common with runs. */
#include "harness.h"

#include "problem/problem_past.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TASKS = 2000, EACH = 20, D = 3, MOST = TASKS * EACH };

typedef struct {
  int d, tasks, observations; /* of each task */
  double phi[MOST * 4]; /* [tasks, observations, d], d <= 4 */
  double y[MOST]; /* [tasks, observations] */
  int seen[TASKS];
} Past;

static void take(Past *past, int task, const double *phi, double y) {
  CU_ASSERT_FATAL(task <= past->tasks && task < TASKS);
  if (task == past->tasks) past->seen[past->tasks++] = 0;
  const size_t at = (size_t)task * (size_t)past->observations + (size_t)past->seen[task]++;
  memcpy(past->phi + at * (size_t)past->d, phi, (size_t)past->d * sizeof *phi);
  past->y[at] = y;
}

/* Plays into logs that keep their rows, whatever the likelihood of the problem. */
static void play_from(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                      Past *out) {
  SCRATCH_ARENA(memory);
  const Likelihood keeps_rows = {.ops = likelihood_find("logistic")};
  const int d = problem->d;
  Logs logs;
  out->d = d, out->tasks = 0, out->observations = observations;
  CHECK_OK(logs_create(&memory, d, &keeps_rows, &logs));
  CHECK_OK(problem_past_logs(problem, replicate, first, tasks, observations, &logs));
  for (int64_t r = 0; r < logs.observations; r++) {
    const double *row = logs_row(&logs, r);
    take(out, (int)row[d + 1], row, row[d]);
  }
  for (int t = 0; t < out->tasks; t++) CU_ASSERT_EQUAL(out->seen[t], observations);
}

static void play(const Problem *problem, uint32_t replicate, int tasks, int observations, Past *out) {
  play_from(problem, replicate, 0, tasks, observations, out);
}

static void open_problem(const char *text, StudyFile **file, Problem *problem) {
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, file));
  CHECK_OK(study_problem_create((*file)->settings[0], problem));
}

static double predictor(const Past *past, const Samples *theta, int task, int l) {
  const double *phi = past->phi + ((size_t)task * (size_t)past->observations + (size_t)l) * D;
  double u = 0;
  for (int i = 0; i < D; i++) u += phi[i] * theta->theta[i * theta->n + task];
  return u;
}

/* Checks that rewards less their means have mean zero, the variance of the likelihood, and no correlation
 * with phi; all within 5 standard errors, estimated from the sample. */
static void check_rewards(const Problem *problem, const Past *past, const Samples *theta) {
  enum { SUMS = D + 2 };
  double sum[SUMS] = {0}, square[SUMS] = {0};
  const int rows = past->tasks * past->observations;
  for (int t = 0; t < past->tasks; t++)
    for (int l = 0; l < past->observations; l++) {
      const int at = t * past->observations + l;
      const double u = predictor(past, theta, t, l);
      double mean;
      problem->likelihood.ops->mean(&problem->likelihood, 1, &u, &mean);
      const bool gaussian = !strcmp(problem->likelihood.ops->name, "gaussian");
      const double variance =
          gaussian ? problem->likelihood.noise * problem->likelihood.noise : mean * (1 - mean);
      const double residual = past->y[at] - mean;
      double x[SUMS] = {residual, residual * residual - variance};
      for (int i = 0; i < D; i++) x[2 + i] = residual * past->phi[at * D + i];
      for (int i = 0; i < SUMS; i++) sum[i] += x[i], square[i] += x[i] * x[i];
    }
  for (int i = 0; i < SUMS; i++) CHECK_NEAR(sum[i], 0, 5 * sqrt(square[i]));
  CU_ASSERT(square[0] > 0.01 * rows); /* and the sums are not empty */
}

/* Checks E phi = 0 and E phi phi' = I / (d + 2) in the unit ball; each entry within 5 standard errors: the
 * variance of phi_i is at most 1 / (d + 2), that of phi_i phi_j at most 3 / ((d + 2) (d + 4)). */
static void check_arms(const Past *past) {
  const int rows = past->tasks * past->observations;
  for (int i = 0; i < D; i++) {
    double mean = 0, moment[D] = {0};
    for (int r = 0; r < rows; r++) {
      const double *phi = past->phi + r * D;
      mean += phi[i] / rows;
      for (int j = 0; j < D; j++) moment[j] += phi[i] * phi[j] / rows;
    }
    CHECK_NEAR(mean, 0, 5 * sqrt(1.0 / (D + 2) / rows));
    for (int j = 0; j < D; j++)
      CHECK_NEAR(moment[j], i == j ? 1.0 / (D + 2) : 0, 5 * sqrt(3.0 / ((D + 2) * (D + 4)) / rows));
  }
}

static void test_law(void) {
  SCRATCH_ARENA(memory);
  static const char *const likelihoods[] = {"gaussian", "logistic"};
  for (int k = 0; k < 2; k++) {
    char text[200];
    StudyFile *file;
    Problem problem;
    static Past past;
    Samples theta;
    snprintf(text, sizeof text,
             "name: t\nproblem: {theta: gaussian, dimension: %d, noise: 0.5, resample_arms: true}\n"
             "likelihood: %s\npolicies: [ts]\n",
             D, likelihoods[k]);
    open_problem(text, &file, &problem);
    CHECK_OK(problem_past_check(&problem));
    play(&problem, 3, TASKS, EACH, &past);
    CHECK_OK(problem_training_samples(&memory, &problem, 3, TASKS, &theta));
    CU_ASSERT(past.tasks == TASKS && past.observations == EACH && past.d == D);
    check_rewards(&problem, &past, &theta);
    check_arms(&past);
    problem_destroy(&problem), config_study_free(file);
  }
}

/* Checks that where arms stay, a task has K of them and plays each equally often: 20 x 2000 of 4 within 5
 * standard errors. */
static void test_arms_that_stay(void) {
  enum { K = 4 };
  StudyFile *file;
  Problem problem;
  static Past past;
  open_problem("name: t\nproblem: {theta: gaussian, dimension: 3, arms: 4}\npolicies: [ts]\n", &file,
               &problem);
  play(&problem, 0, TASKS, EACH, &past);
  int pairs = 0;
  for (int t = 0; t < TASKS; t++) {
    const double *phi = past.phi + (size_t)t * EACH * D;
    int different = 0;
    for (int l = 0; l < EACH; l++) {
      bool seen = false;
      for (int m = 0; m < l; m++) seen |= memcmp(phi + l * D, phi + m * D, D * sizeof *phi) == 0;
      different += !seen;
    }
    CU_ASSERT(different <= K);
    pairs += memcmp(phi, phi + D, D * sizeof *phi) == 0; /* with probability 1 / K */
  }
  CHECK_NEAR(pairs, TASKS / (double)K, 5 * sqrt(TASKS * (K - 1.0)) / K);
  problem_destroy(&problem), config_study_free(file);
}

/* Checks that tasks stay the same with more tasks, with more observations of each, and wherever one begins;
 * replicates share nothing. */
static void test_names(void) {
  StudyFile *file;
  Problem problem;
  static Past few, many, other, last;
  open_problem("name: t\nproblem: {theta: H}\npolicies: [ts]\n", &file, &problem);
  play(&problem, 0, 270, 3, &few); /* more than a block */
  play(&problem, 0, 300, 5, &many);
  play(&problem, 1, 270, 3, &other);
  play_from(&problem, 0, 260, 10, 3, &last);
  CU_ASSERT(last.tasks == 10 && memcmp(last.y, few.y + 260 * 3, 30 * sizeof *few.y) == 0);
  CU_ASSERT(memcmp(last.phi, few.phi + 260 * 6, 60 * sizeof *few.phi) == 0);
  for (size_t t = 0; t < 270; t++)
    for (size_t l = 0; l < 3; l++) {
      CU_ASSERT_EQUAL(few.y[t * 3 + l], many.y[t * 5 + l]);
      CU_ASSERT_EQUAL(few.phi[2 * (t * 3 + l)], many.phi[2 * (t * 5 + l)]);
      CU_ASSERT_NOT_EQUAL(few.y[t * 3 + l], other.y[t * 3 + l]);
      CU_ASSERT_NOT_EQUAL(few.phi[2 * (t * 3 + l)], other.phi[2 * (t * 3 + l)]);
    }
  problem_destroy(&problem), config_study_free(file);
}

/* Checks that no arm and no theta* of the first runs is that of a past task, whatever its number. */
static void test_runs_are_others(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 64 };
  StudyFile *file;
  Problem problem;
  static Past past;
  Samples theta;
  World world;
  open_problem("name: t\nproblem: {theta: rays, arms: 10}\npolicies: [ts]\n", &file, &problem);
  play(&problem, 0, RUNS, EACH, &past);
  CHECK_OK(problem_training_samples(&memory, &problem, 0, RUNS, &theta));
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  for (int i = 0; i < RUNS * EACH * 2; i++)
    for (int j = 0; j < RUNS * 10 * 2; j++)
      if (past.phi[i] == world.features[j]) CU_FAIL("an arm of a run");
  for (int i = 0; i < RUNS * 2; i++)
    for (int j = 0; j < RUNS * 2; j++)
      if (theta.theta[i] == world.theta[j]) CU_FAIL("theta* of a run");
  world_destroy(&world);
  problem_destroy(&problem), config_study_free(file);
}

/* Checks that a finite set gives one task for each sample to learn from. */
static void test_finite_set(void) {
  StudyFile *file;
  Problem problem;
  static Past past;
  char path[] = "/tmp/test_past_XXXXXX", text[200];
  FILE *out = fdopen(mkstemp(path), "w");
  for (int i = 0; i < 50; i++) fprintf(out, "%d.0,%d\n", i, -i * i);
  fclose(out);
  snprintf(text, sizeof text, "name: t\nproblem: {theta: file, file: %s}\npolicies: [ts]\n", path);
  open_problem(text, &file, &problem);
  play(&problem, 0, 1000, 2, &past);
  CU_ASSERT_EQUAL(past.tasks, 40);
  play_from(&problem, 0, 35, 1000, 2, &past);
  CU_ASSERT_EQUAL(past.tasks, 5);
  play_from(&problem, 0, 40, 1000, 2, &past);
  CU_ASSERT_EQUAL(past.tasks, 0);
  problem_destroy(&problem), config_study_free(file);
  unlink(path);
}

static void test_arms_of_theta(void) {
  StudyFile *file;
  Problem problem;
  open_problem("name: t\nproblem: {family: twin}\npolicies: [ts]\n", &file, &problem);
  CHECK_FAILS(problem_past_check(&problem), STATUS_INPUT, "problem.family = twin");
  problem_destroy(&problem), config_study_free(file);
}

/* Checks families with many keys, and a theta* for each arm: finite numbers of the right shape. */
static void test_other_problems(void) {
  static const char *const problems[] = {"{family: pool, dimension: 4, reward: quadratic}",
                                         "{family: inverse, theta: cross, arms: 3}",
                                         "{theta: swirl, arms: 5, unknown: per_arm}"};
  for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
    char text[200];
    StudyFile *file;
    Problem problem;
    static Past past;
    snprintf(text, sizeof text, "name: t\nproblem: %s\npolicies: [ts]\n", problems[k]);
    open_problem(text, &file, &problem);
    CHECK_OK(problem_past_check(&problem));
    play(&problem, 0, 10, 4, &past);
    for (int i = 0; i < 40 * past.d; i++) CU_ASSERT(isfinite(past.phi[i]) && past.phi[i] != 0);
    for (int i = 0; i < 40; i++) CU_ASSERT(isfinite(past.y[i]) && past.y[i] != 0);
    problem_destroy(&problem), config_study_free(file);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"law of arms and rewards", test_law},
                         {"arms that stay", test_arms_that_stay},
                         {"streams of tasks and replicates", test_names},
                         {"nothing of the runs", test_runs_are_others},
                         {"as many tasks as a finite set has", test_finite_set},
                         {"refused where arms are made of theta*", test_arms_of_theta},
                         {"the other families", test_other_problems},
                         CU_TEST_INFO_NULL};
  return harness_run("past", tests);
}
