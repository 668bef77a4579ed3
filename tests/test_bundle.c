/* Bundles of finished tasks: what is written comes back, every damage is noticed or does no harm, and of
 * files that are merged none is lost on the way. */
#include "harness.h"

#include "io/store.h"
#include "parallel/checkpoint.h"
#include "parallel/commit.h"
#include "parallel/finished.h"
#include "parallel/task_file.h"
#include "study/keys.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/thompson-bundle-XXXXXX";
static Study study;
static Lock *lock;

static void make_study(const char *seed, Study *out) {
  char text[300];
  StudyFile *file = NULL;
  snprintf(text, sizeof text,
           "{name: t, study: bandit, seed: %s, runs: 2051, block: 2, policies: [random], "
           "problem: {rounds: 3, arms: 2}}\n",
           seed);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_create(file, out));
}

static void test_a_study(void) {
  make_study("5", &study);
  CU_ASSERT_EQUAL(study.task_count, 1026);
  CU_ASSERT_TRUE(bundle_is_for(&study));
  CHECK_OK(checkpoint_open(folder, &study, CHECKPOINT_RESUME, -1, &lock));
}

/* Made-up numbers, one of them missing. */
static void make_result(int index, Task *task, TaskResult *result) {
  *task = study_task(&study, index);
  CHECK_OK(task_result_create(&study, task, result));
  for (int i = 0; i < study.curve_count * task->runs * study.points; i++)
    result->curves[i] = i == 1 ? NAN : index + 0.25 * i;
  for (int b = 0; b < task->runs; b++) result->seconds[b] = 1e-3 * index, result->fallbacks[b] = index + b;
  result->status = RUN_OK;
}

/* The numbers of a task that was loaded are those of make_result. */
static bool is_as_made(int index, const TaskResult *found) {
  Task task;
  TaskResult made;
  make_result(index, &task, &made);
  const size_t runs = (size_t)task.runs, values = (size_t)study.curve_count * runs * (size_t)study.points;
  const bool same = memcmp(made.curves, found->curves, values * sizeof *made.curves) == 0 &&
                    memcmp(made.seconds, found->seconds, runs * sizeof *made.seconds) == 0 &&
                    memcmp(made.fallbacks, found->fallbacks, runs * sizeof *made.fallbacks) == 0 &&
                    found->status == RUN_OK;
  task_result_destroy(&made);
  return same;
}

static Status load(Bundle *bundle, int index, bool *same) {
  const Task task = study_task(&study, index);
  TaskResult result;
  TRY(task_result_create(&study, &task, &result));
  Status status = bundle_load(bundle, &study, &task, &result);
  *same = status == STATUS_OK && is_as_made(index, &result);
  task_result_destroy(&result);
  return status;
}

/* In no order; the last task of the study has one run and the others two. */
static const int some[] = {1025, 3, 700, 41, 42};
enum { SOME = sizeof some / sizeof *some };

static void write_some(char path[PATH_MAX]) {
  BundleEntry entries[SOME];
  char name[FOLDER_NAME];
  for (int k = 0; k < SOME; k++) {
    make_result(some[k], &entries[k].task, &entries[k].result);
    entries[k].finished = 1e9 + some[k];
  }
  CHECK_OK(bundle_write(folder, &study, SOME, entries, name));
  CU_ASSERT_TRUE(folder_is_bundle_name(name));
  CU_ASSERT_EQUAL(strncmp(name, "000003-001025-", 14), 0);
  for (int k = 0; k < SOME; k++) task_result_destroy(&entries[k].result);
  snprintf(path, PATH_MAX, "%s/tasks/%s", folder, name);
}

static void test_round_trip(void) {
  char path[PATH_MAX], again[PATH_MAX];
  Bundle *bundle;
  write_some(path);
  write_some(again);
  CU_ASSERT_STRING_EQUAL(path, again);
  CHECK_OK(bundle_open(path, &bundle));
  CU_ASSERT_EQUAL_FATAL(bundle_count(bundle), SOME);
  for (int k = 0; k < SOME; k++) {
    bool same = false;
    CHECK_NEAR(bundle_finished(bundle)[k], 1e9 + (double)bundle_tasks(bundle)[k], 0);
    CU_ASSERT_TRUE(k == 0 || bundle_tasks(bundle)[k - 1] < bundle_tasks(bundle)[k]);
    CHECK_OK(load(bundle, some[k], &same));
    CU_ASSERT_TRUE(same);
  }
  bool same;
  CHECK_FAILS(load(bundle, 4, &same), STATUS_INPUT, "has no task 4");
  bundle_close(bundle);
}

