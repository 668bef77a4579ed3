/* Tables of rewards as bandits: every run meets every event once, with its context and rewards; the noise by
 * its definition; refusals. */
#include "harness.h"
#include "study_text.h"

#include "problem/problem.h"
#include "problem/world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PATH[] = "table_test.csv";

static Status make(const char *keys, const char *text, Problem *out) {
  char study[512];
  FILE *stream = fopen(PATH, "w");
  fputs(text, stream);
  fclose(stream);
  const bool whole = strncmp(keys, "study", 5) == 0; /* a key of the study, not of the problem */
  snprintf(study, sizeof study, "name: t\npolicies: [ts]\n%sproblem: {family: table, file: %s%s}\n",
           whole ? keys : "", PATH, whole ? "" : keys);
  const Status status = study_text_problem(study, out);
  unlink(PATH);
  return status;
}

static const char TABLE[] = "x1,x2,class\n1,10,0\n2,20,2\n3,30,1\n4,40,2\n";

static void test_events(void) {
  enum { RUNS = 200 };
  Problem problem;
  World world;
  int met[RUNS][5] = {{0}}, first[5] = {0};
  static const int class[] = {-1, 0, 2, 1, 2};
  CHECK_OK(make(", rounds: 4", TABLE, &problem));
  CU_ASSERT_EQUAL(problem.arms, 3);
  CU_ASSERT_EQUAL(problem.d, 2);
  CHECK_OK(world_create(&problem, 0, 7, RUNS, &world));
  for (uint32_t k = 1; k <= 4; k++) {
    int arm[RUNS];
    double phi[2 * RUNS], y[RUNS], regret[RUNS];
    world_advance(&world, k);
    for (int b = 0; b < RUNS; b++) arm[b] = b % 3;
    world_play(&world, arm, phi, y, regret);
    for (int b = 0; b < RUNS; b++) {
      const int event = (int)phi[b];
      CU_ASSERT_EQUAL(phi[RUNS + b], 10 * event);
      CU_ASSERT_EQUAL(y[b], arm[b] == class[event]);
      CU_ASSERT_EQUAL(regret[b], arm[b] != class[event]);
      CU_ASSERT_EQUAL(world.best[b], class[event]);
      met[b][event]++;
      first[event] += k == 1;
    }
  }
  for (int b = 0; b < RUNS; b++)
    for (int event = 1; event <= 4; event++) CU_ASSERT_EQUAL(met[b][event], 1);
  for (int event = 1; event <= 4; event++) CHECK_NEAR(first[event], RUNS / 4.0, 5 * sqrt(RUNS * 0.25 * 0.75));
  world_destroy(&world);
  problem_destroy(&problem);
}

/* Checks the noise with one coordinate: theta = sum x y / (1 + sum x^2). */
static void test_noise(void) {
  Problem problem;
  CHECK_OK(make(", rounds: 4", "x1,class\n1,0\n2,0\n-1,1\n3,1\n", &problem));
  const double x[] = {1, 2, -1, 3}, y[2][4] = {{1, 1, 0, 0}, {0, 0, 1, 1}};
  double total = 0;
  for (int k = 0; k < 2; k++) {
    double product = 0;
    for (int e = 0; e < 4; e++) product += x[e] * y[k][e] / 16;
    for (int e = 0; e < 4; e++) total += (y[k][e] - x[e] * product) * (y[k][e] - x[e] * product);
  }
  CHECK_NEAR(problem.likelihood.noise, sqrt(total / 8), 1e-14);
  problem_destroy(&problem);
  CHECK_OK(make(", rounds: 4, noise: 2", TABLE, &problem));
  CU_ASSERT_EQUAL(problem.likelihood.noise, 2);
  problem_destroy(&problem);
}

static void test_refused(void) {
  static const struct {
    const char *keys, *table, *part;
  } cases[] = {{", rounds: 4", "x1,y\n1,0\n", "'x2' or 'class'"},
               {", rounds: 4", "x1,class\n1,0\n2,0.5\n", "line 3: class 0.5"},
               {", rounds: 4", "x1,class\n1,-1\n", "line 2: class -1"},
               {", rounds: 4", "x1,class\n1,0\n2,0\n", "two arms"},
               {", rounds: 4", "x1,class\n", "0 events"},
               {", rounds: 5", TABLE, "4 events"},
               {", rounds: 4, arms: 2", TABLE, "problem.arms: 2"},
               {", rounds: 4, dimension: 3", TABLE, "problem.dimension: 3"},
               {"study: posterior\n", TABLE, "study bandit"},
               {", rounds: 4, drift: {kind: switch, every: 2}", TABLE, "problem.drift"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    Problem problem;
    CHECK_FAILS(make(cases[c].keys, cases[c].table, &problem), STATUS_INPUT, cases[c].part);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"every run meets every event once", test_events},
                         {"the residual of a ridge fit", test_noise},
                         {"what is refused", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("table", tests);
}
