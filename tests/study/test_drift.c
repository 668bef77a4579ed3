/* Worlds whose theta* changes, and evidence that is discounted: theta* of every segment against its
 * distribution, the best arm after a change, and the log likelihood of a discounted history against its
 * definition. */
#include "core/arena.h"
#include "harness.h"
#include "study_text.h"

#include "core/rng.h"
#include "model/history/history_passes.h"
#include "problem/problem.h"
#include "problem/world.h"

#include <string.h>

enum { RUNS = 64, D = 3, ROUNDS = 6 };

static Problem make_problem(const char *keys) {
  Problem problem;
  char text[512];
  snprintf(text, sizeof text,
           "name: t\nseed: 4\npolicies: [ts]\nproblem: {rounds: 9, drift: {kind: switch, every: 3}, %s}\n",
           keys);
  CHECK_OK(study_text_problem(text, &problem));
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

/* Checks very precise evidence that is discounted: 1.75e8 along phi = (1, 0.5), where a prior of variance 1e3
 * is nothing, and across it exactly that prior, of which a sum of both would have lost all but a few digits.
 */
static void test_precise(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 1e-4};
  const double phi[] = {1, 0.5}, y = 2, across[] = {-0.5, 1};
  double precision[4], vector[2], factor[4], whitened[2], log_weight, common;
  int jitters = 0;
  History history;
  Mixture prior;
  CHECK_OK(mixture_create(&memory, 2, 1, &prior));
  prior.weight[0] = 1, prior.covariance[0] = prior.covariance[3] = 1e3;
  CHECK_OK(mixture_prepare(&prior));
  CHECK_OK(history_create(&memory, 2, 1, &likelihood, &history));
  CHECK_OK(history_reserve(&history, 3));
  for (int t = 0; t < 3; t++) {
    history_discount(&history, 0.5);
    history_record(&history, NULL, phi, &y);
  }
  const HistoryView view = history_view(&history, 1, 0, 1);
  const Conditioned posterior = {.factor = factor,
                                 .whitened = whitened,
                                 .log_weight = &log_weight,
                                 .common = &common,
                                 .jitters = &jitters};
  history_evidence(&view, precision, vector);
  CHECK_NEAR(precision[0], 1.75e8, 1e-6);
  history_condition(&view, (EvidenceLanes){precision, vector}, &prior, 0, 0, &posterior);
  double along = 0, left = 0; /* u' L L' u for u = phi, and 1 / u' (L L')^-1 u for u across it */
  for (int i = 0; i < 2; i++) {
    double sum = 0;
    for (int j = i; j < 2; j++) sum += factor[j * 2 + i] * phi[j];
    along += sum * sum;
  }
  const double first = across[0] / factor[0], second = (across[1] - factor[2] * first) / factor[3];
  left = 1 / (first * first + second * second);
  CHECK_NEAR(along, 1.75e8 * 1.25 * 1.25 + 1.25e-3, 1e-6);
  CHECK_NEAR(left * 1.25, 1e-3, 1e-10); /* |u|^2 = 1.25 */
  CU_ASSERT_EQUAL(jitters, 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"theta* of every segment", test_segments},
                         {"the log likelihood of a discounted history", test_discount},
                         {"very precise evidence that is discounted", test_precise},
                         CU_TEST_INFO_NULL};
  return harness_run("drift", tests);
}
