/* The convergence study: divergences against closed forms, the target against its definition, the course of
 * VITS-I and of Langevin where it is known exactly. */
#include "harness.h"

#include "core/linalg/linalg.h"
#include "core/rng.h"
#include "metric/metric_gaussian_kl.h"
#include "problem/problem.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>

static TaskPriors no_priors = {.directory = ""};

static Status make_study(const char *text, Study *out) {
  StudyFile *file = NULL;
  *out = (Study){0};
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  return study_create(file, out);
}

/* Column n of all curves of one policy: curve `which` of run `run` at `point`. */
typedef struct {
  int runs, points;
  double *kl, *steps; /* [runs, points] */
} Course;

/* Runs all blocks of a policy in the first setting. */
static Course run_policy(const Study *study, int policy) {
  const int points = study->points;
  Course course = {.runs = (int)study->runs.most, .points = points};
  const size_t size = (size_t)study->runs.most * (size_t)points;
  course.kl = calloc(size, sizeof(double)), course.steps = calloc(size, sizeof(double));
  for (int i = 0; i < study->task_count; i++) {
    const Task listed = study_task(study, i), *task = &listed;
    TaskResult result;
    if (task->policy != policy || task->setting != 0) continue;
    CHECK_OK(study_result_create(study, task, &result));
    CHECK_OK(study_run_task(study, task, &no_priors, (Tick){0}, &result));
    CU_ASSERT_EQUAL(result.status, RUN_OK);
    if (result.status != RUN_OK) printf("%s\n", result.message);
    const size_t at = (size_t)task->first_run * (size_t)points, count = (size_t)(task->runs * points);
    memcpy(course.steps + at, result.curves, count * sizeof(double));
    memcpy(course.kl + at, result.curves + count, count * sizeof(double));
    for (int b = 0; b < task->runs; b++) {
      CU_ASSERT_TRUE(result.columns.seconds[b] > 0);
      CU_ASSERT_EQUAL(result.columns.fallbacks[b], 0);
    }
    study_result_destroy(&result);
  }
  return course;
}

static void course_free(Course *course) {
  free(course->kl);
  free(course->steps);
}

static double mean_at(const Course *course, const double *curve, int point) {
  double sum = 0;
  for (int r = 0; r < course->runs; r++) sum += curve[r * course->points + point] / course->runs;
  return sum;
}

/* Checks that KL is the sum of its one-dimensional closed forms when both Gaussians are diagonal, and that an
 * affine map x -> M x of both does not change it. */
static void test_divergence(void) {
  enum { D = 3, LANES = 40 };
  static double mean[D * LANES], mu[D * LANES], covariance[D * D * LANES], precision[D * D * LANES],
      log_determinant[LANES], expected[LANES], work[LANES], out[LANES];
  static int jitters[LANES];
  for (int n = 0; n < LANES; n++) {
    Rng rng = {.key = rng_key(3, RNG_TEST), .run = (uint32_t)n};
    double z[4 * D + D * D], map[D * D], inverse[D * D];
    rng_normal(&rng, 4 * D + D * D, z);
    for (int i = 0; i < D * D; i++) map[i] = z[4 * D + i] + (i % (D + 1) ? 0 : 4);
    /* Inverse by the adjugate. */
    double determinant = 0;
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        int a = (i + 1) % D, b = (i + 2) % D, p = (j + 1) % D, q = (j + 2) % D;
        inverse[j * D + i] = map[a * D + p] * map[b * D + q] - map[a * D + q] * map[b * D + p];
      }
    for (int j = 0; j < D; j++) determinant += map[j] * inverse[j * D];
    for (int i = 0; i < D * D; i++) inverse[i] /= determinant;
    log_determinant[n] = -2 * log(fabs(determinant));
    for (int i = 0; i < D; i++) {
      double variance = exp(z[i]), v = exp(z[D + i]), gap = z[2 * D + i] - z[3 * D + i];
      expected[n] += 0.5 * (variance / v + gap * gap / v - 1 - log(variance / v));
      log_determinant[n] -= log(v);
      for (int r = 0; r < D; r++) {
        mean[r * LANES + n] += map[r * D + i] * z[2 * D + i];
        mu[r * LANES + n] += map[r * D + i] * z[3 * D + i];
        for (int c = 0; c < D; c++) {
          covariance[(r * D + c) * LANES + n] += map[r * D + i] * variance * map[c * D + i];
          precision[(r * D + c) * LANES + n] += inverse[i * D + r] / v * inverse[i * D + c];
        }
      }
    }
  }
  for (int i = 0; i < D * D; i++) covariance[i * LANES + 7] = i == 0; /* of rank one */
  GaussianTarget target = {
      .d = D, .lanes = LANES, .mean = mu, .precision = precision, .log_determinant = log_determinant};
  metric_gaussian_kl(&target, mean, covariance, work, jitters, out);
  for (int n = 0; n < LANES; n++)
    if (n != 7) CHECK_NEAR(out[n], expected[n], 1e-9 * (1 + expected[n]));
  CU_ASSERT_TRUE(isnan(out[7]));
  metric_gaussian_kl_log_determinant(D, LANES, precision, jitters, out);
  for (int n = 0; n < LANES; n++) CHECK_NEAR(out[n], log_determinant[n], 1e-9);
}

