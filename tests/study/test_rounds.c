/* The key rounds_kept: which rounds are kept, and that keeping fewer changes no value. */
#include "core/arena.h"
#include "harness.h"

#include "study/keys.h"
#include "study/study_rounds.h"
#include "study_text.h"

#include <math.h>
#include <string.h>

static TaskPriors no_priors = {.directory = ""};

enum { MOST = 64 };

static Study make_study(int rounds, const char *keys) {
  char text[512];
  snprintf(text, sizeof text,
           "{name: t, runs: 3, block: 3, draws: 20, policies: [ts], problem: {theta: gaussian, dimension: 2, "
           "arms: 4, rounds: %d}, %s}\n",
           rounds, keys);
  return study_text_study(text);
}

/* Checks that all rounds of up to 200 are kept, and 50 of more, whose logarithms are as even as whole numbers
 * allow: within one round of the last point plus equal steps. */
static void test_auto(void) {
  static const int more[] = {201, 1000, 10000000};
  Study few = make_study(200, "seed: 1");
  CU_ASSERT_EQUAL(few.points, 200);
  for (int i = 0; i < 200; i++) CU_ASSERT_EQUAL(few.values[0][i], i + 1);
  study_destroy(&few);
  for (size_t n = 0; n < sizeof more / sizeof *more; n++) {
    Study study = make_study(more[n], "seed: 1");
    const double *round = study.values[0];
    CU_ASSERT_EQUAL_FATAL(study.points, 50);
    CU_ASSERT_EQUAL(round[0], 1);
    CU_ASSERT_EQUAL(round[49], more[n]);
    for (int i = 1; i < 50; i++) {
      const double even = exp(log(round[i - 1]) + (log(more[n]) - log(round[i - 1])) / (50 - i));
      CU_ASSERT_TRUE(round[i] > round[i - 1]);
      CU_ASSERT_TRUE(round[i] == round[i - 1] + 1 || fabs(round[i] - even) <= 0.5 + 1e-6);
    }
    study_destroy(&study);
  }
}

static void run_first(const Study *study, TaskResult *result) {
  const Task task = study_task(study, 0);
  CHECK_OK(study_result_create(study, &task, result));
  CHECK_OK(study_run_task(study, &task, &no_priors, (Tick){NULL, NULL}, result));
  CU_ASSERT_EQUAL(result->status, RUN_OK);
}

/* Checks that the kept rounds of every curve have the values that they have when all are kept, and that an
 * event log and the columns see every round. */
static void test_values(void) {
#define KEYS "event_log: true, metrics: [regret_floor, optimal_arm_entropy], rounds_kept: "
  static const int kept[] = {3, 4, 17};
  Study all = make_study(23, KEYS "all"), some = make_study(23, KEYS "[3, 4, 17]");
  TaskResult whole, part;
  run_first(&all, &whole);
  run_first(&some, &part);
  CU_ASSERT_EQUAL_FATAL(part.points, 3);
  CU_ASSERT_EQUAL(whole.points, 23);
  for (int b = 0; b < 3; b++) {
    for (int c = 0; c < all.along; c++)
      for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(study_result_values(&part, c, b)[i], study_result_values(&whole, c, b)[kept[i] - 1]);
    for (int c = all.along; c < all.curve_count; c++)
      CU_ASSERT_EQUAL(
          memcmp(study_result_values(&part, c, b), study_result_values(&whole, c, b), 23 * sizeof(double)),
          0);
  }
  CU_ASSERT_EQUAL(all.curve_count - all.along, 3);
  study_result_destroy(&whole);
  study_result_destroy(&part);
  study_destroy(&all);
  study_destroy(&some);
}

/* Checks that what takes long is measured in the first kept rounds from 1, 2, 5, 10, 20 on, and that the
 * draws of the policy are checked in the same rounds whatever is kept. */
static void test_sparse(void) {
  static const char *const keys[] = {"metrics: [prior_p_value], rounds_kept: all",
                                     "metrics: [prior_p_value], rounds_kept: [4, 6, 7, 15, 16, 22]"};
  static const int kept[] = {4, 6, 7, 15, 16, 22};
  static const bool measured[] = {true, true, false, true, false, true};
  Study all = make_study(23, keys[0]), some = make_study(23, keys[1]);
  TaskResult whole, part;
  run_first(&all, &whole);
  run_first(&some, &part);
  for (int k = 1; k <= 23; k++)
    CU_ASSERT_EQUAL(!isnan(study_result_values(&whole, 1, 0)[k - 1]),
                    k == 1 || k == 2 || k == 5 || k == 10 || k == 20 || k == 23);
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    CU_ASSERT_EQUAL(!isnan(study_result_values(&part, 1, 0)[i]), measured[i]);
  for (int b = 0; b < 3; b++) {
    CU_ASSERT_EQUAL(part.columns.draws_offset[b], whole.columns.draws_offset[b]);
    CU_ASSERT_EQUAL(part.columns.draws_spread[b], whole.columns.draws_spread[b]);
  }
  study_result_destroy(&whole);
  study_result_destroy(&part);
  study_destroy(&all);
  study_destroy(&some);
}

static void check_refused(const char *kept, const char *sentence) {
  char text[256];
  snprintf(text, sizeof text,
           "{name: t, policies: [random], rounds_kept: %s, sweep: {problem.rounds: [10, 20]}}\n", kept);
  StudyFile *file;
  Study study;
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CU_ASSERT_EQUAL(study_create(file, &study), STATUS_INPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), sentence));
  study_destroy(&study);
}

static void test_refused(void) {
  check_refused("[5, 5]", "key 'rounds_kept': 5 after 5; they must increase");
  check_refused("[15]",
                "setting problem.rounds=10: key 'rounds_kept': the first is 15, but problem.rounds is 10");
  check_refused("[5, 21]", "key 'rounds_kept': round 21, but problem.rounds is at most 20");
}

int main(void) {
  CU_TestInfo tests[] = {{"auto", test_auto},
                         {"values", test_values},
                         {"what takes long", test_sparse},
                         {"refused", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("rounds", tests);
}
