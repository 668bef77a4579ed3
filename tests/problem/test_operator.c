/* Operators of inverse problems (walks the registry): applying them, their rows in a world and their matrices
 * are the same thing; masks, and blurs as in SciPy; refusals. */
#include "blur_golden.h"
#include "harness.h"
#include "study_text.h"

#include "io/store.h"
#include "problem/operator.h"
#include "problem/world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64 };
static const char PATH[] = "operator_test.nc";

/* Writes a(observation, dim)[rows, d]. */
static Status write_matrix(int rows, int d, const double *a) {
  StoreFile *file;
  int axes[2];
  TRY(store_create(PATH, &file));
  TRY(store_dimension(file, "observation", (size_t)rows, &axes[0]));
  TRY(store_dimension(file, "dim", (size_t)d, &axes[1]));
  return store_finish(file, store_write(file, "a", STORE_DOUBLE, 2, axes, NULL, NULL, a));
}

/* Creates the inverse problem of these keys. */
static Status make(int d, const char *keys, Problem *out) {
  char study[512];
  snprintf(
      study, sizeof study,
      "name: t\nstudy: posterior\npolicies: [ts]\nproblem: {family: inverse, theta: gaussian, noise: 0.7, "
      "dimension: %d, %s}\n",
      d, keys);
  return study_text_problem(study, out);
}

/* Checks the operator of a problem in run 3: the features of the arms against the matrix, and against A x if
 * the operator says what that is. All numbers are of order 1, and sums have at most 64 terms. */
static void check_operator(const Problem *problem) {
  const Operator *a = problem->state;
  const int d = a->d, m = a->rows;
  const double tolerance = 1e-12;
  static double x[MOST], image[MOST], matrix[MOST * MOST];
  double *drawn = calloc(a->drawn + 1, sizeof *drawn);
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  const Dense dense = dense_lapack(0, 1, NULL);
  DenseMatrix spread;
  World world;
  CU_ASSERT_PTR_NOT_NULL_FATAL(drawn);
  CU_ASSERT_FATAL(m >= 1 && m <= MOST && problem->arms == m);
  CU_ASSERT_FATAL(!a->ops->matrix == !!a->ops->apply);
  rng_normal(&rng, d, x);
  if (a->ops->draw) a->ops->draw(a, 3, 0, drawn);
  if (a->ops->apply) a->ops->apply(a, drawn, x, image);
  CHECK_OK(world_create(problem, 0, 2, 2, &world));
  CHECK_OK(problem->ops->matrix(problem, 3, &dense, &spread));
  dense_gather(&dense, &spread, matrix);
  for (int k = 0; k < m; k++) {
    double sum = 0;
    for (int i = 0; i < d; i++) {
      sum += world.features[(k * d + i) * 2 + 1] * x[i];
      CHECK_NEAR(matrix[k * d + i], world.features[(k * d + i) * 2 + 1], tolerance);
    }
    if (a->ops->apply) CHECK_NEAR(image[k], sum, tolerance);
  }
  dense_matrix_destroy(&spread);
  world_destroy(&world);
  free(drawn);
}

static void test_every_operator(void) {
  static const int dimensions[] = {1, 4, 16, 64};
  for (size_t j = 0; j < sizeof dimensions / sizeof *dimensions; j++)
    for (int i = 0; operator_of(i); i++) {
      const int d = dimensions[j], rows = d / 2 + 1;
      const OperatorOps *ops = operator_of(i);
      const bool file = strcmp(ops->name, "file") == 0, spectrum = strcmp(ops->name, "spectrum") == 0;
      static double a[MOST * MOST];
      char keys[200];
      Rng rng = {.key = rng_key(2, RNG_TEST)};
      Problem problem;
      CU_ASSERT(ops->name[0] && ops->summary[0] && strcmp(operator_name(i), ops->name) == 0);
      rng_normal(&rng, rows * d, a);
      CHECK_OK(write_matrix(rows, d, a));
      snprintf(keys, sizeof keys, "operator: %s%s%s", ops->name, spectrum ? ", arms: 9" : "",
               file ? ", operator_file: operator_test.nc" : "");
      CHECK_OK(make(d, keys, &problem));
      check_operator(&problem);
      problem_destroy(&problem);
      unlink(PATH);
    }
}

/* Checks masks: a list gives its coordinates in rising order, a share that many of them, all equally likely
 * within five standard errors, others in each run and round. */