/* Checks the target: A has the precisions 1 .. 1/kappa in orthogonal directions that are uniform on the
 * sphere, and mu* is N(0, A^-1), so that phi' mu* is standard normal for every arm; a run's target does not
 * depend on its block. */
static void test_target(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3000, D = 4 };
  Study study;
  Problem problem;
  World world, alone;
  CHECK_OK(make_study("name: t\nstudy: convergence\nproblem: {dimension: 4, condition_number: 8}\n"
                      "policies: [vits1]\n",
                      &study));
  CHECK_OK(study_problem_create(study.file->settings[0], &problem));
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  CHECK_OK(world_create(&problem, 0, 11, 1, &alone));
  double direction = 0, squares[D] = {0};
  for (int b = 0; b < RUNS; b++) {
    for (int k = 0; k < D; k++)
      for (int l = 0; l < D; l++) {
        double product = 0;
        for (int i = 0; i < D; i++)
          product += world.features[(k * D + i) * RUNS + b] * world.features[(l * D + i) * RUNS + b];
        CHECK_NEAR(product, k == l ? pow(8, -k / 3.0) : 0, 1e-12);
      }
    for (int k = 0; k < D; k++) squares[k] += world.mean[k * RUNS + b] * world.mean[k * RUNS + b] / RUNS;
    double x = world.features[b];
    direction += x * x / RUNS;
  }
  /* A coordinate of a unit vector in 4 dimensions has second moment 1/4 and fourth 1/8; 4 standard errors. */
  CHECK_NEAR(direction, 0.25, 0.0185);
  for (int k = 0; k < D; k++) CHECK_NEAR(squares[k], 1, 4 * sqrt(2.0 / RUNS));
  Samples samples;
  CHECK_OK(problem_training_samples(&memory, &problem, 0, RUNS, &samples));
  double square = 0, expected = (1 + 2 + 4 + 8) / 4.0; /* mean of the variances; 4 errors of 0.06 */
  for (int n = 0; n < D * RUNS; n++) square += samples.theta[n] * samples.theta[n] / (D * RUNS);
  CHECK_NEAR(square, expected, 0.24);
  for (int i = 0; i < D * D; i++) CHECK_NEAR(world.features[i * RUNS + 11], alone.features[i], 0);
  for (int i = 0; i < D; i++) CHECK_NEAR(world.theta[i * RUNS + 11], alone.theta[i], 0);
  world_destroy(&world), world_destroy(&alone);
  problem_destroy(&problem);
  study_destroy(&study);
}

/* Checks the course of VITS: with A = I, VITS-I and VITS-II keep B = I, and mu - mu* <- (1 - h)(mu - mu*) - h
 * eps. So the mean divergence after k steps from mu = 0 is d/2 (r^k + h^2 (1 - r^k) / (1 - r)), r = (1 -
 * h)^2. */
static void test_course_of_vits(void) {
  enum { RUNS = 800, D = 3 };
  const double h = 0.1, r = (1 - h) * (1 - h);
  Study study;
  CHECK_OK(make_study("name: t\nstudy: convergence\nseed: 5\nruns: 800\nproblem: {dimension: 3}\nmax_steps: "
                      "60\ntarget_kl: 0.3\npolicies: [{name: vits1, step_size: 0.1}, {name: vits2, "
                      "step_size: 0.1}]\n",
                      &study));
  for (int policy = 0; policy < 2; policy++) {
    Course course = run_policy(&study, policy);
    for (int i = 0; i < study.points; i++) {
      double k = study.ops->axis_value(study.file->settings[0], NULL, i), left = pow(r, k);
      double expected = D / 2.0 * (left + h * h * (1 - left) / (1 - r));
      /* A scaled chi^2 with 3 degrees of freedom: standard deviation sqrt(2 / 3) of the mean; 4 errors. */
      CHECK_NEAR(mean_at(&course, course.kl, i), expected, 4 * expected * sqrt(2.0 / D / RUNS));
    }
    for (int b = 0; b < RUNS; b++) { /* while every step is stored: the first step at the target or below */
      int first = 0;
      while (first < 8 && course.kl[b * study.points + first] > 0.3) first++;
      double steps = course.steps[b * study.points];
      CU_ASSERT_TRUE(first < 8 ? steps == first + 1 : isnan(steps) || steps > 8);
    }
    course_free(&course);
  }
  study_destroy(&study);
}

