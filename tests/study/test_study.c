/* Studies: tasks cover every run once and no block spans two replicates; statistics of a cell against NumPy's
 * definitions, computed by hand. */
#include "harness.h"

#include "parallel/statistics.h"
#include "study/keys.h"
#include "study/study.h"
#include "study/study_names.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Study make_study(const char *text) {
  StudyFile *file;
  Study study = {0};
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_create(file, &study));
  return study;
}

static void test_tasks_cover_runs(void) {
  static const struct {
    int runs, block, replicates;
  } cases[] = {{1, 1, 1}, {512, 64, 8}, {100, 64, 3}, {7, 2, 7}, {65, 64, 1}, {10, 4096, 4}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[256];
    snprintf(text, sizeof text,
             "name: t\nruns: %d\nblock: %d\nprior: {replicates: %d}\npolicies: [ts, oracle]\nsweep: "
             "{problem.noise: [1, 2, 3]}\n",
             cases[c].runs, cases[c].block, cases[c].replicates);
    Study study = make_study(text);
    int *met = calloc((size_t)(6 * cases[c].runs), sizeof *met);
    for (int i = 0; i < study.task_count; i++) {
      const Task listed = study_task(&study, i), *task = &listed;
      CU_ASSERT_EQUAL(task->index, i);
      CU_ASSERT_TRUE(task->runs >= 1 && task->runs <= cases[c].block);
      for (int b = 0; b < task->runs; b++) {
        uint32_t run = task->first_run + (uint32_t)b;
        CU_ASSERT_EQUAL(study_runs_replicate(&study.runs, run), task->replicate);
        met[(task->setting * 2 + task->policy) * cases[c].runs + (int)run]++;
      }
    }
    for (int i = 0; i < 6 * cases[c].runs; i++) CU_ASSERT_EQUAL(met[i], 1);
    CU_ASSERT_EQUAL(study_runs_replicate(&study.runs, cases[c].runs - 1), (uint32_t)cases[c].replicates - 1);
    free(met);
    study_destroy(&study);
  }
}

/* Checks that every task is found by its name, with exactly the earlier and later ones that are equal:
 * policy `random` learns no prior, so that the sweep changes only the tasks of `diffts`. A block with other
 * runs, and a task of another study, are found nowhere. */
static void test_names(void) {
  Study study = make_study("name: t\nruns: 20\nblock: 3\nprior: {replicates: 3}\npolicies: [diffts, random]\n"
                           "sweep: {prior.train_samples: [100, 200]}\n");
  Study other =
      make_study("name: t\nseed: 2\nruns: 20\nblock: 3\nprior: {replicates: 3}\npolicies: [diffts]\n");
  CU_ASSERT_EQUAL(study.runs.blocks, 8); /* of 6, 7 and 7 runs with one replicate each */
  for (int i = 0; i < study.task_count; i++) {
    const Task task = study_task(&study, i);
    TaskName name = study_task_name(&study, i);
    TasksAlike alike = study_find_tasks(&study, &name);
    const bool random = task.policy == 1, second = task.setting == 1;
    CU_ASSERT_EQUAL_FATAL(alike.count, random ? 2 : 1);
    CU_ASSERT_EQUAL(study_task_alike(&study, &alike, random && second), i);
    CU_ASSERT_EQUAL(study_repeats_task(&study, i, 0, 1), random && second);
    if (random && second)
      CU_ASSERT_EQUAL(study_task_alike(&study, &alike, 0), study_task_index(&study, 0, 1, i % 8));
    name.runs++;
    CU_ASSERT_EQUAL(study_find_tasks(&study, &name).count, 0);
    name.runs--;
    name.first_run++;
    CU_ASSERT_EQUAL(study_find_tasks(&study, &name).count, 0);
  }
  for (int i = 0; i < other.task_count; i++) {
    const TaskName name = study_task_name(&other, i);
    CU_ASSERT_EQUAL(study_find_tasks(&other, &name).count, 1);
    CU_ASSERT_EQUAL(study_find_tasks(&study, &name).count, 0);
  }
  study_destroy(&other);
  study_destroy(&study);
}

