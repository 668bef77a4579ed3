/* Worlds whose theta* changes, and evidence that is discounted: theta* of every segment against its
 * distribution, the best arm after a change, and the log likelihood of a discounted history against its
 * definition. */
#include "core/arena.h"
#include "harness.h"

#include "core/rng.h"
#include "model/history/history_passes.h"
#include "problem/problem.h"
#include "problem/world.h"
#include "study/keys.h"

#include <string.h>

enum { RUNS = 64, D = 3, ROUNDS = 6 };

static Problem make_problem(const char *keys) {
  StudyFile *file;
  Problem problem;
  char text[512];
  snprintf(text, sizeof text,
           "name: t\nseed: 4\npolicies: [ts]\nproblem: {rounds: 9, drift: {kind: switch, every: 3}, %s}\n",
           keys);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(problem_create(file->settings[0], &problem));
  config_study_free(file);
  return problem;
}

/* Checks that the best arm of each run, and expected rewards, are those of the present theta*. */
static void check_best(const World *world) {
  const Problem *problem = world->problem;
  for (int b = 0; b < RUNS; b++) {
    int best = 0;
    double top = -INFINITY;
    for (int k = 0; k < problem->arms; k++) {
      const int unknowns = problem->per_arm ? problem->arms : 1,
                at = b * unknowns + (problem->per_arm ? k : 0);
      double u = 0;
      for (int i = 0; i < problem->d; i++)
        u += world->features[((problem->per_arm ? 0 : k) * problem->d + i) * RUNS + b] *
             world->theta[i * RUNS * unknowns + at];
      CHECK_NEAR(world->mean[k * RUNS + b], u, 1e-12);
      if (u > top) top = u, best = k;
    }
    CU_ASSERT_EQUAL(world->best[b], best);
  }
}

/* Checks segments of N(0, I): over 40 segments and 64 runs the mean of a coordinate is within 5 standard
 * errors of 0, and so is the mean of its product with the same run's coordinate in the previous segment. */
static void test_segments(void) {
  static const char *const kinds[] = {"theta: gaussian, dimension: 3, arms: 5",
                                      "theta: gaussian, dimension: 3, arms: 5, resample_arms: true",
                                      "theta: gaussian, dimension: 3, arms: 5, unknown: per_arm"};
  for (int kind = 0; kind < 3; kind++) {
    enum { SEGMENTS = 40, MOST = 5 * D * RUNS };
    Problem problem = make_problem(kinds[kind]);
    World world;
    const size_t size = (size_t)(problem.d * RUNS * problem_unknowns(&problem));
    double before[MOST], first[MOST], sum = 0, product = 0, count = 0;
    CHECK_OK(world_create(&problem, 0, 5, RUNS, &world));
    memcpy(first, world.theta, size * sizeof *first);
    for (uint32_t segment = 1; segment <= SEGMENTS; segment++) {
      memcpy(before, world.theta, size * sizeof *before);
      world_draw_theta(&world, segment);
      world_theta_changed(&world);
      world_advance(&world, segment);
      check_best(&world);
      for (size_t n = 0; n < size; n++) sum += world.theta[n], product += before[n] * world.theta[n], count++;
    }
    CHECK_NEAR(sum / count, 0, 5 / sqrt(count));
    CHECK_NEAR(product / count, 0, 5 / sqrt(count));
    world_draw_theta(&world, 0);
    CU_ASSERT_EQUAL(memcmp(first, world.theta, size * sizeof *first), 0);
    world_destroy(&world);
    problem_destroy(&problem);
  }
}

/* Checks the discount: after rounds 1 .. 6 with a factor before each, round t counts factor^(6 - t): the log
 * likelihood at a point, up to the same constant for all points, and the evidence. The tolerance is that of
 * sums of a few terms. */
static void test_discount(void) {
  static const char *const likelihoods[] = {"gaussian", "logistic", "poisson"};
  const double factor = 0.7;
  for (int form = 0; form < 6; form++) {
    SCRATCH_ARENA(memory);
    const Likelihood likelihood = {.ops = likelihood_find(likelihoods[form / 2]), .noise = 0.5};
    const bool by_arm = form % 2;
    History history;
    Rng rng = {.key = rng_key(3, RNG_TEST)};
    double arms[D * 2], phi[ROUNDS][D], y[ROUNDS], points[2][D], expected[2] = {0}, found[2];
    rng_normal(&rng, D * 2, arms);
    rng_normal(&rng, 2 * D, points[0]);
    CHECK_OK(by_arm ? history_create_planned(&memory, D, 1, (HistoryPlan){.arms = 2}, &likelihood, &history)
                    : history_create(&memory, D, 1, &likelihood, &history));
    CHECK_OK(history_reserve(&history, ROUNDS));
    for (int t = 0; t < ROUNDS; t++) {
      const int arm = t % 3 == 1;
      for (int i = 0; i < D; i++) phi[t][i] = arms[arm * D + i];
      y[t] = t % 2;
      history_discount(&history, factor);
      history_record(&history, &arm, phi[t], &y[t]);
    }
    for (int p = 0; p < 2; p++) {
      for (int t = 0; t < ROUNDS; t++) {
        double u = 0;
        for (int i = 0; i < D; i++) u += phi[t][i] * points[p][i];
        expected[p] += pow(factor, ROUNDS - 1 - t) * likelihood.ops->log_likelihood(&likelihood, y[t], u);
      }
      const HistoryView view = {&history, 1, 0, 1, NULL, NULL};
      if (likelihood_is_conjugate(&likelihood)) {
        double residual;
        history_residual(&(HistoryView){&history, 1, 0, 1, points[p], NULL}, &residual);
        found[p] = -0.5 * residual;
      } else {
        history_log_likelihood(&view, points[p], &found[p], NULL);
        CU_ASSERT_FALSE(history_rows_are_single(&history));
      }
    }
    CHECK_NEAR(found[1] - found[0], expected[1] - expected[0], 1e-12 * (1 + fabs(expected[1] - expected[0])));
    CU_ASSERT_EQUAL(history_observations(&history, 0), ROUNDS);
  }
}

/* Checks the root: beyond a trace of 1e6 a run also has the square root of its evidence: R'R is still the
 * discounted evidence. */
static void test_root(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 1e-4};
  const double phi[] = {1, 0.5}, y = 2;
  double root[9], precision[4], vector[2];
  History history;
  CHECK_OK(history_create(&memory, 2, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, 3));
  for (int t = 0; t < 3; t++) {
    history_discount(&history, 0.5);
    history_record(&history, NULL, phi, &y);
  }
  CU_ASSERT_TRUE(history_root(&history, 0, root));
  history_evidence(&(HistoryView){&history, 1, 0, 1, NULL, NULL}, precision, vector);
  CHECK_NEAR(precision[0], 1.75e8, 1e-6);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      double square = 0;
      for (int k = 0; k < 3; k++) square += root[k * 3 + i] * root[k * 3 + j];
      CHECK_NEAR(square, precision[i * 2 + j], 1e-6);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"theta* of every segment", test_segments},
                         {"the log likelihood of a discounted history", test_discount},
                         {"the square root of discounted evidence", test_root},
                         CU_TEST_INFO_NULL};
  return harness_run("drift", tests);
}
