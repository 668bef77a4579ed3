/* The wheel bandit: contexts are uniform on the disc, and rewards are as its paper has them, written out
 * again here. */
#include "harness.h"

#include "problem/problem.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <math.h>

enum { RUNS = 64, ROUNDS = 200, ARMS = 5, D = 3 };

static StudyFile *study_of(const char *keys) {
  char text[256];
  StudyFile *file = NULL;
  snprintf(text, sizeof text, "name: t\nproblem: {family: wheel%s}\npolicies: [ts]\n", keys);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  return file;
}

/* Checks each reward against its mean: within six standard deviations, and both spreads on average. */
static void test_rewards(void) {
  StudyFile *study = study_of(", delta: 0.7");
  Problem problem;
  World world;
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CU_ASSERT_EQUAL_FATAL(problem.arms, ARMS);
  CU_ASSERT_EQUAL_FATAL(problem.d, D);
  CHECK_NEAR(problem.likelihood.noise, 0.05, 0);
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  double radius = 0, square_inner = 0, square_outer = 0;
  int quadrant[4] = {0}, inner = 0, outer = 0, outside = 0;
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    world_advance(&world, round);
    for (int b = 0; b < RUNS; b++) {
      const double x = world.features[b], y = world.features[RUNS + b];
      const int own = x >= 0 ? (y >= 0 ? 0 : 1) : (y >= 0 ? 2 : 3);
      const bool far = x * x + y * y >= 0.7 * 0.7;
      CHECK_NEAR(world.features[2 * RUNS + b], 1, 0);
      CU_ASSERT(x * x + y * y <= 1);
      radius += x * x + y * y;
      quadrant[own]++;
      outside += far;
      for (int k = 0; k < ARMS; k++) {
        const bool pays = far && k == own;
        const double error = world.mean[k * RUNS + b] - (pays ? 50 : k == 4 ? 1.2 : 1);
        CU_ASSERT(fabs(error) < 6 * (pays ? 0.01 : 0.05));
        if (pays)
          square_outer += error * error, outer++;
        else
          square_inner += error * error, inner++;
      }
      if (far) CU_ASSERT_EQUAL(world.best[b], own);
    }
  }
  /* 12 800 contexts: r^2 is uniform, with sd sqrt(1 / 12); shares have sds of at most sqrt(n / 4); a mean of
   * n squared errors has the relative sd sqrt(2 / n). All within 5. */
  const double n = RUNS * ROUNDS;
  CHECK_NEAR(radius / n, 0.5, 5 * sqrt(1.0 / 12 / n));
  CHECK_NEAR(outside / n, 1 - 0.49, 5 * sqrt(0.25 / n));
  for (int q = 0; q < 4; q++) CHECK_NEAR(quadrant[q] / n, 0.25, 5 * sqrt(0.25 / n));
  CHECK_NEAR(square_outer / outer, 1e-4, 5e-4 * sqrt(2.0 / outer));
  CHECK_NEAR(square_inner / inner, 25e-4, 125e-4 * sqrt(2.0 / inner));
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(study);
}

static void test_refused(void) {
  static const struct {
    const char *keys, *part;
  } cases[] = {{", arms: 4", "has 5 arms"}, {", dimension: 2", "contexts (x, y, 1)"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    StudyFile *study = study_of(cases[i].keys);
    Problem problem;
    CHECK_FAILS(study_problem_create(study->settings[0], &problem), STATUS_INPUT, cases[i].part);
    config_study_free(study);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"contexts and rewards", test_rewards},
                         {"other arms and dimensions are refused", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("wheel", tests);
}
