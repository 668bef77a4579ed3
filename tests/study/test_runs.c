/* Adaptive numbers of runs: blocks and replicates, the size of waves, combined moments against sums over all
 * values, the keys in their two forms. */
#include "harness.h"

#include "parallel/progress.h"
#include "parallel/tasks/adaptive.h"
#include "study/keys.h"
#include "study/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static StudyFile *parse(const char *text, const char *set) {
  StudyFile *file = NULL;
  CHECK_OK(config_study_parse("test", text, &study_schema, set ? 1 : 0, &set, &file));
  return file;
}

static Study make_study(const char *text, const char *set) {
  Study study = {0};
  CHECK_OK(study_create(parse(text, set), &study));
  return study;
}

static void test_blocks_take_replicates_in_turn(void) {
  static const struct {
    int least, most, block, replicates, size, blocks, first;
  } cases[] = {{64, 4096, 64, 1, 64, 64, 1}, {64, 1000, 64, 1, 64, 16, 1},
               {64, 4096, 64, 8, 8, 512, 8}, {512, 4096, 64, 8, 64, 64, 8},
               {100, 200, 64, 3, 34, 6, 3},  {2, 2, 64, 2, 1, 2, 2},
               {100, 500, 64, 1, 64, 8, 2},  {1000, 100000, 4096, 4, 250, 400, 4}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[256];
    snprintf(
        text, sizeof text,
        "name: t\nblock: %d\nruns: {min: %d, max: %d, target_se: 1}\nprior: {replicates: %d}\npolicies: [ts, "
        "oracle]\n",
        cases[c].block, cases[c].least, cases[c].most, cases[c].replicates);
    Study study = make_study(text, NULL);
    CU_ASSERT_TRUE(study.runs.adaptive);
    CU_ASSERT_EQUAL(study.runs.block, cases[c].size);
    CU_ASSERT_EQUAL(study.runs.blocks, cases[c].blocks);
    CU_ASSERT_EQUAL(study_runs_first_wave(&study.runs), cases[c].first);
    CU_ASSERT_TRUE(study_runs_in_blocks(&study.runs, cases[c].first) >= cases[c].least);
    CU_ASSERT_EQUAL(study.task_count, 2 * cases[c].blocks);
    int64_t run = 0;
    for (int k = 0; k < study.runs.blocks; k++) {
      const Task task = study_task(&study, study_task_index(&study, 0, 1, k));
      CU_ASSERT_EQUAL(task.policy, 1);
      CU_ASSERT_EQUAL(task.first_run, run);
      CU_ASSERT_EQUAL(task.replicate, (uint32_t)(k % cases[c].replicates));
      for (int b = 0; b < task.runs; b++)
        CU_ASSERT_EQUAL(study_runs_replicate(&study.runs, run + b), task.replicate);
      run += task.runs;
      CU_ASSERT_EQUAL(study_runs_in_blocks(&study.runs, k + 1), run);
    }
    CU_ASSERT_EQUAL(run, cases[c].most);
    study_destroy(&study);
  }
}

static void test_waves(void) {
  const Runs runs = {.most = 100000,
                     .least = 640,
                     .block = 64,
                     .replicates = 1,
                     .blocks = 1563,
                     .adaptive = true,
                     .target = 0.5};
  CU_ASSERT_EQUAL(study_runs_first_wave(&runs), 10);
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, 0.5), 10); /* reached */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, 0.1), 10);
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, 0.75), 23); /* 10 x 1.5^2 = 22.5 */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 100, 0.501),
                  111); /* at least 1.1 times, which is 110.00..., rounded up */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, 50), 40); /* at most 4 times */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, INFINITY), 40);
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 10, NAN), 10); /* more runs would not help */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 1000, 5), 1563); /* all there are */
  CU_ASSERT_EQUAL(study_runs_next_wave(&runs, 1563, 5), 1563); /* none left */
}

static void test_moments(void) {
  /* Numbers of very different size, where a sum of squares minus a square of sums would lose all digits. */
  double values[7] = {1e9 + 1, 1e9 + 2, 1e9 - 4, 1e9 + 8, 1e9, 1e9 + 0.5, 1e9 - 7};
  double sum = 0, squares = 0;
  for (int i = 0; i < 7; i++) sum += (values[i] - 1e9) / 7;
  for (int i = 0; i < 7; i++) squares += (values[i] - 1e9 - sum) * (values[i] - 1e9 - sum);
  for (int cut = 0; cut <= 7; cut++) {
    Moments part[2] = {{0}};
    for (int i = 0; i < 7; i++)
      part[i >= cut] = moments_join(part[i >= cut], (Moments){.n = 1, .mean = values[i]});
    Moments all = moments_join(part[0], part[1]);
    CU_ASSERT_EQUAL(all.n, 7);
    CHECK_NEAR(all.mean, 1e9 + sum, 1e-6); /* 1e9 has an ulp of 1.2e-7 */
    CHECK_NEAR(all.squares, squares, 1e-4);
    CHECK_NEAR(moments_se(all), sqrt(squares / 6 / 7), 1e-6);
  }
  CU_ASSERT_TRUE(isinf(moments_se((Moments){.n = 1, .mean = 3})));
}

static void check_runs_text(const StudyFile *file, const char *part) {
  CU_ASSERT_PTR_NOT_NULL(strstr(file->resolved, part));
  StudyFile *again = parse(file->resolved, NULL);
  CU_ASSERT_STRING_EQUAL(again->resolved, file->resolved);
  config_study_free(again);
}

/* Checks `runs` as a number and as a mapping: the later source decides, and the resolved text has one of
 * them. */