/* Checks the course of Langevin: on A = I, with step h it has the stationary variance v = 1 / (1 - h / 2), so
 * the divergence of its time average tends to d/2 (v - 1 - log v). With h = 1/2 states k steps apart have
 * correlation 2^-k, so 20 000 of them are worth 6 700 independent ones and leave an additional divergence of
 * about (d + d (d + 1) / 2) / 2 / 6700 < 0.001. */
static void test_course_of_langevin(void) {
  Study study;
  CHECK_OK(make_study("name: t\nstudy: convergence\nruns: 40\nproblem: {dimension: 2}\nmax_steps: 20000\n"
                      "policies: [{name: lmc, step_size: 0.5}]\n",
                      &study));
  Course course = run_policy(&study, 0);
  const double v = 1 / 0.75;
  CHECK_NEAR(mean_at(&course, course.kl, study.points - 1), v - 1 - log(v), 0.01);
  CU_ASSERT_TRUE(isnan(course.kl[0]) &&
                 isnan(course.kl[1])); /* d states do not span the space about their mean */
  course_free(&course);
  study_destroy(&study);
}

/* Checks that larger steps arrive sooner within the stable range, and that ill-conditioned targets take
 * longer. */
static void test_steps_to_target(void) {
  double steps[3];
  static const char *const variants[] = {"step_size: 0.02", "step_size: 0.05", "step_size: 0.1"};
  for (int kappa = 1; kappa <= 10; kappa += 9) {
    for (int i = 0; i < 3; i++) {
      char text[400];
      Study study;
      snprintf(text, sizeof text,
               "name: t\nstudy: convergence\nruns: 50\nproblem: {condition_number: %d}\nmax_steps: 3000\n"
               "target_kl: 0.3\npolicies: [{name: vits2, %s}]\n",
               kappa, variants[i]);
      CHECK_OK(make_study(text, &study));
      Course course = run_policy(&study, 0);
      double mean = mean_at(&course, course.steps, 0);
      if (kappa > 1) CU_ASSERT_TRUE(mean > 2 * steps[i]);
      steps[i] = mean;
      if (i > 0) CU_ASSERT_TRUE(mean < 0.7 * steps[i - 1]);
      CHECK_NEAR(mean_at(&course, course.steps, study.points - 1), mean, 0); /* the same at every step */
      course_free(&course);
      study_destroy(&study);
    }
  }
}

/* Checks that the bytes do not depend on the block. */
static void test_blocks(void) {
  static const char *const blocks[] = {"block: 64", "block: 5"};
  Course courses[2][2];
  for (int i = 0; i < 2; i++) {
    char text[400];
    Study study;
    snprintf(text, sizeof text,
             "name: t\nstudy: convergence\nruns: 12\n%s\nproblem: {condition_number: 5}\nmax_steps: 400\n"
             "policies: [{name: vits2_hf, step_size: 0.05}, {name: lmc, step_size: 0.1}]\n",
             blocks[i]);
    CHECK_OK(make_study(text, &study));
    for (int policy = 0; policy < 2; policy++) courses[i][policy] = run_policy(&study, policy);
    study_destroy(&study);
  }
  for (int policy = 0; policy < 2; policy++) {
    const size_t size = 12 * (size_t)courses[0][policy].points * sizeof(double);
    CU_ASSERT_EQUAL(memcmp(courses[0][policy].kl, courses[1][policy].kl, size), 0);
    CU_ASSERT_EQUAL(memcmp(courses[0][policy].steps, courses[1][policy].steps, size), 0);
    for (int i = 0; i < 2; i++) course_free(&courses[i][policy]);
  }
}

static void test_axis(void) {
  static const char *const texts[] = {"max_steps: 1", "max_steps: 7", "max_steps: 50000"};
  static const double last[] = {1, 7, 50000};
  for (int i = 0; i < 3; i++) {
    char text[200];
    Study study;
    snprintf(text, sizeof text, "name: t\nstudy: convergence\n%s\npolicies: [vits1]\n", texts[i]);
    CHECK_OK(make_study(text, &study));
    const Config *setting = study.file->settings[0];
    CHECK_NEAR(study.ops->axis_value(setting, NULL, 0), 1, 0);
    CHECK_NEAR(study.ops->axis_value(setting, NULL, study.points - 1), last[i], 0);
    for (int k = 1; k < study.points; k++)
      CU_ASSERT_TRUE(study.ops->axis_value(setting, NULL, k) > study.ops->axis_value(setting, NULL, k - 1));
    study_destroy(&study);
  }
}