static void test_statistics(void) {
  Study study =
      make_study("name: t\nruns: 6\nprior: {replicates: 3}\nproblem: {rounds: 2}\npolicies: [ts]\n");
  /* values[runs, points]; run 3 is missing at both points, run 5 at the second. */
  double values[12] = {1, 10, 2, 20, 4, 40, NAN, NAN, 8, 80, 16, NAN},
         base[12] = {0, 1, 1, 1, 1, NAN, 1, 1, 2, 2, 4, 4};
  double mean[2], se[2], n[2];
  statistics_mean(6, 2, values, NULL, mean, se, n);
  CU_ASSERT_EQUAL(n[0], 5);
  CU_ASSERT_EQUAL(n[1], 4);
  CHECK_NEAR(mean[0], 6.2, 1e-14); /* (1 + 2 + 4 + 8 + 16) / 5 */
  CHECK_NEAR(se[0], sqrt((341 - 5 * 6.2 * 6.2) / 4 / 5), 1e-14); /* 341: sum of squares */
  CHECK_NEAR(mean[1], 37.5, 1e-14);
  CHECK_NEAR(se[1], sqrt((8500 - 4 * 37.5 * 37.5) / 3 / 4), 1e-13);
  statistics_mean(6, 2, values, base, mean, se, n); /* differences 1, 1, 3, 6, 12 and 9, 19, 78 */
  CHECK_NEAR(mean[0], 23.0 / 5, 1e-14);
  CHECK_NEAR(mean[1], 106.0 / 3, 1e-13);
  CHECK_NEAR(se[0], sqrt((191 - 5 * 4.6 * 4.6) / 4 / 5), 1e-14);
  CHECK_OK(
      statistics_replicate_se(&study, 6, values, NULL, se)); /* replicate means 1.5, 4, 12 and 15, 40, 80 */
  CHECK_NEAR(se[0], sqrt((2.25 + 16 + 144 - 3 * (17.5 / 3) * (17.5 / 3)) / 2 / 3), 1e-13);
  CHECK_NEAR(se[1], sqrt((225 + 1600 + 6400 - 3 * 45.0 * 45.0) / 2 / 3), 1e-12);
  CHECK_OK(
      statistics_replicate_se(&study, 6, values, base, se)); /* of differences: 1, 3, 9 and 14, none, 78 */
  CHECK_NEAR(se[0], sqrt((1 + 9 + 81 - 3 * (13.0 / 3) * (13.0 / 3)) / 2 / 3), 1e-13);
  CHECK_NEAR(se[1], 32, 1e-12);
  study_destroy(&study);
}

/* Checks that quantiles are linear between order statistics: in 1 2 4 8 16 the place 0.9 (n - 1) = 3.6 gives
 * 8 + 0.6 x 8. */
static void test_quantiles(void) {
  const double values[14] = {16, 10, 2, NAN, 4, 40, NAN, NAN, 8, NAN, 1, NAN, NAN, 20};
  const double expected[STUDY_QUANTILES] = {4, 12.8, 14.4, 15.68, 16}, two[] = {20, 36, 38, 39.6, 40};
  double found[STUDY_QUANTILES * 2], empty[STUDY_QUANTILES];
  CHECK_OK(statistics_quantiles(7, 2, values, found));
  for (int q = 0; q < STUDY_QUANTILES; q++) {
    CHECK_NEAR(found[2 * q], expected[q], 1e-12);
    CHECK_NEAR(found[2 * q + 1], two[q], 1e-12); /* of 10 20 40 */
  }
  CHECK_OK(statistics_quantiles(1, 1, &values[3], empty));
  for (int q = 0; q < STUDY_QUANTILES; q++) CU_ASSERT_TRUE(isnan(empty[q]));
}

static void test_too_many_replicates(void) {
  StudyFile *file;
  Study study = {0};
  CHECK_OK(config_study_parse("test", "name: t\nruns: 3\nprior: {replicates: 4}\npolicies: [ts]\n",
                              &study_schema, 0, NULL, &file));
  CHECK_FAILS(study_create(file, &study), STATUS_INPUT, "prior.replicates");
  study_destroy(&study);
}