static void test_names(void) {
  char name[FOLDER_NAME];
  folder_bundle_name(3, 1234567, 0xabc, name);
  CU_ASSERT_STRING_EQUAL(name, "000003-1234567-0000000000000abc.nc");
  CU_ASSERT_TRUE(folder_is_bundle_name(name));
  static const char *const others[] = {
      "",
      "000003.nc",
      "3-9-0000000000000abc.nc",
      "000003-000009-abc.nc",
      "000003-000009-0000000000000ABC.nc",
      "000003-000009-0000000000000abc.nc.bad",
      "000003-000009-0000000000000abc.nc4",
      " 00003-000009-0000000000000abc.nc",
      "-00003-000009-0000000000000abc.nc",
      "000003-000009-0000000000000abc00000000000000000000000000000000000.nc"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    CU_ASSERT_FALSE(folder_is_bundle_name(others[i]));
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  CU_ASSERT_FATAL(stream && fwrite(bytes, 1, size, stream) == size && fclose(stream) == 0);
}

/* How many tasks come back with other numbers, which must never be; *refused: whether anything was refused.
 */
static int count_wrong(const char *path, bool *refused) {
  Bundle *bundle;
  int wrong = 0;
  Status status = bundle_open(path, &bundle);
  *refused = status != STATUS_OK;
  if (status != STATUS_OK) return status != STATUS_INPUT;
  for (int k = 0; k < SOME; k++) {
    bool same = false;
    status = load(bundle, some[k], &same);
    wrong += status == STATUS_OK ? !same : status != STATUS_INPUT;
    *refused = *refused || status != STATUS_OK;
  }
  bundle_close(bundle);
  return wrong;
}

/* Any flipped bit: no task has other numbers, and who reads the whole file notices. */
static void test_flips(void) {
  char path[PATH_MAX], *bytes;
  size_t size;
  int wrong = 0, unnoticed = 0, noticed = 0;
  write_some(path);
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  for (size_t at = 0; at < size; at += 7) {
    bool refused;
    StoreFile *file;
    bytes[at] ^= (char)(1 << at % 8);
    write_bytes(path, bytes, size);
    wrong += count_wrong(path, &refused);
    noticed += refused;
    if (store_open_own(path, &file) == STATUS_OK) {
      store_abandon(file);
      unnoticed++;
    }
    bytes[at] ^= (char)(1 << at % 8);
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT_EQUAL(unnoticed, 0);
  CU_ASSERT(noticed > 50);
  write_bytes(path, bytes, size);
  free(bytes);
}

/* Set a file aside: how many of its tasks are kept, none of them with other numbers. */
static int count_kept(const char *path, int *wrong) {
  char aside[PATH_MAX + 8];
  Finished finished;
  int kept, found = 0;
  CHECK_OK(bundle_set_aside(folder, strrchr(path, '/') + 1, &study, &kept));
  CHECK_OK(finished_scan(folder, &study, &finished));
  for (int b = 0; b < finished.bundles; b++) {
    char rescued[PATH_MAX];
    Bundle *bundle;
    snprintf(rescued, sizeof rescued, "%s/tasks/%s", folder, finished.name[b]);
    CHECK_OK(bundle_open(rescued, &bundle));
    for (int k = 0; k < bundle_count(bundle); k++, found++) {
      bool same = false;
      *wrong += load(bundle, (int)bundle_tasks(bundle)[k], &same) != STATUS_OK || !same;
    }
    bundle_close(bundle);
    remove(rescued);
  }
  finished_destroy(&finished);
  snprintf(aside, sizeof aside, "%s.bad", path);
  CU_ASSERT_EQUAL(remove(aside), 0);
  CU_ASSERT_EQUAL(found, kept);
  return kept;
}

/* Of a file with any flipped bit those tasks are kept that are whole: all but one where the bit is in what a
 * task gave, all where it is in the checksum at the end, and none with other numbers. */
static void test_rescue(void) {
  char path[PATH_MAX], *bytes;
  size_t size;
  int wrong = 0, kept[SOME + 1] = {0};
  write_some(path);
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  const size_t values = size - 72 - (size_t)(SOME * 2 * (study.curve_count * study.points + 2)) * 8;
  for (size_t at = 0; at < size; at += 29) {
    bytes[at] ^= (char)(1 << at % 8);
    write_bytes(path, bytes, size);
    const int count = count_kept(path, &wrong);
    kept[count]++;
    if (at >= size - 72) CU_ASSERT_EQUAL(count, SOME);
    if (at >= values) CU_ASSERT(count >= SOME - 1);
    bytes[at] ^= (char)(1 << at % 8);
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT(kept[0] > 0 && kept[SOME - 1] > 0 && kept[SOME] > 0);
  write_bytes(path, bytes, size);
  free(bytes);
}

/* The only file says by a flipped bit that it is of another study, which is no reason to refuse the folder.
 */
static void test_damaged_owner(void) {
  char path[PATH_MAX], *bytes, *sha;
  size_t size;
  Finished finished;
  write_some(path);
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  sha = memmem(bytes, size, study.file->sha256, strlen(study.file->sha256));
  CU_ASSERT_PTR_NOT_NULL_FATAL(sha);
  *sha ^= 1;
  write_bytes(path, bytes, size);
  CHECK_OK(finished_scan(folder, &study, &finished));
  CHECK_OK(finished_check_study(&finished));
  finished_destroy(&finished);
  *sha ^= 1;
  write_bytes(path, bytes, size);
  free(bytes);
}

/* Tails of any length that are zeros, ones or missing are noticed by whoever opens the file. */
static void test_tails(void) {
  char path[PATH_MAX], *bytes;
  size_t size;
  int taken = 0;
  write_some(path);
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  char *damaged = malloc(size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(damaged);
  for (size_t length = 1; length <= size; length += length < 100 ? 3 : 79)
    for (int how = 0; how < 3; how++) {
      Bundle *bundle;
      memcpy(damaged, bytes, size);
      memset(damaged + size - length, how == 0 ? 0 : 0xff, length);
      write_bytes(path, damaged, how == 2 ? size - length : size);
      if (bundle_open(path, &bundle) != STATUS_INPUT) taken++;
      bundle_close(bundle);
    }
  CU_ASSERT_EQUAL(taken, 0);
  remove(path);
  free(damaged);
  free(bytes);
}

/* Files of a rank that come and go. */

static int count_files(void) {
  char path[PATH_MAX];
  int count = 0;
  snprintf(path, sizeof path, "%s/tasks", folder);
  DIR *entries = opendir(path);
  for (struct dirent *entry; entries && (entry = readdir(entries));) count += entry->d_name[0] != '.';
  if (entries) closedir(entries);
  return count;
}

static void count_saved(void *context, const Task *task, const TaskResult *result, double seconds) {
  (void)task, (void)seconds;
  *(int *)context += result->status == RUN_OK;
}

/* Tasks [0, end) are there with their numbers, and no others. */
static void check_all(int end) {
  Finished finished;
  CHECK_OK(finished_scan(folder, &study, &finished));
  for (int i = 0; i < study.task_count; i++) {
    CU_ASSERT_EQUAL(finished.state[i], i < end ? RUN_OK : RUN_NOT_RUN);
    if (i >= end || finished.state[i] != RUN_OK) continue;
    const Task task = study_task(&study, i);
    TaskResult result;
    CHECK_OK(task_result_create(&study, &task, &result));
    CHECK_OK(finished_load(&finished, &task, false, &result));
    CU_ASSERT_TRUE(is_as_made(i, &result));
    task_result_destroy(&result);
  }
  finished_destroy(&finished);
}

/* Groups of two tasks; after g groups as many files as the digits of g to the base 8 sum up to, and from 64
 * on a file is left alone. */
static void test_merging(void) {
  enum { GROUPS = 77 };
  Commit *commit;
  int saved = 0;
  CHECK_OK(commit_create(folder, &study, (CommitNotice){count_saved, &saved}, &commit));
  CU_ASSERT_FALSE(commit_is_due(commit, INFINITY));
  for (int g = 1; g <= GROUPS; g++) {
    for (int k = 0; k < 2; k++) {
      Task task;
      TaskResult result;
      make_result(2 * g - 2 + k, &task, &result);
      CHECK_OK(commit_add(commit, &task, &result, 1e-3));
    }
    CU_ASSERT_EQUAL(saved, 2 * g - 2);
    CU_ASSERT_TRUE(commit_is_due(commit, INFINITY));
    CHECK_OK(commit_save(commit));
    CU_ASSERT_EQUAL(saved, 2 * g);
    CU_ASSERT_EQUAL(count_files(), g / 64 + g % 64 / 8 + g % 8);
  }
  check_all(2 * GROUPS);
  CHECK_OK(commit_merge(commit));
  CU_ASSERT_EQUAL(count_files(), 2);
  check_all(2 * GROUPS);
  commit_destroy(commit);
}

/* A group is due after a second, counted from the beginning of its first task. */
static void test_due(void) {
  Commit *commit;
  Task task;
  TaskResult result;
  int saved = 0;
  CHECK_OK(commit_create(folder, &study, (CommitNotice){count_saved, &saved}, &commit));
  make_result(500, &task, &result);
  CHECK_OK(commit_add(commit, &task, &result, 0.4));
  CU_ASSERT_FALSE(commit_is_due(commit, 0));
  CU_ASSERT_TRUE(commit_is_due(commit, 0.61));
  make_result(501, &task, &result);
  CHECK_OK(commit_add(commit, &task, &result, 0.9));
  CU_ASSERT_TRUE(commit_is_due(commit, 0.61));
  commit_destroy(commit);
  CU_ASSERT_EQUAL(saved, 0);
}

/* A task that failed has a file of its own, at once, until it succeeds. */
static void test_failure(void) {
  Commit *commit;
  Task task;
  TaskResult result;
  char path[PATH_MAX];
  int saved = 0;
  CHECK_OK(commit_create(folder, &study, (CommitNotice){count_saved, &saved}, &commit));
  for (int attempt = 0; attempt < 2; attempt++) {
    make_result(154, &task, &result);
    if (attempt == 0) CHECK_OK(task_result_fail(&study, "a reason", &result));
    CHECK_OK(commit_add(commit, &task, &result, 1e-3));
    CHECK_OK(task_file_path(folder, 154, true, sizeof path, path));
    CU_ASSERT_EQUAL(access(path, F_OK), 0);
    CU_ASSERT_EQUAL(commit_is_due(commit, INFINITY), attempt == 1);
    CHECK_OK(commit_save(commit));
    CU_ASSERT_EQUAL(access(path, F_OK), attempt == 0 ? 0 : -1);
  }
  CU_ASSERT_EQUAL(saved, 1);
  check_all(155);
  commit_destroy(commit);
}

/* Tasks first .. last into one file, whose path goes to `path`. */
static void write_range(int first, int last, char path[PATH_MAX]) {
  BundleEntry entries[8];
  char name[FOLDER_NAME];
  for (int i = first; i <= last; i++) {
    entries[i - first] = (BundleEntry){.finished = 1e9};
    make_result(i, &entries[i - first].task, &entries[i - first].result);
  }
  CHECK_OK(bundle_write(folder, &study, last - first + 1, entries, name));
  for (int i = first; i <= last; i++) task_result_destroy(&entries[i - first].result);
  snprintf(path, PATH_MAX, "%s/tasks/%s", folder, name);
}

/* A kill between the merged file and the removal of those it was made of. */
static void test_superseded(void) {
  Finished finished;
  char path[PATH_MAX];
  const int files = count_files();
  write_range(7, 7, path);
  check_all(155);
  CHECK_OK(finished_scan(folder, &study, &finished));
  const int larger = finished.bundle[7];
  CU_ASSERT(finished.size[larger] > 1);
  snprintf(path, sizeof path, "%s/tasks/%s", folder, finished.name[larger]);
  char *bytes;
  size_t size;
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  bytes[size / 2] ^= 1;
  write_bytes(path, bytes, size);
  CHECK_OK(finished_remove_superseded(&finished));
  CU_ASSERT_EQUAL(count_files(), files + 1); /* the larger one is damaged: nothing goes */
  bytes[size / 2] ^= 1;
  write_bytes(path, bytes, size);
  free(bytes);
  CHECK_OK(finished_remove_superseded(&finished));
  CU_ASSERT_EQUAL(count_files(), files);
  finished_destroy(&finished);
  check_all(155);
}

/* A file that was merged into another one since the folder was scanned; then that is gone too. */
static void test_moved(void) {
  Finished finished;
  TaskResult result;
  char small[PATH_MAX], large[PATH_MAX];
  const Task task = study_task(&study, 900);
  CHECK_OK(task_result_create(&study, &task, &result));
  write_range(900, 900, small);
  CHECK_OK(finished_scan(folder, &study, &finished));
  write_range(899, 902, large);
  remove(small);
  CHECK_OK(finished_load(&finished, &task, false, &result));
  CU_ASSERT_TRUE(is_as_made(900, &result));
  CU_ASSERT_EQUAL(finished.state[902], RUN_OK);
  finished_destroy(&finished);
  CHECK_OK(finished_scan(folder, &study, &finished));
  remove(large);
  CHECK_FAILS(finished_load(&finished, &task, false, &result), STATUS_INPUT,
              "task 900 is not there any more");
  CU_ASSERT_EQUAL(finished.state[902], RUN_NOT_RUN);
  finished_destroy(&finished);
  task_result_destroy(&result);
}

static void test_another_study(void) {
  Study other;
  Finished finished;
  TaskResult result;
  make_study("6", &other);
  const Task task = study_task(&other, 7);
  CHECK_OK(finished_scan(folder, &other, &finished));
  CHECK_FAILS(finished_check_study(&finished), STATUS_RESUME, "are of another study");
  CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), "/tasks/")); /* the file is named */
  CHECK_OK(task_result_create(&other, &task, &result));
  CHECK_FAILS(finished_load(&finished, &task, false, &result), STATUS_INPUT, "tasks of another study");
  task_result_destroy(&result);
  finished_destroy(&finished);
  study_destroy(&other);
}

/* Flip a bit of the file that a task is in, `from_end` bytes from its end. */
static void damage_file_of(int task, size_t from_end) {
  Finished finished;
  char path[PATH_MAX], *bytes;
  size_t size;
  CHECK_OK(finished_scan(folder, &study, &finished));
  snprintf(path, sizeof path, "%s/tasks/%s", folder, finished.name[finished.bundle[task]]);
  finished_destroy(&finished);
  CHECK_OK(store_read_text(path, SIZE_MAX, &bytes, &size));
  bytes[size - from_end] ^= 1;
  write_bytes(path, bytes, size);
  free(bytes);
}

static int count_done(const Finished *finished) {
  int done = 0;
  for (int i = 0; i < study.task_count; i++) done += finished->state[i] == RUN_OK;
  return done;
}

/* A file of a rank that was set aside meanwhile is not merged, and those beside it stay. */
static void test_merging_without_one(void) {
  Commit *commit;
  Finished finished;
  char path[PATH_MAX];
  int saved = 0;
  CHECK_OK(commit_create(folder, &study, (CommitNotice){count_saved, &saved}, &commit));
  for (int i = 600; i < 608; i++) {
    Task task;
    TaskResult result;
    make_result(i, &task, &result);
    CHECK_OK(commit_add(commit, &task, &result, 1e-3));
    if (i == 607) {
      CHECK_OK(finished_scan(folder, &study, &finished));
      snprintf(path, sizeof path, "%s/tasks/%s", folder, finished.name[finished.bundle[603]]);
      finished_destroy(&finished);
      remove(path);
    }
    CHECK_OK(commit_save(commit));
  }
  CHECK_OK(commit_merge(commit));
  commit_destroy(commit);
  CHECK_OK(finished_scan(folder, &study, &finished));
  for (int i = 600; i < 608; i++) CU_ASSERT_EQUAL(finished.state[i], i == 603 ? RUN_NOT_RUN : RUN_OK);
  finished_destroy(&finished);
}

/* Of a file that is set aside those tasks are kept that are whole: all but the one with a flipped bit, or
 * all, where it is the checksum at the end that is damaged. */
static void test_set_aside(void) {
  enum { SEAL = 72, LAST = 154 };
  Finished finished;
  int damaged = 0;
  CHECK_OK(finished_scan(folder, &study, &finished));
  const Task last = study_task(&study, LAST);
  const int done = count_done(&finished), files = count_files();
  damage_file_of(LAST, SEAL + 8);
  CHECK_OK(finished_set_aside(&finished, &last, false));
  CU_ASSERT_EQUAL(finished.state[LAST], RUN_NOT_RUN);
  CU_ASSERT_EQUAL(count_done(&finished), done - 1);
  CU_ASSERT_EQUAL(count_files(), files); /* one was of this task alone */
  finished_destroy(&finished);
  check_all(LAST);
  damage_file_of(7, SEAL);
  CHECK_OK(finished_scan(folder, &study, &finished));
  CU_ASSERT_EQUAL(finished.state[7], RUN_NOT_RUN);
  CHECK_OK(finished_report_unreadable(&finished, true, &damaged));
  CU_ASSERT_EQUAL(damaged, 1);
  finished_destroy(&finished);
  CU_ASSERT_EQUAL(count_files(), files + 1);
  check_all(LAST);
}

int main(void) {
  CU_TestInfo tests[] = {{"a study", test_a_study},
                         {"round trip", test_round_trip},
                         {"names", test_names},
                         {"flipped bits", test_flips},
                         {"rescue", test_rescue},
                         {"damaged owner", test_damaged_owner},
                         {"tails", test_tails},
                         {"merging", test_merging},
                         {"due", test_due},
                         {"failure", test_failure},
                         {"superseded", test_superseded},
                         {"moved", test_moved},
                         {"another study", test_another_study},
                         {"set aside", test_set_aside},
                         {"merging without one", test_merging_without_one},
                         CU_TEST_INFO_NULL};
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  const int failed = harness_run("bundle", tests);
  lock_release(lock);
  study_destroy(&study);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? failed : EXIT_FAILURE;
}
