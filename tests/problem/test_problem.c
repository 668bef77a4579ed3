/* Worlds: the distributions of theta* against their definitions (walks the registry), common random numbers,
 * regret against its definition. */
#include "harness.h"

#include "core/linalg/linalg.h"
#include "problem/problem.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 4000 };

/* Reads a study of one setting from text; the caller frees it. */
static StudyFile *read_study(const char *text) {
  StudyFile *file = NULL;
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  return file;
}

/* Tells whether u lies in the support; definitions, written a second time. */
static bool in_support(const char *name, double x, double y) {
  double r = sqrt(x * x + y * y);
  bool square = fabs(x) <= 3 && fabs(y) <= 3;
  if (!strcmp(name, "rays")) return r < 3 && (fabs(x) > 0.95 * r || fabs(y) > 0.95 * r);
  if (!strcmp(name, "triangles")) return square && (x > 0 ? fabs(y) < x : 3 * fabs(y) < -x);
  if (!strcmp(name, "ising")) return fabs(x) == 1 && fabs(y) == 1;
  if (!strcmp(name, "H")) return square && !(fabs(x) <= 2.5 && fabs(y) >= 0.25);
  if (!strcmp(name, "corners"))
    return square && (fabs(x) > 2.5 || fabs(y) > 2.5) && fabs(x) > 1 && fabs(y) > 1;
  if (!strcmp(name, "gm_four")) /* within 6 standard deviations of a mode */
    return hypot(fabs(x) - 3, y) < 1.9 || hypot(x, fabs(y) - 3) < 1.9;
  return true;
}