static void test_beliefs(void) {
  /* A prior is shared when nothing that it depends on differs, and only then. */
  Study study =
      make_study("name: t\nruns: 4\nproblem: {rounds: 2}\npolicies: [tuned_ts, mixts, {name: "
                 "mixts, label: m5, components: 5}, diffts, dps, {name: "
                 "diffts, label: on_mixture, prior: mixture}, {name: vits2, prior: mixture, components: "
                 "4}]\nsweep: {prior.stages: [5, 6]}\n");
  char hash[2][7][65];
  for (int s = 0; s < 2; s++)
    for (int p = 0; p < 7; p++) {
      Problem problem;
      Belief belief;
      CHECK_OK(study_problem_create(study.file->settings[s], &problem));
      CHECK_OK(study_belief_create(study.file->settings[s], &study.file->policies[p], &problem, 0, &belief));
      CU_ASSERT_EQUAL(belief.kind, BELIEF_FITTED);
      memcpy(hash[s][p], belief.hash, sizeof belief.hash);
      Belief other;
      CHECK_OK(study_belief_create(study.file->settings[s], &study.file->policies[p], &problem, 1, &other));
      CU_ASSERT_TRUE(strcmp(other.hash, belief.hash) != 0); /* another replicate is another fit */
      problem_destroy(&problem);
    }
  CU_ASSERT_STRING_EQUAL(hash[0][0], hash[1][0]); /* a Gaussian fit does not depend on the stages */
  CU_ASSERT_STRING_EQUAL(hash[0][1], hash[1][1]);
  CU_ASSERT_TRUE(strcmp(hash[0][3], hash[1][3]) != 0); /* a diffusion model does */
  CU_ASSERT_STRING_EQUAL(hash[0][3], hash[0][4]); /* diffts and dps share it */
  CU_ASSERT_STRING_EQUAL(hash[0][1], hash[0][5]); /* so do mixts and a chain on the mixture */
  CU_ASSERT_STRING_EQUAL(hash[0][1],
                         hash[0][6]); /* the components of vits2 are its own, not those of its prior */
  CU_ASSERT_TRUE(strcmp(hash[0][1], hash[0][2]) != 0); /* another number of components is another fit */
  study_destroy(&study);
}

/* Checks that a file is read once for each setting, and once to be hashed, whatever the number of policies
 * and replicates. */
static void test_files_read_once(void) {
  enum { SETTINGS = 3, EVENTS = 20000, LINE = 6, SIZE = EVENTS * LINE };
  static const char path[] = "study_test.csv";
  FILE *file = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  fputs("x1,class\n", file);
  for (int i = 0; i < EVENTS; i++) fprintf(file, "%3d,%d\n", i % 1000, i % 2);
  fclose(file);
  const long before = harness_bytes_read();
  Study study = make_study("name: t\nruns: 32\npolicies: [ts, oracle, random]\nprior: {replicates: 8}\n"
                           "sweep: {problem.noise: [1, 2, 3]}\n"
                           "problem: {family: table, file: study_test.csv, rounds: 5}\n");
  const long read = harness_bytes_read() - before;
  CU_ASSERT_TRUE(read < (SETTINGS + 1.5) * SIZE);
  study_destroy(&study);
  unlink(path);
}

/* ---- sizes of tasks */

/* Returns the size of the first task of a study with this policy, in a world of its own. */
static double first_size(const char *kind, const char *policy, const char *keys) {
  char text[512];
  snprintf(text, sizeof text, "{name: t, runs: 8, block: 8, study: %s, policies: [%s], %s}", kind, policy,
           keys);
  Study study = make_study(text);
  const Task task = study_task(&study, 0);
  const double size = study_task_size(&study, &task);
  study_destroy(&study);
  return size;
}

/* Checks that a task is larger if a number of its setting is larger that its draws depend on, and only then;
 * in proportion where the table says so. */
static void test_sizes(void) {
  static const struct {
    const char *kind, *policy, *keys, *more;
    double least, most; /* of the ratio */
  } cases[] = {
      {"bandit", "ts", "problem: {rounds: 50}", "problem: {rounds: 100}", 2, 2},
      {"bandit", "linucb", "problem: {rounds: 50}", "problem: {rounds: 100}", 2, 2},
      {"bandit", "ts", "problem: {arms: 10}", "problem: {arms: 100}", 1.1, 10},
      {"bandit", "ts", "problem: {theta: gaussian, dimension: 2, arms: 1}",
       "problem: {theta: gaussian, dimension: 20, arms: 1}", 10, 100},
      {"bandit", "ts", "problem: {rounds: 50}, likelihood: logistic",
       "problem: {rounds: 100}, likelihood: logistic", 2.1, 4},
      {"bandit", "ts", "prior: {stages: 10}", "prior: {stages: 100}", 1, 1},
      {"bandit", "diffts", "prior: {stages: 10}", "prior: {stages: 100}", 5, 10},
      {"bandit", "diffts", "prior: {hidden: [20]}", "prior: {hidden: [200]}", 5, 10},
      {"bandit", "mixts", "prior: {components: 2}", "prior: {components: 20}", 1.1, 10},
      {"bandit", "ts", "prior: {components: 2}", "prior: {components: 20}", 1, 1},
      {"bandit", "{name: lmc, model: network, hidden: [4]}", "problem: {theta: gaussian, dimension: 2}",
       "problem: {theta: gaussian, dimension: 20}", 1.1, 10},
      {"posterior", "ts", "draws: 10", "draws: 20", 2, 2},
      {"posterior", "ts", "problem: {sample_sizes: [1, 2]}", "problem: {sample_sizes: [1, 2, 3, 4]}", 2, 2},
      {"convergence", "vits1", "max_steps: 100", "max_steps: 300", 3, 3},
      {"stream", "ts", "stream: {tasks: 10}", "stream: {tasks: 40}", 4, 4},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const double ratio = first_size(cases[i].kind, cases[i].policy, cases[i].more) /
                         first_size(cases[i].kind, cases[i].policy, cases[i].keys);
    if (!(ratio >= cases[i].least && ratio <= cases[i].most))
      printf("\n    %s, %s: %g times\n", cases[i].policy, cases[i].more, ratio);
    CU_ASSERT_TRUE(ratio >= cases[i].least && ratio <= cases[i].most);
  }
}

