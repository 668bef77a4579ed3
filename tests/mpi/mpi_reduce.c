/* The reducer on any number of ranks: large curves, which are written into the file by the ranks that read
 * them, give the same values as small ones, which rank 0 compresses; a failed and a missing task included. A
 * rank that cannot read leaves no other waiting. */
#include "core/rng.h"
#include "harness_mpi.h"
#include "io/store.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/journal.h"
#include "study_text.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum { SETTINGS = 3, POLICIES = 3, RUNS = 20, POINTS = 7, MISSING = 13, FAILED = 2 };

static Study make_study(void) {
  static const char text[] =
      "{name: t, runs: 20, block: 5, policies: [ts, linucb, egreedy], "
      "problem: {rounds: 7}, metrics: [regret_floor], sweep: {problem.arms: [3, 4, 5]}}\n";
  return study_text_study(text);
}

static void save(const Study *study, int index, Journal *journal) {
  const Task task = study_task(study, index);
  Rng rng = {.key = rng_key((uint64_t)index, RNG_VERIFY)};
  TaskResult result;
  CHECK_OK(study_result_create(study, &task, &result));
  rng_uniform(&rng, task.runs * result.points, result.curves);
  for (int i = 0; i < task.runs * result.points; i++) /* the floor, the same for all policies */
    result.curves[task.runs * result.points + i] = task.setting + 0.01 * ((int)task.first_run * POINTS + i);
  result.status = RUN_OK;
  if (index == FAILED) CHECK_OK(study_result_fail(study, "it had to", &result));
  CHECK_OK(journal_append(journal, &task, &result));
  study_result_destroy(&result);
}

static void make_folder(const char *folder, const Study *study) {
  SCRATCH_ARENA(memory);
  Lock *lock;
  Journal *journal;
  CHECK_OK(folder_open(folder, study, FOLDER_OVERWRITE, -1, &lock));
  CHECK_OK(journal_create(&memory, folder, study, &journal));
  for (int i = 0; i < study->task_count; i++)
    if (i != MISSING) save(study, i, journal);
  journal_close(journal);
  io_lock_release(lock);
}

/* Checks that the values of a variable are the same in both files, bit by bit, and not all missing. */
static void check_same(StoreFile *one, StoreFile *other, const char *name, int axes, const size_t *shape) {
  static double values[2][SETTINGS * POLICIES * RUNS * POINTS];
  size_t size = 1, there = 0;
  memset(values, 0, sizeof values);
  for (int i = 0; i < axes; i++) size *= shape[i];
  CHECK_OK(store_shape(one, name, axes, (size_t[]){shape[0], shape[1], shape[2], shape[3]}));
  CHECK_OK(store_shape(other, name, axes, (size_t[]){shape[0], shape[1], shape[2], shape[3]}));
  CHECK_OK(store_get_doubles(one, name, values[0]));
  CHECK_OK(store_get_doubles(other, name, values[1]));
  CU_ASSERT_EQUAL(memcmp(values[0], values[1], size * sizeof(double)), 0);
  for (size_t i = 0; i < size; i++) there += values[0][i] == values[0][i];
  CU_ASSERT_TRUE(there > 0);
}

/* Checks that runs that the first policy lacks, in a failed and a missing task, get the floor from another
 * policy. */
static void check_floor(StoreFile *file) {
  static double floor[SETTINGS * RUNS * POINTS];
  CHECK_OK(store_get_doubles(file, "regret_floor", floor));
  for (int i = 0; i < SETTINGS * RUNS * POINTS; i++)
    CHECK_NEAR(floor[i], i / (RUNS * POINTS) + 0.01 * (i % (RUNS * POINTS)), 1e-12);
}

static void compare(const char *one, const char *other) {
  static const char *const statistics[] = {"regret_mean", "regret_se", "regret_diff_mean", "regret_diff_se"};
  StoreFile *files[2];
  CHECK_OK(store_open_own(one, &files[0]));
  CHECK_OK(store_open_own(other, &files[1]));
  check_same(files[0], files[1], "regret", 4, (size_t[]){SETTINGS, POLICIES, RUNS, POINTS});
  check_same(files[0], files[1], "regret_quantile", 4,
             (size_t[]){SETTINGS, POLICIES, STUDY_QUANTILES, POINTS});
  for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++)
    check_same(files[0], files[1], statistics[i], 3, (size_t[]){SETTINGS, POLICIES, POINTS, 0});
  check_same(files[0], files[1], "regret_floor", 3, (size_t[]){SETTINGS, RUNS, POINTS, 0});
  check_same(files[0], files[1], "regret_floor_mean", 2, (size_t[]){SETTINGS, POINTS, 0, 0});
  check_floor(files[0]);
  store_abandon(files[0]);
  store_abandon(files[1]);
}

/* Checks that all ranks return with the same message when one of them, the last, can open no journal. */
static void check_failing_rank(const Study *study, const char *folder) {
  const bool failing = parallel_rank() == parallel_size() - 1;
  struct rlimit limit, none;
  ReduceCounts counts;
  CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
  for (int plain = 0; plain < 2; plain++) {
    if (failing) CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    const Status status = reduce_study(study, folder, &(ReduceOptions){.plain_from = plain}, &counts);
    if (failing) CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CU_ASSERT_EQUAL(status, STATUS_FILE);
    CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), strerror(EMFILE)));
  }
}

static void test_large_curves(void) {
  char folder[64] = "", results[96], kept[96];
  if (parallel_rank() == 0) strcpy(folder, "/tmp/mpi_reduce.XXXXXX");
  if (parallel_rank() == 0) CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  parallel_broadcast(folder, sizeof folder);
  snprintf(results, sizeof results, "%s/results.nc", folder);
  snprintf(kept, sizeof kept, "%s/kept.nc", folder);
  Study study = make_study();
  ReduceCounts counts;
  if (parallel_rank() == 0) make_folder(folder, &study);
  parallel_barrier();
  CHECK_OK(reduce_study(&study, folder, &(ReduceOptions){0}, &counts));
  if (parallel_rank() == 0) CU_ASSERT_EQUAL(rename(results, kept), 0);
  CHECK_OK(reduce_study(&study, folder, &(ReduceOptions){.plain_from = 1}, &counts));
  if (parallel_rank() == 0) {
    CU_ASSERT_EQUAL(counts.ok, study.task_count - 2);
    CU_ASSERT_EQUAL(counts.failed, 1);
    CU_ASSERT_EQUAL(counts.missing, 1);
    compare(kept, results);
  }
  check_failing_rank(&study, folder);
  if (parallel_rank() == 0) {
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
  }
  study_destroy(&study);
}

int main(void) {
  CU_TestInfo tests[] = {{"large curves", test_large_curves}, CU_TEST_INFO_NULL};
  return mpi_harness_main("reduce", tests);
}