static void test_masks(void) {
  enum { D = 10, RUNS = 4000 };
  Problem problem;
  double drawn[D], y[D], total[D] = {0};
  static const double x[D] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK_OK(make(D, "operator: mask, observed: [7, 0, 4]", &problem));
  const Operator *a = problem.state;
  CU_ASSERT_EQUAL_FATAL(a->rows, 3);
  a->ops->draw(a, 0, 0, drawn);
  a->ops->apply(a, drawn, x, y);
  CU_ASSERT(y[0] == 0 && y[1] == 4 && y[2] == 7);
  problem_destroy(&problem);
  CHECK_OK(make(D, "operator: mask, observed: 0.3", &problem));
  a = problem.state;
  CU_ASSERT_EQUAL_FATAL(a->rows, 3);
  for (uint32_t run = 0; run < RUNS; run++) {
    double sum = 0;
    a->ops->draw(a, run / 2, run % 2, drawn);
    for (int i = 0; i < D; i++) {
      sum += drawn[i];
      total[i] += drawn[i];
    }
    CU_ASSERT_EQUAL(sum, 3);
  }
  for (int i = 0; i < D; i++) CHECK_NEAR(total[i] / RUNS, 0.3, 5 * sqrt(0.3 * 0.7 / RUNS));
  problem_destroy(&problem);
  CHECK_OK(make(D, "operator: mask, observed: 0.01", &problem));
  CU_ASSERT_EQUAL(problem.arms, 1);
  problem_destroy(&problem);
}

static void test_blurs(void) {
  for (size_t k = 0; k < sizeof golden_blurs / sizeof *golden_blurs; k++) {
    const GoldenBlur *golden = &golden_blurs[k];
    const int d = golden->side * golden->side;
    char keys[100];
    double y[GOLDEN_PIXELS];
    Problem problem;
    snprintf(keys, sizeof keys, "operator: blur, blur_width: %g", golden->width);
    CHECK_OK(make(d, keys, &problem));
    const Operator *a = problem.state;
    a->ops->apply(a, NULL, golden->picture, y);
    for (int i = 0; i < d; i++) CHECK_NEAR(y[i], golden->blurred[i], 1e-13);
    problem_destroy(&problem);
  }
}

static void check_refusal(int d, const char *keys, const char *part) {
  Problem problem;
  CHECK_FAILS(make(d, keys, &problem), STATUS_INPUT, part);
  problem_destroy(&problem);
}

static void test_refusals(void) {
  static const double a[] = {1, 2, 3, NAN};
  check_refusal(5, "operator: blur",
                "square pictures of at most 1000 x 1000 pixels; theta* has 5 dimensions");
  check_refusal(4, "operator: blur, observed: 0.25",
                "problem.observed: 0.25, but problem.operator is blur; only mask uses this key");
  check_refusal(4, "operator: blur, observed: [1, 2]",
                "problem.observed: [1, 2], but problem.operator is blur");
  check_refusal(4, "operator: mask, snr: 2", "problem.snr: 2, but problem.operator is mask; only spectrum");
  check_refusal(4, "operator: mask, singular_vectors: principal", "only spectrum uses this key");
  check_refusal(4, "blur_width: 2", "problem.blur_width: 2, but problem.operator is spectrum; only blur");
  check_refusal(4, "operator: mask, observed: [0, 4]", "coordinate 4; with 4 dimensions they are 0 to 3");
  check_refusal(4, "operator: mask, observed: [0, -1]", "coordinate -1");
  check_refusal(4, "operator: mask, observed: [2, 2]", "coordinate 2 is listed twice");
  check_refusal(4, "operator: mask, arms: 3", "problem.arms: 3, but problem.operator: mask has 2 rows in 4");
  check_refusal(4, "operator: file", "needs problem.operator_file");
  CHECK_OK(write_matrix(1, 3, a));
  check_refusal(4, "operator: file, operator_file: operator_test.nc",
                "operator_test.nc: 'a' has 3 columns, but theta* has 4 dimensions");
  CHECK_OK(write_matrix(2, 2, a));
  check_refusal(2, "operator: file, operator_file: operator_test.nc", "nan");
  unlink(PATH);
}

int main(void) {
  CU_TestInfo tests[] = {{"every operator", test_every_operator},
                         {"masks", test_masks},
                         {"blurs", test_blurs},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  return harness_run("operator", tests);
}