/* Learns the prior of a replicate, in `directory`, and returns its path. */
static void fit_prior(const Study *study, uint32_t replicate, const char *directory, char path[256]) {
  SCRATCH_ARENA(scratch);
  SCOPED(Problem, problem, problem_destroy);
  Belief belief;
  FitSource source;
  Prior prior;
  const Config *setting = study->file->settings[0];
  CHECK_OK(study_problem_create(setting, &problem));
  CHECK_OK(study_belief_create(setting, &study->file->policies[0], &problem, replicate, &belief));
  CHECK_OK(study_fit_data_create(&scratch, &belief, &problem, NULL, &source));
  CHECK_OK(fit_source_whole(&scratch, &source, belief.family, &belief.fit, &prior));
  study_belief_path(&belief, directory, 256, path);
  CHECK_OK(prior_save(&prior, path));
}

/* Checks that a task reads a learned prior once: the next one of its cell and replicate does without the
 * file, with the numbers that it has with it, and one of another replicate does not. */
static void test_kept_priors(void) {
  char directory[] = "/tmp/thompson-priors-XXXXXX", folder[64], first[256], second[256];
  Study study = make_study(
      "name: t\nruns: 8\nblock: 2\nprior: {replicates: 2, train_samples: 50}\npolicies: [tuned_ts]\n"
      "problem: {theta: cross, arms: 3, rounds: 3}\n");
  TaskResult results[3];
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
  snprintf(folder, sizeof folder, "%s/priors", directory);
  CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0700), 0);
  fit_prior(&study, 0, directory, first);
  fit_prior(&study, 1, directory, second);
  CU_ASSERT_STRING_NOT_EQUAL(first, second);
  TaskPriors kept = {.directory = directory}, fresh = {.directory = directory};
  const Task tasks[] = {study_task(&study, 1), study_task(&study, 0), study_task(&study, 2)};
  for (int i = 0; i < 3; i++) CHECK_OK(study_result_create(&study, &tasks[i], &results[i]));
  CHECK_OK(study_run_task(&study, &tasks[0], &fresh, (Tick){0}, &results[0]));
  CHECK_OK(study_run_task(&study, &tasks[1], &kept, (Tick){0}, &results[1]));
  unlink(first);
  unlink(second);
  CHECK_OK(study_run_task(&study, &tasks[0], &kept, (Tick){0}, &results[1]));
  CHECK_OK(study_run_task(&study, &tasks[2], &kept, (Tick){0}, &results[2]));
  CU_ASSERT_EQUAL(results[1].status, RUN_OK);
  CU_ASSERT_EQUAL(memcmp(results[0].curves, results[1].curves, results[0].size * sizeof(double)), 0);
  CU_ASSERT_EQUAL(results[2].status, RUN_FAILED);
  CU_ASSERT_PTR_NOT_NULL(strstr(results[2].message, second));
  study_task_priors_free(&kept);
  study_task_priors_free(&fresh);
  for (int i = 0; i < 3; i++) study_result_destroy(&results[i]);
  rmdir(folder);
  rmdir(directory);
  study_destroy(&study);
}

int main(void) {
  CU_TestInfo tests[] = {{"tasks cover every run once, within replicates", test_tasks_cover_runs},
                         {"tasks are found by their names", test_names},
                         {"learned priors are kept", test_kept_priors},
                         {"mean, standard error, paired difference, replicates", test_statistics},
                         {"quantiles over runs", test_quantiles},
                         {"more replicates than runs are refused", test_too_many_replicates},
                         {"fitted priors are shared when they are the same", test_beliefs},
                         {"files are read once for each setting", test_files_read_once},
                         {"tasks are as large as their draws", test_sizes},
                         CU_TEST_INFO_NULL};
  return harness_run("study", tests);
}