/* Tells whether both definitions of this file cover that distribution. */
static bool defined_here(const char *name) {
  static const char *const names[] = {"cross",    "rays",    "triangles",    "swirl",   "H",        "corners",
                                      "gm_cross", "gm_rays", "gm_triangles", "gm_four", "gaussian", "ising"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Computes mean and covariance by the definition: numerical integration over the square, or closed forms. The
 * mixture variants have the moments of the distributions that they replace. out: mean x, y, var x, var y,
 * cov. */
static void moments(const char *name, double *out) {
  if (!strncmp(name, "gm_", 3)) name += 3;
  double sum = 0, m[5] = {0};
  enum { CELLS = 1200 };
  if (!strcmp(name, "four")) { /* (3^2 + 0) / 2 + 0.1 */
    memcpy(out, (double[]){0, 0, 4.6, 4.6, 0}, 5 * sizeof *out);
    return;
  }
  if (!strcmp(name, "ising")) {
    memcpy(out, (double[]){0, 0, 1, 1, 0}, 5 * sizeof *out);
    return;
  }
  for (int i = 0; i < CELLS; i++)
    for (int j = 0; j < CELLS; j++) {
      double x, y, weight = 1;
      if (!strcmp(name, "swirl")) {
        double u = (i + 0.5) / CELLS, v = (j + 0.5) / CELLS, radius = 3.5 * u - u * (v - 0.5);
        x = sin(2 * M_PI * u) * radius + 1, y = cos(2 * M_PI * u) * radius - 1;
      } else {
        x = 6 * (i + 0.5) / CELLS - 3, y = 6 * (j + 0.5) / CELLS - 3;
        weight = in_support(name, x, y);
      }
      sum += weight, m[0] += weight * x, m[1] += weight * y, m[2] += weight * x * x, m[3] += weight * y * y,
          m[4] += weight * x * y;
    }
  for (int i = 0; i < 5; i++) m[i] /= sum;
  out[0] = m[0], out[1] = m[1], out[2] = m[2] - m[0] * m[0], out[3] = m[3] - m[1] * m[1],
  out[4] = m[4] - m[0] * m[1];
  if (!strcmp(name, "cross"))
    memcpy(out, (double[]){0, 0, 1, 1, 0.045}, 5 * sizeof *out); /* (0.99 - 0.9) / 2 */
  if (!strcmp(name, "gaussian") || !strcmp(name, "ising"))
    memcpy(out, (double[]){0, 0, 1, 1, 0}, 5 * sizeof *out);
}

/* Checks what holds for every distribution: it has one form; the theta* of a run and the samples for priors
 * do not depend on what else is drawn; and both are from one distribution: their means agree within 5
 * standard errors. Distributions that need a file are tested below and by the program tests. */
static void check_distribution(const ThetaOps *ops) {
  SCRATCH_ARENA(memory);
  ThetaSource source;
  Samples samples, fewer;
  CU_ASSERT_PTR_EQUAL(problem_theta_find(ops->name), ops);
  CU_ASSERT(ops->name[0] && ops->summary[0] && ops->reference[0]);
  CU_ASSERT_EQUAL(!!ops->inside + !!ops->sample + !!ops->planar + !!ops->modes + !!ops->mixture +
                      !!ops->load + !!ops->prior + !!ops->set,
                  1);
  CU_ASSERT(!problem_theta_is_planar(ops) || ops->dimension == 2);
  if (ops->load || ops->set) return;
  CHECK_OK(problem_theta_create(ops, 0, NULL, 0.2, 5, &source));
  const int d = source.d;
  double *theta = calloc((size_t)d * RUNS, sizeof *theta), *one = calloc((size_t)d, sizeof *one);
  CU_ASSERT_PTR_NOT_NULL_FATAL(theta);
  CU_ASSERT_PTR_NOT_NULL_FATAL(one);
  problem_theta_draw(&source, RNG_THETA, 0, 3, RUNS, theta);
  problem_theta_draw(&source, RNG_THETA, 0, 3 + 17, 1, one);
  for (int i = 0; i < d; i++) CU_ASSERT_EQUAL(one[i], theta[i * RUNS + 17]);
  problem_theta_draw_each(&source, 0, 3 + 17, 1, 1, one);
  for (int i = 0; i < d; i++) CU_ASSERT_EQUAL(one[i], theta[i * RUNS + 17]);
  CHECK_OK(problem_theta_training_samples(&memory, &source, 0, RUNS, &samples));
  CHECK_OK(problem_theta_training_samples(&memory, &source, 0, 10, &fewer));
  CU_ASSERT_FATAL(samples.d == d && samples.n == RUNS && fewer.n == 10);
  for (int i = 0; i < d; i++) {
    double mean[2] = {0}, square[2] = {0};
    for (int n = 0; n < 2 * RUNS; n++) {
      const double x = n < RUNS ? theta[i * RUNS + n] : samples.theta[i * RUNS + n - RUNS];
      CU_ASSERT_FATAL(isfinite(x));
      mean[n / RUNS] += x / RUNS, square[n / RUNS] += x * x / RUNS;
    }
    const double variance = square[0] - mean[0] * mean[0] + square[1] - mean[1] * mean[1];
    CHECK_NEAR(mean[0], mean[1], 5 * sqrt(variance / RUNS));
    for (int n = 0; n < 10; n++) CU_ASSERT_EQUAL(fewer.theta[i * 10 + n], samples.theta[i * RUNS + n]);
    CU_ASSERT(samples.theta[i * RUNS] != theta[i * RUNS] ||
              samples.theta[i * RUNS + 1] != theta[i * RUNS + 1] ||
              ops->prior); /* another stream, but corners coincide */
  }
  free(theta), free(one);
  problem_theta_destroy(&source);
}

static void test_every_distribution(void) {
  for (int i = 0; theta_distributions[i].name; i++) check_distribution(&theta_distributions[i]);
}

static void test_definitions(void) {
  int count = 0;
  for (int i = 0; theta_distributions[i].name; i++) {
    const ThetaOps *ops = &theta_distributions[i];
    ThetaSource source;
    if (!defined_here(ops->name)) continue;
    count++;
    CHECK_OK(problem_theta_create(ops, 0, NULL, 0.2, 5, &source));
    CU_ASSERT_EQUAL(source.d, 2);
    static double theta[2 * RUNS];
    double expected[5], found[5] = {0};
    problem_theta_draw(&source, RNG_THETA, 0, 0, RUNS, theta);
    moments(ops->name, expected);
    for (int r = 0; r < RUNS; r++) {
      double x = theta[r], y = theta[RUNS + r];
      CU_ASSERT_TRUE(in_support(ops->name, x, y));
      found[0] += x / RUNS, found[1] += y / RUNS, found[2] += x * x / RUNS, found[3] += y * y / RUNS,
          found[4] += x * y / RUNS;
    }
    found[2] -= found[0] * found[0], found[3] -= found[1] * found[1], found[4] -= found[0] * found[1];
    /* 4000 draws: the standard error of a mean is sd / 63, of a second moment at most 9 / 63 / 2 for |theta|
     * <= 4; 4 of them. */
    for (int k = 0; k < 5; k++)
      CHECK_NEAR(found[k], expected[k], k < 2 ? 4 * sqrt(expected[2 + k] / RUNS) : 4 * 4.5 / sqrt(RUNS));
    problem_theta_destroy(&source);
  }
  CU_ASSERT_EQUAL(count, 12); /* all that are defined here are registered */
}

/* Checks the components of gm_rays against samples of the real rays, told apart by the axis that they are
 * closest to: weight, mean and covariance within 5 standard errors of 4000 points. For the standard errors of
 * the covariance: a deviation from the mean has a square of at most 4.5 along a ray, 0.9 across. */
static void test_mixture_of_rays(void) {
  enum { N = 16000 };
  static double theta[2 * N];
  ThetaSource rays, mixture;
  CHECK_OK(problem_theta_create(problem_theta_find("rays"), 0, NULL, 0.2, 5, &rays));
  CHECK_OK(problem_theta_create(problem_theta_find("gm_rays"), 0, NULL, 0.2, 5, &mixture));
  problem_theta_draw(&rays, RNG_THETA, 0, 0, N, theta);
  CU_ASSERT_EQUAL(mixture.mixture.components, 4);
  for (int c = 0; c < 4; c++) {
    const double *mean = mixture.mixture.mean + 2 * c, *covariance = mixture.mixture.covariance + 4 * c;
    double count = 0, sum[2] = {0}, product[3] = {0};
    for (int n = 0; n < N; n++) {
      double x = theta[n], y = theta[N + n], length = hypot(mean[0], mean[1]);
      if ((x * mean[0] + y * mean[1]) / length < 0.9 * hypot(x, y)) continue;
      double a = x - mean[0], b = y - mean[1];
      count++, sum[0] += a, sum[1] += b, product[0] += a * a, product[1] += a * b, product[2] += b * b;
    }
    CHECK_NEAR(count / N, mixture.mixture.weight[c], 5 * sqrt(0.25 * 0.75 / N));
    CHECK_NEAR(sum[0] / count, 0, 5 * sqrt(covariance[0] / count));
    CHECK_NEAR(sum[1] / count, 0, 5 * sqrt(covariance[3] / count));
    CHECK_NEAR(product[0] / count, covariance[0], 5 * sqrt(4.5 * covariance[0] / count));
    CHECK_NEAR(product[1] / count, covariance[1], 5 * sqrt(0.9 * 0.5 / count));
    CHECK_NEAR(product[2] / count, covariance[3], 5 * sqrt(4.5 * covariance[3] / count));
  }
  problem_theta_destroy(&rays);
  problem_theta_destroy(&mixture);
}

/* Checks log densities: the integral over the cells of a grid against the share of samples in each,
 * chi-squared at level 1e-4; all cells together give 1. The integrals are by the midpoint rule, FINE^2 points
 * per cell: their error is below 1% of a cell's mass, except in the cells around the tip of the swirl, where
 * the density has no bound; these are left out. */
static void test_log_densities(void) {
  SCRATCH_ARENA(memory);
  enum { N = 40000, CELLS = 18, FINE = 60 };
  static double theta[2 * N];
  int densities = 0;
  for (int i = 0; theta_distributions[i].name; i++) {
    const ThetaOps *ops = &theta_distributions[i];
    if (!problem_theta_is_planar(ops)) continue;
    const bool swirl = !strcmp(ops->name, "swirl");
    ThetaSource source;
    Prior prior;
    double count[CELLS * CELLS] = {0}, total = 0, chi = 0, freedom = -1, lost = 0;
    CHECK_OK(problem_theta_create(ops, 0, NULL, 0.2, 5, &source));
    CHECK_OK(problem_theta_prior(&memory, &source, NULL, &prior));
    problem_theta_draw(&source, RNG_THETA, 0, 0, N, theta);
    const double low = -4.5, width = 9.0 / CELLS, step = width / FINE;
    for (int n = 0; n < N; n++) {
      int x = (int)floor((theta[n] - low) / width), y = (int)floor((theta[N + n] - low) / width);
      double density;
      prior.ops->log_density(&prior, 1, (double[]){theta[n], theta[N + n]}, &density);
      CU_ASSERT_FATAL(isfinite(density)); /* samples lie in the support */
      if (x >= 0 && x < CELLS && y >= 0 && y < CELLS)
        count[y * CELLS + x]++;
      else
        lost++;
    }
    for (int c = 0; c < CELLS * CELLS; c++) {
      double mass = 0, x = low + width * (c % CELLS), y = low + width * (c / CELLS);
      for (int k = 0; k < FINE * FINE; k++) {
        const double at[2] = {x + step * (k % FINE + 0.5), y + step * (k / FINE + 0.5)};
        double density;
        prior.ops->log_density(&prior, 1, at, &density);
        mass += exp(fmax(density, -700)) * step * step;
      }
      bool tip = swirl && fabs(x + width / 2 - 1) < width && fabs(y + width / 2 + 1) < width;
      total += tip ? count[c] / N : mass;
      if (tip || mass * N < 5) continue;
      chi += (count[c] - mass * N) * (count[c] - mass * N) / (mass * N), freedom++;
    }
    if (swirl)
      CU_ASSERT(lost / N < 0.1); /* the wide end of the swirl reaches out to y = 3 but no further left */
    /* In addition to the rule's error, 5 standard errors of the share that lies outside the grid. */
    CHECK_NEAR(total, 1 - lost / N, (swirl ? 0.01 : 0.005) + 5 * sqrt(lost) / N);
    /* Wilson and Hilferty: (chi / f)^(1/3) is normal with variance 2 / (9 f). */
    CU_ASSERT(cbrt(chi / freedom) < 1 - 2 / (9 * freedom) + 3.72 * sqrt(2 / (9 * freedom)));
    densities++;
    problem_theta_destroy(&source);
  }
  CU_ASSERT(densities >= 5);
}

/* Checks that the prior of a density samples what problem_theta_draw draws: same streams, same numbers; also
 * for some of the lanes. */
static void test_prior_of_a_density(void) {
  SCRATCH_ARENA(memory);
  ThetaSource source;
  Prior prior;
  double theta[8], point[4], other[4];
  CHECK_OK(problem_theta_create(problem_theta_find("swirl"), 0, NULL, 0.2, 5, &source));
  CHECK_OK(problem_theta_prior(&memory, &source, NULL, &prior));
  CU_ASSERT_PTR_NULL(prior.mixture);
  CU_ASSERT_PTR_NULL(prior.chain);
  problem_theta_draw(&source, RNG_THETA, 0, 6, 4, theta);
  RngLanes rng = {.key = rng_key(5, RNG_THETA), .run = 6, .draws = 1, .first_lane = 1, .lanes = 2};
  RngLanes rest = rng;
  prior.ops->sample(&prior, &rng, point);
  for (int n = 0; n < 2; n++)
    for (int i = 0; i < 2; i++) CU_ASSERT_EQUAL(point[2 * i + n], theta[4 * i + 1 + n]);
  rest.position = rng.position;
  prior.ops->sample(&prior, &rest, other);
  for (int n = 0; n < 4; n++) CU_ASSERT(other[n] != point[n]); /* the streams have advanced */
  problem_theta_destroy(&source);
}

/* Checks that mixtures have a chain and densities do not. */
static void test_exact_prior(void) {
  SCRATCH_ARENA(memory);
  static const char *const names[] = {"cross", "rays"};
  for (int i = 0; i < 2; i++) {
    char text[100];
    Problem problem;
    Prior prior;
    PriorFit fit = {.schedule.stages = 2, .schedule.alpha = 0.9};
    snprintf(text, sizeof text, "name: t\nproblem: {theta: %s}\npolicies: [ts]\n", names[i]);
    StudyFile *study = read_study(text);
    CHECK_OK(study_problem_create(study->settings[0], &problem));
    CHECK_OK(problem_exact_prior(&memory, &problem, &fit, &prior));
    CU_ASSERT_EQUAL(prior.mixture != NULL, i == 0);
    CU_ASSERT_EQUAL(prior.chain != NULL, i == 0);
    problem_destroy(&problem);
    config_study_free(study);
  }
}

static void test_file_split(void) {
  SCRATCH_ARENA(memory);
  char path[] = "theta-XXXXXX.csv";
  int file = mkstemps(path, 4);
  FILE *out = fdopen(file, "w");
  enum { N = 103 };
  for (int i = 0; i < N; i++) fprintf(out, "%d.0,%d\n", i, -i);
  fclose(out);
  ThetaSource source;
  CHECK_OK(problem_theta_create(problem_theta_find("file"), 0, path, 0.2, 11, &source));
  CU_ASSERT_FALSE(problem_theta_has_prior(&source));
  int replicate_difference = 0;
  bool first[N] = {false};
  for (uint32_t replicate = 0; replicate < 2; replicate++) {
    Samples train;
    bool seen[N] = {false};
    CHECK_OK(problem_theta_training_samples(&memory, &source, replicate, -1, &train));
    CU_ASSERT_EQUAL(train.n, N - 21); /* 0.2 x 103 rounds to 21 */
    for (int s = 0; s < train.n; s++) {
      int member = (int)train.theta[s];
      CU_ASSERT_FALSE(seen[member]); /* a permutation: no repeats */
      CHECK_NEAR(train.theta[train.n + s], -member, 0);
      seen[member] = true;
    }
    static double theta[2 * RUNS];
    bool tested[N] = {false};
    int distinct = 0;
    problem_theta_draw(&source, RNG_THETA, replicate, 0, RUNS, theta);
    for (int r = 0; r < RUNS; r++) {
      int member = (int)theta[r];
      CU_ASSERT_FALSE(seen[member]); /* theta* is never among the training samples */
      distinct += !tested[member];
      tested[member] = true;
    }
    CU_ASSERT_EQUAL(distinct, 21);
    for (int m = 0; m < N; m++) replicate_difference += replicate && first[m] != seen[m], first[m] = seen[m];
  }
  CU_ASSERT_TRUE(replicate_difference > 0); /* split afresh */
  problem_theta_destroy(&source);
  CHECK_FAILS(problem_theta_create(problem_theta_find("file"), 3, path, 0.2, 11, &source), STATUS_INPUT,
              "2 dimensions");
  problem_theta_destroy(&source);
  CHECK_FAILS(problem_theta_create(problem_theta_find("file"), 0, NULL, 0.2, 11, &source), STATUS_INPUT,
              "problem.file");
  CHECK_FAILS(problem_theta_create(problem_theta_find("rays"), 3, NULL, 0.2, 11, &source), STATUS_INPUT,
              "2 dimensions");
  unlink(path);
}

static void test_features(void) {
  static const char *const kinds[] = {"ball", "sphere", "gaussian"};
  for (int kind = 0; kind < 3; kind++) {
    char text[256];
    snprintf(text, sizeof text,
             "name: t\nproblem: {theta: gaussian, dimension: 3, arms: 200, features: %s, resample_arms: "
             "true}\npolicies: [ts]\n",
             kinds[kind]);
    StudyFile *study = read_study(text);
    Problem problem;
    World world;
    CHECK_OK(study_problem_create(study->settings[0], &problem));
    CHECK_OK(world_create(&problem, 0, 0, 20, &world));
    world_advance(&world, 1);
    double square = 0, mean = 0, first = world.features[0];
    int n = problem.arms * 20;
    for (int k = 0; k < problem.arms; k++)
      for (int b = 0; b < 20; b++) {
        double length = 0;
        for (int i = 0; i < 3; i++) {
          double x = world.features[(k * 3 + i) * 20 + b];
          length += x * x;
          mean += x / (3 * n);
        }
        square += length / n;
        if (kind == 0) CU_ASSERT_TRUE(length < 1);
        if (kind == 1) CHECK_NEAR(length, 1, 1e-12);
      }
    /* E |phi|^2 is d / (d + 2) in the ball, 1 on the sphere, d for a Gaussian; n = 4000, 4 standard errors
     * (sd 0.26, 0, 2.4). */
    static const double expected[] = {3.0 / 5, 1, 3}, tolerance[] = {0.017, 1e-12, 0.16};
    CHECK_NEAR(square, expected[kind], tolerance[kind]);
    CHECK_NEAR(mean, 0, 0.04);
    world_advance(&world, 2);
    CU_ASSERT_TRUE(world.features[0] != first); /* resampled */
    world_destroy(&world);
    problem_destroy(&problem);
    config_study_free(study);
  }
}

/* Checks the condition number: E[phi phi'] has the eigenvalues c kappa^(-i / (d - 1)), c that of the unscaled
 * features, along axes that differ between runs. In the frame of those axes every second moment is known:
 * with 4000 arms its standard error is below sqrt(2 / 4000) of itself (Gaussian; less in the ball), here 5 of
 * them, and 2% for the eigenvalues, which the errors of the off-diagonal elements move too. */
static void test_condition_number(void) {
  enum { D = 3, RUNS_HERE = 4, ARMS = 4000 };
  static const char *const kinds[] = {"ball", "gaussian"};
  static const double largest[] = {1.0 / (D + 2), 1}, kappas[] = {1, 10, 1e4};
  for (int kind = 0; kind < 2; kind++) {
    char text[300];
    snprintf(text, sizeof text,
             "name: t\nproblem: {theta: gaussian, dimension: %d, arms: %d, features: %s}\npolicies: [ts]\n"
             "sweep: {problem.condition_number: [1, 10, 10000]}\n",
             D, ARMS, kinds[kind]);
    StudyFile *study = read_study(text);
    double axis[RUNS_HERE] = {0};
    static double plain[RUNS_HERE * D];
    for (int k = 0; k < 3; k++) {
      Problem problem;
      World world;
      CHECK_OK(study_problem_create(study->settings[k], &problem));
      CHECK_OK(world_create(&problem, 0, 5, RUNS_HERE, &world));
      for (int b = 0; b < RUNS_HERE; b++) {
        double moment[D * D] = {0}, q[D * D], w[D];
        for (int a = 0; a < ARMS; a++)
          for (int i = 0; i < D * D; i++)
            moment[i] += world.features[(a * D + i / D) * RUNS_HERE + b] *
                         world.features[(a * D + i % D) * RUNS_HERE + b] / ARMS;
        CHECK_OK(linalg_eigen(D, moment, q, w));
        for (int i = 0; i < D; i++) {
          double expected = largest[kind] * pow(kappas[k], -(D - 1 - i) / (D - 1.0));
          CHECK_NEAR(w[i] / expected, 1, 5 * sqrt(2.0 / ARMS) + 0.02);
        }
        if (k == 0) continue;
        CU_ASSERT(b == 0 || fabs(fabs(q[2]) - axis[b - 1]) > 1e-6); /* another rotation for each run */
        axis[b] = fabs(q[2]);
      }
      for (int i = 0; i < D * RUNS_HERE; i++) { /* theta* does not depend on kappa */
        if (k == 0) plain[i] = world.theta[i];
        CU_ASSERT_EQUAL(world.theta[i], plain[i]);
      }
      /* A run's arms do not depend on its block. */
      World alone;
      CHECK_OK(world_create(&problem, 0, 7, 1, &alone));
      for (int i = 0; i < 10 * D; i++) CU_ASSERT_EQUAL(alone.features[i], world.features[i * RUNS_HERE + 2]);
      world_destroy(&alone);
      world_destroy(&world);
      problem_destroy(&problem);
    }
    config_study_free(study);
  }
}

/* Checks a registered problem with its keys at their defaults. */
static void check_problem(const Problem *problem) {
  SCRATCH_ARENA(memory);
  enum { B = 5, AT = 3 };
  World block, alone;
  Samples samples;
  const int d = problem->d, vectors = problem_vectors(problem), each = problem_unknowns(problem);
  CHECK_OK(world_create(problem, 0, 2, B, &block));
  CHECK_OK(world_create(problem, 0, 2 + AT, 1, &alone));
  for (uint32_t round = 1; round < 4; round++) {
    double phi[64 * B], y[B], regret[B];
    int arm[B] = {0};
    CU_ASSERT_FATAL(d <= 64);
    world_advance(&block, round), world_advance(&alone, round);
    for (int i = 0; i < d; i++)
      for (int k = 0; k < each; k++)
        CU_ASSERT_EQUAL(block.theta[(i * B + AT) * each + k], alone.theta[i * each + k]);
    for (int i = 0; i < d * vectors; i++) CU_ASSERT_EQUAL(block.features[i * B + AT], alone.features[i]);
    world_play(&block, arm, phi, y, regret);
    for (int b = 0; b < B; b++) CU_ASSERT(regret[b] >= 0 && isfinite(y[b]));
    world_play(&block, block.best, phi, y, regret);
    for (int b = 0; b < B; b++) CU_ASSERT_EQUAL(regret[b], 0);
  }
  CHECK_OK(problem_training_samples(&memory, problem, 0, 50, &samples));
  CU_ASSERT(samples.d == d && samples.n == 50);
  for (int i = 0; i < d * samples.n; i++) CU_ASSERT(isfinite(samples.theta[i]));
  world_destroy(&block), world_destroy(&alone);
}

/* Checks every problem: problems that need a file are refused without one, in a sentence that says so. */
static void test_every_problem(void) {
  SCRATCH_ARENA(memory);
  int count = 0;
  for (int i = 0; problem_family(i); i++) {
    const ProblemOps *ops = problem_family(i);
    char text[100];
    Problem problem;
    CU_ASSERT_STRING_EQUAL(problem_name(i), ops->name);
    CU_ASSERT(ops->summary[0] && ops->reference[0]);
    snprintf(text, sizeof text, "name: t\nproblem: {family: %s}\npolicies: [ts]\n", ops->name);
    StudyFile *study = read_study(text);
    Status status = problem_create(study->settings[0], ops, false, &problem);
    if (status != STATUS_OK) {
      CU_ASSERT(status == STATUS_INPUT && strstr(status_message(), "problem.file"));
    } else {
      PriorFit fit = {.schedule.stages = 2, .schedule.alpha = 0.9};
      Prior prior;
      check_problem(&problem);
      CU_ASSERT_EQUAL(problem_exact_prior(&memory, &problem, &fit, &prior) == STATUS_OK,
                      problem_has_exact_prior(&problem));
      if (problem_has_exact_prior(&problem)) {
        CU_ASSERT_EQUAL(prior.d, problem.d);
      }
      problem_destroy(&problem);
      count++;
    }
    config_study_free(study);
  }
  CU_ASSERT(count >= 4);
}

/* Checks that a run meets the same world whatever block it is in, whatever the number of arms, and whatever
 * was played. */
static void test_common_random_numbers(void) {
  StudyFile *study =
      read_study("name: t\nproblem: {arms: 7}\npolicies: [ts]\nsweep: {problem.arms: [7, 12]}\n");
  Problem few, many;
  World block, alone, more;
  CHECK_OK(study_problem_create(study->settings[0], &few));
  CHECK_OK(study_problem_create(study->settings[1], &many));
  CHECK_OK(world_create(&few, 0, 4, 6, &block));
  CHECK_OK(world_create(&few, 0, 8, 1, &alone));
  CHECK_OK(world_create(&many, 0, 8, 1, &more));
  int arm[6] = {0, 1, 2, 3, 4, 5}, last = 6;
  double phi[12], y[6], regret[6];
  for (uint32_t round = 1; round < 4; round++) {
    world_advance(&block, round), world_advance(&alone, round), world_advance(&more, round);
    world_play(&block, arm, phi, y, regret);
    for (int i = 0; i < 2; i++) CU_ASSERT_EQUAL(block.theta[i * 6 + 4], alone.theta[i]);
    for (int i = 0; i < 14; i++) CU_ASSERT_EQUAL(block.features[i * 6 + 4], alone.features[i]);
    for (int i = 0; i < 14; i++) CU_ASSERT_EQUAL(more.features[i], alone.features[i]);
    double mean = y[4] - (phi[4] * alone.theta[0] + phi[6 + 4] * alone.theta[1]), phi1[2], y1, regret1;
    world_play(&alone, &last, phi1, &y1, &regret1);
    CHECK_NEAR(y1 - (phi1[0] * alone.theta[0] + phi1[1] * alone.theta[1]), mean,
               1e-12); /* same noise for another arm */
    /* Regret by its definition, equation (9). */
    double top = -INFINITY, mine = 0;
    for (int k = 0; k < 7; k++) {
      double u = alone.features[2 * k] * alone.theta[0] + alone.features[2 * k + 1] * alone.theta[1];
      top = fmax(top, u);
      if (k == last) mine = u;
    }
    CHECK_NEAR(regret1, top - mine, 1e-12);
  }
  world_destroy(&block), world_destroy(&alone), world_destroy(&more);
  problem_destroy(&few), problem_destroy(&many);
  config_study_free(study);
}

static void test_greedy(void) {
  StudyFile *study =
      read_study("name: t\nproblem: {theta: gaussian, dimension: 5, arms: 33}\npolicies: [ts]\n");
  Problem problem;
  World world;
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CHECK_OK(world_create(&problem, 0, 0, 70, &world));
  int arm[70];
  world_greedy(&world, world.theta, NULL, arm); /* with the true theta the greedy arm is the best one */
  for (int b = 0; b < 70; b++) CU_ASSERT_EQUAL(arm[b], world.best[b]);
  /* Equal arms are taken with the same probability: 2 100 arms in 30 rounds, and chi-squared with 32 degrees
   * of freedom, which exceeds 80 with a probability of 6e-6. */
  const double nothing[5 * 70] = {0};
  double share[70 * 33], count[33] = {0}, statistic = 0;
  for (uint32_t round = 1; round <= 30; round++) {
    world_advance(&world, round);
    world_greedy(&world, nothing, share, arm);
    for (int b = 0; b < 70; b++) count[arm[b]]++;
    for (int i = 0; i < 70 * 33; i++) CU_ASSERT_EQUAL(share[i], 1 / 33.0);
  }
  for (int k = 0; k < 33; k++) statistic += pow(count[k] - 2100 / 33.0, 2) / (2100 / 33.0);
  CU_ASSERT(statistic < 80);
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(study);
}

int main(void) {
  CU_TestInfo tests[] = {
      {"every distribution of theta", test_every_distribution},
      {"distributions have the support and moments of their definition", test_definitions},
      {"every problem", test_every_problem},
      {"a finite set is split into training and test theta, afresh for each replicate", test_file_split},
      {"gm_rays has the moments of the rays", test_mixture_of_rays},
      {"log densities integrate to 1 and follow the samples", test_log_densities},
      {"the prior of a density", test_prior_of_a_density},
      {"the exact prior of a problem", test_exact_prior},
      {"features of ball, sphere and Gaussian", test_features},
      {"the second moment of shaped features", test_condition_number},
      {"common random numbers, and regret by definition", test_common_random_numbers},
      {"the greedy arm", test_greedy},
      CU_TEST_INFO_NULL};
  return harness_run("problem", tests);
}
