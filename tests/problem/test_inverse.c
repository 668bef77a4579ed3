/* Linear inverse problems: the matrix has the requested singular values, and the history contains all of y;
 * the mixture on the sphere. */
#include "core/linalg/linalg.h"
#include "harness.h"
#include "problem/problem.h"
#include "problem/problem_theta.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <stdio.h>
#include <string.h>

/* Makes the problem of a study with these keys; the caller frees both. */
static StudyFile *make_with(const char *vectors, int d, int m, double kappa, double snr, double noise,
                            Problem *problem) {
  char text[400];
  StudyFile *file = NULL;
  snprintf(
      text, sizeof text,
      "name: t\nproblem: {family: inverse, theta: gm_sphere, dimension: %d, arms: %d, condition_number: %g, "
      "snr: %g, noise: %g, singular_vectors: %s}\npolicies: [ts]\n",
      d, m, kappa, snr, noise, vectors);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_problem_create(file->settings[0], problem));
  return file;
}

static StudyFile *make(int d, int m, double kappa, double snr, double noise, Problem *problem) {
  return make_with("random", d, m, kappa, snr, noise, problem);
}

/* Computes the eigenvalues of Q = A' A / sigma^2, rising, of run b. */
static void eigenvalues(const World *world, int b, double *q, double *w) {
  const int d = world->problem->d, runs = world->runs;
  const double noise = world->problem->likelihood.noise;
  double vectors[64];
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      q[i * d + j] = 0;
      for (int k = 0; k < world->problem->arms; k++)
        q[i * d + j] += world->features[(k * d + i) * runs + b] * world->features[(k * d + j) * runs + b] /
                        (noise * noise);
    }
  CHECK_OK(linalg_eigen(d, q, vectors, w));
}

/* Checks square, tall and wide matrices: the eigenvalues are snr^2 kappa^(2 k / (r - 1)), k = 0 .. r - 1,
 * after d - r zeros. */
static void test_singular_values(void) {
  const int shapes[][2] = {{4, 4}, {4, 9}, {5, 3}, {3, 1}, {1, 1}};
  for (int k = 0; k < 5; k++) {
    const int d = shapes[k][0], m = shapes[k][1], rank = d < m ? d : m;
    const double kappa = 20, snr = 0.3, noise = 0.7;
    Problem problem;
    World world;
    StudyFile *file = make(d, m, kappa, snr, noise, &problem);
    CU_ASSERT_TRUE(problem.arms_in_order);
    CU_ASSERT_EQUAL(problem.d, d);
    CHECK_OK(world_create(&problem, 0, 3, 2, &world));
    for (int b = 0; b < 2; b++) {
      double q[64], w[8];
      eigenvalues(&world, b, q, w);
      for (int i = 0; i < d; i++) {
        int place = i - (d - rank);
        double share = rank > 1 ? (double)place / (rank - 1) : 0;
        double expected = place < 0 ? 0 : snr * snr * pow(kappa, 2 * share);
        CHECK_NEAR(w[i], expected, 1e-12 * snr * snr * kappa * kappa);
      }
    }
    CU_ASSERT(d == 1 || world.features[0] != world.features[1]); /* each run has a matrix of its own */
    World alone;
    CHECK_OK(world_create(&problem, 0, 4, 1, &alone));
    for (int i = 0; i < d * m; i++) CHECK_NEAR(alone.features[i], world.features[2 * i + 1], 0);
    world_destroy(&alone);
    world_destroy(&world);
    problem_destroy(&problem);
    config_study_free(file);
  }
}

/* Checks that the first right singular vector is uniform on the sphere: E v v' = I / d, within 5 standard
 * errors (the fourth moment 3 / (d (d + 2)) bounds the variance). */
static void test_directions_are_uniform(void) {
  enum { DIMENSION = 3, RUNS = 2000 };
  Problem problem;
  World world;
  StudyFile *file = make(DIMENSION, 1, 1, 1, 1, &problem);
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  for (int i = 0; i < DIMENSION; i++)
    for (int j = 0; j < DIMENSION; j++) {
      double sum = 0;
      for (int b = 0; b < RUNS; b++) sum += world.features[i * RUNS + b] * world.features[j * RUNS + b];
      CHECK_NEAR(sum / RUNS, i == j ? 1.0 / DIMENSION : 0, 5 * sqrt(3.0 / 15 / RUNS));
    }
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(file);
}

/* Checks that Q and the covariance of theta* share their eigenvectors, and that directions that vary more are
 * measured less: Q C is symmetric, and along the axes the eigenvalues of Q fall as those of C rise, so Q is
 * largest along the axis of least variance. */
static void test_principal_directions(void) {
  enum { D = 4 };
  Problem problem;
  World world;
  ThetaSource source;
  double q[D * D], w[D], c[D * D], mean[D], vectors[D * D], variance[D];
  StudyFile *file = make_with("principal", D, 7, 20, 0.3, 0.7, &problem);
  CHECK_OK(world_create(&problem, 0, 3, 1, &world));
  CHECK_OK(problem_theta_create(problem_theta_find("gm_sphere"), D, NULL, 0.2, 1, &source));
  eigenvalues(&world, 0, q, w);
  mixture_moments(&source.mixture, mean, c);
  CHECK_OK(linalg_eigen(D, c, vectors, variance));
  for (int k = 0; k < D; k++)
    for (int i = 0; i < D; i++) {
      double image = 0;
      for (int j = 0; j < D; j++) image += q[i * D + j] * vectors[j * D + k];
      CHECK_NEAR(image, w[D - 1 - k] * vectors[i * D + k], 1e-11 * w[D - 1]);
    }
  problem_theta_destroy(&source);
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(file);
}

/* Checks a refusal: principal axes are known of mixtures only. */
static void test_refusal(void) {
  Problem problem;
  StudyFile *file = NULL;
  CHECK_OK(
      config_study_parse("test",
                         "name: t\nproblem: {family: inverse, theta: swirl, singular_vectors: principal}\n"
                         "policies: [ts]\n",
                         &study_schema, 0, NULL, &file));
  CHECK_FAILS(study_problem_create(file->settings[0], &problem), STATUS_INPUT, "theta = swirl is not one");
  problem_destroy(&problem);
  config_study_free(file);
}

static void test_sphere(void) {
  for (int d = 1; d <= 20; d += 19) {
    ThetaSource source;
    CHECK_OK(problem_theta_create(problem_theta_find("gm_sphere"), d, NULL, 0.2, 5, &source));
    const Mixture *mixture = &source.mixture;
    CU_ASSERT_EQUAL(mixture->components, 6);
    for (int c = 0; c < 6; c++) {
      double square = 0;
      CHECK_NEAR(mixture->weight[c], 1.0 / 6, 1e-15);
      for (int i = 0; i < d; i++) {
        square += mixture->mean[c * d + i] * mixture->mean[c * d + i];
        for (int j = 0; j < d; j++) CHECK_NEAR(mixture->covariance[(c * d + i) * d + j], i == j ? 0.1 : 0, 0);
      }
      CHECK_NEAR(sqrt(square), 2, 1e-12);
    }
    problem_theta_destroy(&source);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"singular values", test_singular_values},
                         {"directions are uniform", test_directions_are_uniform},
                         {"principal directions", test_principal_directions},
                         {"principal directions of what is no mixture", test_refusal},
                         {"mixture on the sphere", test_sphere},
                         CU_TEST_INFO_NULL};
  return harness_run("inverse", tests);
}
