/* Curves that all policies share: measured once, taken from the record of a finished task, and the same
 * numbers as when every task measures its own. */
#include "harness.h"

#include "parallel/tasks/finished.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/journal.h"
#include "study/keys.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static TaskPriors no_priors = {.directory = ""};

enum { POLICIES = 3 };

static char folder[] = "/tmp/thompson-shared-XXXXXX";
static Study study;
static TaskResult results[POLICIES]; /* each task on its own */

/* Returns the task of the second block. */
static Task task_of(int policy) { return study_task(&study, study_task_index(&study, 0, policy, 1)); }

/* Runs the tasks of the second block; false when the study is refused or a task fails. */
static bool make_results(void) {
  StudyFile *file = NULL;
  Status status = config_study_parse(
      "test",
      "name: t\nstudy: posterior\nseed: 9\nruns: 6\nblock: 3\ndraws: 40\n"
      "metrics: [emd, sliced_wasserstein, sd_ratio, mode_weight, moments, distance, rank, log_concavity]\n"
      "problem: {family: synthetic, theta: gm_cross, arms: 5, sample_sizes: [1, 7]}\n"
      "prior: {standardise: false}\n"
      "policies: [{name: joint, prior: exact}, exact, {name: diffts, prior: exact}]\n",
      &study_schema, 0, NULL, &file);
  if (status == STATUS_OK) status = study_create(file, &study);
  for (int p = 0; p < POLICIES && status == STATUS_OK; p++) {
    const Task task = task_of(p);
    status = study_result_create(&study, &task, &results[p]);
    if (status == STATUS_OK) status = study_run_task(&study, &task, &no_priors, (Tick){0}, &results[p]);
    if (status == STATUS_OK && results[p].status != RUN_OK) return false;
  }
  return status == STATUS_OK;
}

static const double *curve_of(const TaskResult *result, int curve) {
  return result->curves + curve * result->runs * result->points;
}

/* Counts the curves of the kind that differ. */
static int differences(const TaskResult *a, const TaskResult *b, bool shared) {
  int count = 0;
  for (int c = 0; c < study.curve_count; c++)
    if (study.curves[c]->shared == shared)
      count += memcmp(curve_of(a, c), curve_of(b, c), sizeof(double) * (size_t)(a->runs * a->points)) != 0;
  return count;
}

static int count_shared(void) {
  int count = 0;
  for (int c = 0; c < study.curve_count; c++) count += study.curves[c]->shared;
  return count;
}

static void run(const Task *task, TaskResult *result) {
  CHECK_OK(study_run_task(&study, task, &no_priors, (Tick){0}, result));
  CU_ASSERT_EQUAL(result->status, RUN_OK);
}

static void test_same_for_all(void) {
  CU_ASSERT_TRUE(study_has_shared(&study));
  for (int p = 0; p < POLICIES; p++) {
    CU_ASSERT_EQUAL(differences(&results[0], &results[p], true), 0);
    for (int c = 0; c < study.curve_count; c++)
      if (study.curves[c]->metric && !strstr(study.curves[c]->name, "concavity_")) /* bounds: none here */
        CU_ASSERT_FALSE(isnan(curve_of(&results[p], c)[0]));
  }
}

/* Checks that a task that is given shared curves does not measure them again, and measures all of its own:
 * meaningless values stay. */
static void test_not_measured_again(void) {
  for (int p = 0; p < POLICIES; p++) {
    const Task task = task_of(p);
    TaskResult false_one, result;
    CHECK_OK(study_result_create(&study, &task, &false_one));
    CHECK_OK(study_result_create(&study, &task, &result));
    for (int i = 0; i < study.curve_count * task.runs * study.points; i++) false_one.curves[i] = -7;
    study_result_share(&study, &false_one, &result);
    run(&task, &result);
    CU_ASSERT_EQUAL(differences(&result, &results[p], false), 0);
    CU_ASSERT_EQUAL(differences(&result, &false_one, true), 0);
    CU_ASSERT_EQUAL(differences(&result, &results[p], true), count_shared());
    CHECK_OK(study_result_fail(&study, "a reason", &result));
    for (int c = 0; c < study.curve_count; c++) CU_ASSERT_TRUE(isnan(curve_of(&result, c)[0]));
    study_result_destroy(&false_one);
    study_result_destroy(&result);
  }
}

/* Tells whether the folder gives a task of the first policy its shared curves. */
static bool found_in_folder(Finished *finished, TaskResult *result) {
  const Task task = task_of(0);
  CHECK_OK(study_result_create(&study, &task, result));
  finished->looked_at -= 60;
  CHECK_OK(finished_share(finished, &task, result));
  return result->has_shared;
}

/* Checks that curves come neither from another block nor from a record that cannot be read, and that what
 * another rank has written since is seen. */
static void test_from_the_folder(void) {
  SCRATCH_ARENA(memory);
  Lock *lock;
  Journal *journal;
  Finished finished;
  TaskResult result;
  char path[200];
  const Task second = task_of(1), other = study_task(&study, study_task_index(&study, 0, 1, 0));
  CHECK_OK(folder_open(folder, &study, FOLDER_RESUME, -1, &lock));
  CHECK_OK(finished_open(&memory, folder, &study, false, &finished));
  CHECK_OK(journal_create(&memory, folder, &study, &journal));
  CHECK_OK(journal_append(journal, &other, &results[1]));
  CU_ASSERT_FALSE(found_in_folder(&finished, &result));
  study_result_destroy(&result);
  CHECK_OK(journal_append(journal, &second, &results[1]));
  CU_ASSERT_TRUE(found_in_folder(&finished, &result));
  CU_ASSERT_EQUAL(differences(&result, &results[0], true), 0);
  study_result_destroy(&result);
  snprintf(path, sizeof path, "%s/tasks/%s", folder, finished.journal[0].name);
  CU_ASSERT_EQUAL(truncate(path, finished.journal[0].end - 8), 0);
  CU_ASSERT_FALSE(found_in_folder(&finished, &result));
  study_result_destroy(&result);
  journal_close(journal);
  finished_close(&finished);
  io_lock_release(lock);
}

int main(void) {
  CU_TestInfo tests[] = {{"the same for all policies", test_same_for_all},
                         {"not measured again", test_not_measured_again},
                         {"from the folder", test_from_the_folder},
                         CU_TEST_INFO_NULL};
  if (!mkdtemp(folder) || !make_results()) {
    printf("%s\n", status_message());
    return EXIT_FAILURE;
  }
  const int failed = harness_run("shared", tests);
  for (int p = 0; p < POLICIES; p++) study_result_destroy(&results[p]);
  study_destroy(&study);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? failed : EXIT_FAILURE;
}
