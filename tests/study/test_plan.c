/* Trials of thompson plan --calibrate: how long work takes that was stopped, against works whose time is
 * known at every fraction. */
#include "harness.h"

#include "app/app_plan_calibrate.h"

enum { ROUNDS = 1000 };

/* Seconds of a work until the fraction x of it is done. */
typedef double Work(double x);

static double linear(double x) { return 3 + 10 * x; }
static double quadratic(double x) { return x * x; }
static double growing(double x) { return x + x * x; }
static double falling(double x) { return 3 * sqrt(x); }

/* Returns what is expected of a work that reports after every round and is stopped after some. */
static double expected(Work *work, int rounds) {
  PlanTrial trial = {0};
  for (int k = 1; k <= rounds; k++) {
    const double x = (double)k / ROUNDS;
    app_plan_trial_add(&trial, (PlanReport){.seconds = work(x), .fraction = x});
  }
  return app_plan_trial_whole(&trial);
}

/* Checks that preparations count once: 3 s before the first of rounds that are all alike. */
static void test_linear(void) {
  for (int rounds = 2; rounds <= ROUNDS; rounds *= 3) CHECK_NEAR(expected(linear, rounds), 13, 1e-6);
}

/* Checks rounds that take as long as there are observations, of which a tenth or more was seen. Since the
 * first round counts as preparation, the power is a little below 2. */
static void test_quadratic(void) {
  for (int rounds = ROUNDS / 10; rounds <= ROUNDS; rounds *= 3)
    CHECK_NEAR(expected(quadratic, rounds), 1, 0.1);
}

/* Checks what lies between: never more than if all grew with the square of the rounds, never less than if
 * nothing did. */
static void test_between(void) {
  for (int rounds = 2; rounds <= ROUNDS; rounds *= 2) {
    const double found = expected(growing, rounds);
    CU_ASSERT_TRUE(found > 1 && found < 2.1);
  }
}

/* Checks that rounds that become faster are not expected to continue so: no less than at the mean speed after
 * the first round. */
static void test_falling(void) {
  for (int rounds = 4; rounds <= ROUNDS; rounds *= 2) CU_ASSERT_TRUE(expected(falling, rounds) >= 3);
}

/* Checks a work that was stopped at its first report. */
static void test_one_report(void) { CHECK_NEAR(expected(linear, 1), 1000 * linear(0.001), 1e-9); }

int main(void) {
  CU_TestInfo tests[] = {
      {"preparations count once", test_linear},    {"rounds that grow with the history", test_quadratic},
      {"rounds that grow a little", test_between}, {"rounds that become faster", test_falling},
      {"a single report", test_one_report},        CU_TEST_INFO_NULL};
  return harness_run("plan", tests);
}
