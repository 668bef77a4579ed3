/* The reducer on any number of ranks: the results have the values of the tasks, and their means, a failed and
 * a missing task excluded. A rank that cannot read leaves no other waiting. */
#include "core/rng.h"
#include "harness_mpi.h"
#include "io/store.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/journal.h"
#include "study_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

enum { SETTINGS = 3, POLICIES = 3, RUNS = 20, POINTS = 7, MISSING = 13, FAILED = 2 };

static Study make_study(void) {
  static const char text[] =
      "{name: t, runs: 20, block: 5, policies: [ts, linucb, egreedy], "
      "problem: {rounds: 7}, metrics: [regret_floor], sweep: {problem.arms: [3, 4, 5]}}\n";
  return study_text_study(text);
}

/* Makes the result of a task; the caller must destroy it. */
static void make(const Study *study, int index, TaskResult *out) {
  const Task task = study_task(study, index);
  Rng rng = {.key = rng_key((uint64_t)index, RNG_VERIFY)};
  CHECK_OK(study_result_create(study, &task, out));
  rng_uniform(&rng, task.runs * POINTS, out->curves);
  for (int i = 0; i < task.runs * POINTS; i++) /* the floor, the same for all policies */
    study_result_values(out, 1, 0)[i] = task.setting + 0.01 * ((int)task.first_run * POINTS + i);
  out->status = RUN_OK;
  if (index == FAILED) CHECK_OK(study_result_fail(study, "it had to", out));
}

static void save(const Study *study, int index, Journal *journal) {
  const Task task = study_task(study, index);
  TaskResult result;
  make(study, index, &result);
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

/* Checks the regret of every run, bit by bit, and its means. */
static void check_regret(const Study *study, StoreFile *file) {
  static double regret[SETTINGS * POLICIES][RUNS][POINTS], means[SETTINGS * POLICIES][POINTS];
  double sums[SETTINGS * POLICIES][POINTS] = {0}, counts[SETTINGS * POLICIES] = {0};
  CHECK_OK(store_shape(file, "regret", 4, (size_t[]){SETTINGS, POLICIES, RUNS, POINTS}));
  CHECK_OK(store_get_doubles(file, "regret", &regret[0][0][0]));
  CHECK_OK(store_get_doubles(file, "regret_mean", &means[0][0]));
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    TaskResult made;
    make(study, i, &made);
    const bool there = i != MISSING && i != FAILED;
    const int cell = task.setting * POLICIES + task.policy;
    counts[cell] += there ? task.runs : 0;
    for (int b = 0; b < task.runs; b++)
      for (int k = 0; k < POINTS; k++) {
        const double found = regret[cell][(int)task.first_run + b][k], value = made.curves[b * POINTS + k];
        CU_ASSERT_TRUE(there ? found == value : isnan(found));
        sums[cell][k] += there ? value : 0;
      }
    study_result_destroy(&made);
  }
  for (int cell = 0; cell < SETTINGS * POLICIES; cell++)
    for (int k = 0; k < POINTS; k++) CHECK_NEAR(means[cell][k], sums[cell][k] / counts[cell], 1e-14);
}

/* Checks that runs that the first policy lacks, in a failed and a missing task, get the floor from another
 * policy. */
static void check_floor(StoreFile *file) {
  static double floor[SETTINGS * RUNS * POINTS];
  CHECK_OK(store_get_doubles(file, "regret_floor", floor));
  for (int i = 0; i < SETTINGS * RUNS * POINTS; i++)
    CHECK_NEAR(floor[i], i / (RUNS * POINTS) + 0.01 * (i % (RUNS * POINTS)), 1e-12);
}

/* Checks that all ranks return with the same message when one of them, the last, can open no journal. */
static void check_failing_rank(const Study *study, const char *folder) {
  const bool failing = parallel_rank() == parallel_size() - 1;
  struct rlimit limit, none;
  SCOPED(Leaderboard, board, leaderboard_destroy);
  ReduceCounts counts;
  CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
  if (failing) CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = reduce_study(study, folder, false, &counts, &board);
  if (failing) CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
  CU_ASSERT_EQUAL(status, STATUS_FILE);
  CU_ASSERT_PTR_NOT_NULL(strstr(status_message(), strerror(EMFILE)));
}

static void test_results(void) {
  char folder[64] = "", results[96];
  if (parallel_rank() == 0) strcpy(folder, "/tmp/mpi_reduce.XXXXXX");
  if (parallel_rank() == 0) CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  parallel_broadcast(folder, sizeof folder);
  snprintf(results, sizeof results, "%s/results.nc", folder);
  Study study = make_study();
  SCOPED(Leaderboard, board, leaderboard_destroy);
  ReduceCounts counts;
  if (parallel_rank() == 0) make_folder(folder, &study);
  parallel_barrier();
  CHECK_OK(reduce_study(&study, folder, false, &counts, &board));
  if (parallel_rank() == 0) {
    CU_ASSERT_EQUAL(counts.ok, study.task_count - 2);
    CU_ASSERT_EQUAL(counts.failed, 1);
    CU_ASSERT_EQUAL(counts.missing, 1);
    StoreFile *file;
    CHECK_OK(store_open_own(results, &file));
    check_regret(&study, file);
    check_floor(file);
    store_abandon(file);
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
  CU_TestInfo tests[] = {{"results", test_results}, CU_TEST_INFO_NULL};
  return mpi_harness_main("reduce", tests);
}