static void test_refusals(void) {
  Study study;
  CHECK_FAILS(make_study("name: t\nstudy: convergence\npolicies: [ts]\n", &study), STATUS_INPUT,
              "policy 'ts': it does not step towards a target, and study convergence counts steps: use one "
              "of vits1, vits2, vits2_hf, lmc, rvga");
  study_destroy(&study);
  CHECK_FAILS(make_study("name: t\nstudy: convergence\npolicies: [egreedy]\n", &study), STATUS_INPUT,
              "does not step");
  study_destroy(&study);
  CHECK_FAILS(make_study("name: t\nstudy: convergence\nlikelihood: logistic\npolicies: [vits1]\n", &study),
              STATUS_INPUT, "likelihood must be gaussian");
  study_destroy(&study);
}

/* Checks that what the study has no use for is refused, key by key, and that what it sets itself may be
 * given. */
static void test_unused_options(void) {
  static const struct {
    const char *policy, *sentence;
  } refused[] = {
      {"{name: lmc, steps: 20}", "policy 'lmc': option steps = 20, but study convergence takes one step at a "
                                 "time: leave it out, or use 1"},
      {"{name: lmc, eta: 10}", "option eta = 10, but study convergence has a target that is not tempered"},
      {"{name: lmc, lambda: 0.5}", "option lambda = 0.5, but"},
      {"{name: lmc, temper: 2}", "option temper = 2, but"},
      {"{name: vits1, prior: gaussian}", "option prior = gaussian, but study convergence starts every method "
                                         "at N(0, I): leave it out, or use standard"},
      {"{name: vits2, components: 4}", "option components = 4, but study convergence compares one Gaussian"},
      {"{name: lmc, components: 4}", "option components = 4, but"},
      {"{name: fgts}", "does not step towards a target"}};
  static const char *const admitted[] = {
      "{name: lmc, steps: 1, step_rule: eta_t, eta: 1, lambda: 1, temper: 1, prior: standard}",
      "{name: lmc, posterior: shared}", "{name: vits2_hf, samples: 30, step_size: 0.02, components: 1}",
      "{name: rvga, eta: 1.0}"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char text[300];
    Study study;
    snprintf(text, sizeof text, "name: t\nstudy: convergence\npolicies: [%s]\n", refused[i].policy);
    CHECK_FAILS(make_study(text, &study), STATUS_INPUT, refused[i].sentence);
    study_destroy(&study);
  }
  for (size_t i = 0; i < sizeof admitted / sizeof *admitted; i++) {
    char text[300];
    Study study;
    snprintf(text, sizeof text, "name: t\nstudy: convergence\npolicies: [%s]\n", admitted[i]);
    CHECK_OK(make_study(text, &study));
    study_destroy(&study);
  }
}

static void test_unused_keys(void) {
  static const char *const refused[][2] = {
      {"problem: {arms: 7}", "key 'problem.arms': 7, but study convergence does not use it"},
      {"problem: {family: pool}", "key 'problem.family': pool, but"},
      {"problem: {theta: rays}", "key 'problem.theta': rays, but"},
      {"problem: {noise: 2}", "key 'problem.noise': 2, but"},
      {"prior: {stages: 7}", "key 'prior.stages': 7, but"},
      {"sweep: {problem.rounds: [200, 300]}", "setting problem.rounds=300: key 'problem.rounds': 300, but"}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char text[300];
    Study study;
    snprintf(text, sizeof text, "name: t\nstudy: convergence\npolicies: [vits1]\n%s\n", refused[i][0]);
    CHECK_FAILS(make_study(text, &study), STATUS_INPUT, refused[i][1]);
    study_destroy(&study);
  }
  Study study;
  CHECK_OK(make_study("name: t\nstudy: convergence\npolicies: [vits1]\nprior: {replicates: 2}\n"
                      "problem: {dimension: 3, condition_number: 4}\n",
                      &study));
  /* The resolved study, with every value filled in, is read again without complaint. */
  Study again;
  CHECK_OK(make_study(study.file->resolved, &again));
  study_destroy(&again);
  study_destroy(&study);
}

int main(void) {
  CU_TestInfo tests[] = {{"divergence between Gaussians", test_divergence},
                         {"the target: precisions, directions, mean", test_target},
                         {"VITS on a round target, step by step", test_course_of_vits},
                         {"Langevin on a round target: its bias", test_course_of_langevin},
                         {"steps to the target fall with the step size", test_steps_to_target},
                         {"blocks do not matter", test_blocks},
                         {"the axis", test_axis},
                         {"refusals", test_refusals},
                         {"options without a use are refused", test_unused_options},
                         {"keys without a use are refused", test_unused_keys},
                         CU_TEST_INFO_NULL};
  return harness_run("convergence", tests);
}