static void test_two_forms(void) {
  static const char number[] = "name: t\nruns: 77\npolicies: [ts]\n",
                    mapping[] = "name: t\nruns: {target_se: 0.25, max: 99}\npolicies: [ts]\n";
  static const struct {
    const char *text, *set, *resolved;
  } cases[] = {
      {number, NULL, "\nruns: 77\n"},
      {mapping, NULL, "\nruns:\n  min: 64\n  max: 99\n  target_se: 0.25\n  of: regret_diff\n"},
      {mapping, "runs=5", "\nruns: 5\n"},
      {mapping, "runs.max=88", "\nruns:\n  min: 64\n  max: 88\n  target_se: 0.25\n  of: regret_diff\n"},
      {number, "runs.target_se=2", "\nruns:\n  min: 64\n  max: 4096\n  target_se: 2\n  of: regret_diff\n"},
      {number, "runs={target_se: 2, of: regret}",
       "\nruns:\n  min: 64\n  max: 4096\n  target_se: 2\n  of: regret\n"},
      {"name: t\npolicies: [ts]\n", NULL, "\nruns: 512\n"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    StudyFile *file = parse(cases[c].text, cases[c].set);
    check_runs_text(file, cases[c].resolved);
    bool whole = strstr(cases[c].resolved, "\nruns: ") != NULL;
    CU_ASSERT_EQUAL(config_present(file->settings[0], "runs"), whole);
    CU_ASSERT_EQUAL(config_present(file->settings[0], "runs.target_se"), !whole);
    config_study_free(file);
  }
}

static void test_difference_names_the_key(void) {
  char difference[200];
  StudyFile *a = parse("name: t\nruns: {target_se: 0.5}\n", NULL),
            *b = parse("name: t\nruns: {target_se: 0.5}\n", "runs.target_se=0.25"),
            *c = parse("name: t\nruns: {target_se: 0.5}\n", "runs=64");
  CU_ASSERT_TRUE(config_first_difference(a->resolved, b->resolved, sizeof difference, difference));
  CU_ASSERT_STRING_EQUAL(difference, "runs.target_se: 0.5 -> 0.25");
  CU_ASSERT_TRUE(config_first_difference(a->resolved, c->resolved, sizeof difference, difference));
  CU_ASSERT_PTR_NOT_NULL(strstr(difference, "-> 64"));
  config_study_free(a);
  config_study_free(b);
  config_study_free(c);
}

static void refuse(const char *runs, const char *part) {
  char text[300];
  StudyFile *file = NULL;
  Study study = {0};
  snprintf(text, sizeof text, "name: t\n%s\npolicies: [ts, oracle]\n", runs);
  Status status = config_study_parse("bad.yaml", text, &study_schema, 0, NULL, &file);
  if (status == STATUS_OK) status = study_create(file, &study);
  CHECK_FAILS(status, STATUS_INPUT, part);
  study_destroy(&study);
}

static void test_refusals(void) {
  refuse("runs: {min: 64}", "key 'runs.min': needs 'runs.target_se', which is not given");
  refuse("runs: {target_se: 0}", "bad.yaml:2:19: key 'runs.target_se': value '0' is out of range");
  refuse("runs: {target_se: few}", "'few' is not a number");
  refuse("runs: {target_se: 1, min: 1}", "'runs.min': value '1' is out of range");
  refuse("runs: {target_se: 1, min: 100, max: 50}", "'runs.min': 100 is more than runs.max, 50");
  refuse("runs: {target_se: 1, of: regret_dif}", "did you mean 'regret_diff'?");
  refuse("runs: {target_se: 1, of: emd}", "allowed: regret | regret_diff");
  refuse("study: posterior\nruns: {target_se: 1}", "allowed: emd | emd_diff");
  refuse("runs: {target: 1}", "allowed in 'runs': min | max | target_se | of");
  refuse("runs: many", "or a mapping of the keys 'runs.*'");
  refuse("runs: 5\nruns.min: 3", "bad.yaml:3:1: key 'runs.min': given twice, first in line 2");
  refuse("study: posterior\nruns: {target_se: 1, of: emd}\nproblem: {family: inverse, theta: gm_sphere, "
         "dimension: "
         "40, arms: 40}\nlinear_algebra: {distributed_from: 40}",
         "need a fixed number");
  refuse("runs: {target_se: 1, min: 4}\nprior: {replicates: 5}",
         "'prior.replicates': 5, but there are only 4");
  refuse("runs: {target_se: 1, min: 10, max: 10}\nprior: {replicates: 9}", "only 5 blocks of 2 runs");
}

/* Checks the time left: at 1% after 5 s nothing is known; from a tenth, or after a minute, the rest takes
 * time in proportion. */
static void test_time_left(void) {
  CU_ASSERT_TRUE(isnan(progress_left(5, 0.01)));
  CU_ASSERT_TRUE(isnan(progress_left(100, 0)));
  CHECK_NEAR(progress_left(5, 0.1), 45, 1e-12);
  CHECK_NEAR(progress_left(100, 0.02), 4900, 1e-9);
}

int main(void) {
  CU_TestInfo tests[] = {{"blocks take the replicates in turn", test_blocks_take_replicates_in_turn},
                         {"the next wave follows the standard error", test_waves},
                         {"moments of parts are those of the whole", test_moments},
                         {"runs is a number or a mapping", test_two_forms},
                         {"a difference names the key", test_difference_names_the_key},
                         {"what cannot be is refused", test_refusals},
                         {"the time left is told from a tenth on", test_time_left},
                         CU_TEST_INFO_NULL};
  return harness_run("runs", tests);
}
