/* Large settings on any number of ranks: the matrix is that of the ordinary inverse problem, its eigenvalues
 * are the requested ones, and a block gives the same numbers with ScaLAPACK as with LAPACK. */
#include "harness_mpi.h"
#include "parallel/grid.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study.h"
#include "study/study_problem.h"

#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { BLOCK = 5 };

static StudyFile *parse(int d, int m, const char *from) {
  char text[900];
  StudyFile *file = NULL;
  snprintf(
      text, sizeof text,
      "name: t\nstudy: posterior\nseed: 5\nruns: 2\nblock: 2\ndraws: 60\n"
      "metrics: [mode_weight, moments, sd_ratio, distance, rank, rank_norm, rank_log_likelihood]\n"
      "problem: {family: inverse, theta: gm_sphere, dimension: %d, arms: %d, condition_number: 10, snr: .3, "
      "noise: .7, sample_sizes: arms}\n"
      "prior: {standardise: false}\nlinear_algebra: {distributed_from: %s}\n"
      "policies: [{name: mala, prior: exact}, {name: tilted, prior: exact}, {name: mala, label: m0, prior: "
      "standard}, exact]\n",
      d, m, from);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  return file;
}

static void test_matrix(void) {
  static const int SHAPES[][2] = {{37, 37}, {20, 31}, {31, 20}}; /* d, m */
  for (int k = 0; k < 3; k++) {
    const int d = SHAPES[k][0], m = SHAPES[k][1], rank = d < m ? d : m;
    static double a_values[40 * 40], q[40];
    Dense grid = grid_create(BLOCK);
    StudyFile *large_file = parse(d, m, "1"), *file = parse(d, m, "auto");
    Problem large, ordinary;
    World world;
    DenseMatrix a, gram;
    CHECK_OK(study_problem_create(large_file->settings[0], &large));
    CHECK_OK(study_problem_create(file->settings[0], &ordinary));
    CU_ASSERT(large.distributed && !ordinary.distributed);
    CHECK_OK(world_create(&ordinary, 0, 3, 1, &world));
    CHECK_OK(large.ops->matrix(&large, 3, &grid, &a));
    dense_gather(&grid, &a, a_values);
    for (int i = 0; i < m * d; i++) CHECK_NEAR(a_values[i], world.features[i], 1e-10);
    static double truth[40];
    problem_theta(&large, 0, 3, 1, truth);
    for (int i = 0; i < d; i++) CHECK_NEAR(truth[i], world.theta[i], 1e-12);
    CHECK_OK(dense_matrix_create(&grid, d, d, &gram));
    dense_gram(&grid, 1 / (0.7 * 0.7), &a, &gram);
    CHECK_OK(dense_eigen(&grid, &gram, q));
    for (int i = 0; i < d; i++) {
      const int place = i - (d - rank);
      CHECK_NEAR(q[i], place < 0 ? 0 : 0.3 * 0.3 * pow(10, 2.0 * place / (rank - 1)), 1e-11);
    }
    dense_matrix_destroy(&a);
    dense_matrix_destroy(&gram);
    world_destroy(&world);
    problem_destroy(&large);
    problem_destroy(&ordinary);
    config_study_free(large_file);
    config_study_free(file);
    grid_destroy(&grid);
  }
}

static bool go_on(void *context, double fraction) {
  (void)context;
  (void)fraction;
  return true;
}
static void say_nothing(const char *what, double seconds) {
  (void)what;
  (void)seconds;
}

/* Returns the bytes of the heap in use; 0 where they are not counted, as under sanitizers. */
static double heap_in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 heap = mallinfo2();
  return (double)heap.uordblks + (double)heap.hblkhd;
#else
  return 0;
#endif
}

static bool keep_heap(void *context, double fraction) {
  (void)fraction;
  *(double *)context = heap_in_use();
  return true;
}

/* Checks the memory that a rank holds when its run is about to draw: its part of the eigenvectors and of the
 * exact draws, which are padded by at most a block in each direction, its columns of two rounds, and vectors,
 * of which 64 are allowed. */
static void test_memory(void) {
  enum { D = 600, DRAWS = 60, SIDE = 16, VECTORS = 64 };
  double heap = 0;
  Study study;
  Dense grid = grid_create(SIDE);
  CHECK_OK(study_create(parse(D, D, "30"), &study));
  const Task task = study_task(&study, 0);
  TaskResult result;
  CHECK_OK(study_result_create(&study, &task, &result));
  const double before = heap_in_use(), rows = D / grid.grid_rows + SIDE,
               columns = D / grid.grid_columns + SIDE, draws = DRAWS / grid.grid_columns + SIDE,
               round = 2 * dense_most_columns(&grid, DRAWS);
  const StudySpread large = {&grid, {keep_heap, &heap}, say_nothing};
  CHECK_OK(study_run_spread(&study, &large, 1, &task, &result));
  CU_ASSERT_TRUE(heap - before <= sizeof(double) * (rows * (columns + draws) + D * (round + VECTORS)));
  study_result_destroy(&result);
  study_destroy(&study);
  grid_destroy(&grid);
}

static void test_block(void) {
  enum { POLICIES = 4 };
  Study study;
  TaskResult results[2][POLICIES];
  Dense grid = grid_create(BLOCK), lapack = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
  const Dense *const sides[] = {&grid, &lapack};
  CHECK_OK(study_create(parse(37, 37, "30"), &study));
  CU_ASSERT_EQUAL(study.task_count, POLICIES);
  Task tasks[POLICIES];
  for (int s = 0; s < 2; s++) {
    const StudySpread large = {sides[s], {go_on, NULL}, say_nothing};
    for (int p = 0; p < POLICIES; p++) {
      tasks[p] = study_task(&study, p);
      CU_ASSERT_TRUE(study_task_is_distributed(&study, &tasks[p]));
      CHECK_OK(study_result_create(&study, &tasks[p], &results[s][p]));
    }
    CHECK_OK(study_run_spread(&study, &large, POLICIES, tasks, results[s]));
  }
  for (int p = 0; p < POLICIES; p++) {
    CU_ASSERT_EQUAL(results[0][p].status, RUN_OK);
    for (int c = 0; c < study.curve_count * 2; c++) {
      const double by_grid = results[0][p].curves[c], by_lapack = results[1][p].curves[c];
      if (!study.curves[c / 2]->metric) /* what samplers note is not known */
        CU_ASSERT_TRUE(isnan(by_grid) && isnan(by_lapack))
      else
        CHECK_NEAR(by_grid, by_lapack, 1e-10);
    }
    for (int s = 0; s < 2; s++) study_result_destroy(&results[s][p]);
  }
  study_destroy(&study);
  grid_destroy(&grid);
}

int main(void) {
  CU_TestInfo tests[] = {{"matrix of the inverse problem", test_matrix},
                         {"a block of runs", test_block},
                         {"memory of a rank", test_memory},
                         CU_TEST_INFO_NULL};
  return mpi_harness_main("large", tests);
}
