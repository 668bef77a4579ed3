/* Dense algebra on a grid of ranks against LAPACK on one rank, against Gram-Schmidt, and against its
 * definitions. Sizes are not multiples of the blocks. */
#include "core/arena.h"
#include "core/linalg/dense.h"
#include "harness_mpi.h"
#include "parallel/grid.h"
#include "problem/rotation.h"

#include <string.h>

static const int SIZES[][2] = {{37, 5}, {64, 7}, {64, 64}, {37, 64}, {20, 3}}; /* n, block */
enum { CASES = 5, MOST = 64 * 64 };

static const Rng STREAM = {.key = {{3, 4}}, .run = 1, .position = 100};

/* The elements of a matrix of normals, stored both ways; x[rows, columns] is row-major. */
typedef struct {
  Dense dense;
  DenseMatrix matrix;
} Side;

static Side make(Dense dense, int rows, int columns) {
  Side side = {.dense = dense};
  CHECK_OK(dense_matrix_create(&side.dense, rows, columns, &side.matrix));
  dense_fill_normal(&side.dense, STREAM, &side.matrix);
  return side;
}

static void gather(const Side *side, double *x) { dense_gather(&side->dense, &side->matrix, x); }

/* Returns the largest difference of n numbers. */
static double difference(int n, const double *a, const double *b) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs(a[i] - b[i]));
  return most;
}

static void test_elements(void) {
  for (int c = 0; c < CASES; c++) {
    const int n = SIZES[c][0], columns = n - 3;
    static double x[MOST], y[MOST], stream[MOST], factor[64];
    Dense grid = grid_create(SIZES[c][1]);
    Side a = make(grid, n, columns);
    Rng rng = STREAM;
    rng_normal(&rng, n * columns, stream);
    gather(&a, x);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < columns; j++) CHECK_NEAR(x[i * columns + j], stream[j * n + i], 0);
    for (int j = 0; j < columns; j++) factor[j] = j - 2;
    dense_scale_columns(&grid, factor, &a.matrix);
    gather(&a, y);
    for (int k = 0; k < n * columns; k++) CHECK_NEAR(y[k], x[k] * (k % columns - 2), 0);
    dense_scatter(&grid, x, &a.matrix);
    gather(&a, y);
    CHECK_NEAR(difference(n * columns, x, y), 0, 0);
    dense_matrix_destroy(&a.matrix);
    grid_destroy(&grid);
  }
}

/* Checks the parts of a matrix that ranks hold: together they are the whole, and none is larger than its
 * share of the rows and columns plus a block in each direction. */
static void test_shares(void) {
  static const int SHAPES[][2] = {{1000, 1000}, {1000, 130}, {37, 1000}, {3, 2}};
  for (int c = 0; c < 8; c++) {
    const int rows = SHAPES[c / 2][0], columns = SHAPES[c / 2][1], block = c % 2 ? 64 : 7;
    Dense grid = grid_create(block);
    DenseMatrix matrix;
    CHECK_OK(dense_matrix_create(&grid, rows, columns, &matrix));
    double elements = (double)matrix.local_rows * matrix.local_columns;
    CU_ASSERT_TRUE(matrix.local_rows <= rows / grid.grid_rows + block);
    CU_ASSERT_TRUE(matrix.local_columns <= columns / grid.grid_columns + block);
    parallel_sum_all(1, &elements);
    CHECK_NEAR(elements, (double)rows * columns, 0);
    dense_matrix_destroy(&matrix);
    grid_destroy(&grid);
  }
}

/* Checks that each round takes every column to one rank and back, and the quantities that are computed over
 * all elements. */
static void test_columns(void) {
  enum { ROWS = 7, MOST_COLUMNS = 600 };
  static const int COLUMNS[] = {1, 3, 64, 65, 257, 600}, BLOCKS[] = {5, 64};
  static double x[ROWS * MOST_COLUMNS], found[ROWS * MOST_COLUMNS];
  static double mine[ROWS * DENSE_COLUMNS], back[ROWS * DENSE_COLUMNS], scratch[ROWS * DENSE_COLUMNS];
  for (int c = 0; c < 12; c++) {
    const int n = COLUMNS[c / 2], size = ROWS * n;
    Dense grid = grid_create(BLOCKS[c % 2]),
          one = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
    const Dense *const sides[] = {&grid, &one};
    for (int k = 0; k < size; k++) x[k] = sin(k);
    for (int s = 0; s < 2; s++) {
      const int most = dense_most_columns(sides[s], n);
      int next = 0, largest = 0;
      double mean[ROWS], square = 0;
      Side a = make(*sides[s], ROWS, n);
      for (int round = 0; round < dense_rounds(sides[s], n); round++) {
        for (int r = 0; r < parallel_size(); r++) {
          const DenseColumns columns = dense_columns(sides[s], n, round, r);
          CU_ASSERT_EQUAL(columns.first, next);
          CU_ASSERT_TRUE(columns.count >= 0 && columns.count <= DENSE_COLUMNS);
          largest = columns.count > largest ? columns.count : largest;
          next += columns.count;
        }
        const DenseColumns columns = dense_columns(sides[s], n, round, parallel_rank());
        for (int i = 0; i < ROWS; i++)
          for (int k = 0; k < columns.count; k++) mine[i * columns.count + k] = x[i * n + columns.first + k];
        dense_put_columns(sides[s], round, mine, scratch, &a.matrix);
        dense_get_columns(sides[s], round, &a.matrix, scratch, back);
        CHECK_NEAR(difference(ROWS * columns.count, mine, back), 0, 0);
      }
      CU_ASSERT_EQUAL(next, n);
      CU_ASSERT_EQUAL(largest, most);
      gather(&a, found);
      CHECK_NEAR(difference(size, x, found), 0, 0);
      for (int k = 0; k < size; k++) square += x[k] * x[k];
      CHECK_NEAR(dense_square(sides[s], &a.matrix), square, 1e-12 * size);
      dense_centre(sides[s], &a.matrix, mean);
      gather(&a, found);
      for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += x[i * n + k];
        CHECK_NEAR(mean[i], sum / n, 1e-14);
        for (int k = 0; k < n; k++) CHECK_NEAR(found[i * n + k], x[i * n + k] - sum / n, 1e-14);
      }
      dense_matrix_destroy(&a.matrix);
    }
    grid_destroy(&grid);
  }
}

/* Checks A B, A' B, A B' and A' A, element by element. */
static void test_products(void) {
  for (int c = 0; c < CASES; c++) {
    const int n = SIZES[c][0], m = n - 4;
    static double a_values[MOST], b_values[MOST], found[MOST], thin[64 * 3], applied[64 * 3];
    Dense grid = grid_create(SIZES[c][1]);
    Side a = make(grid, n, m), b = make(grid, m, n), product = make(grid, n, n), small = make(grid, m, m);
    gather(&a, a_values);
    gather(&b, b_values);
    dense_multiply(&grid, 0.5, false, &a.matrix, false, &b.matrix, &product.matrix);
    gather(&product, found);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int k = 0; k < m; k++) sum += a_values[i * m + k] * b_values[k * n + j];
        CHECK_NEAR(found[i * n + j], 0.5 * sum, 1e-12 * n);
      }
    dense_multiply(&grid, 1, true, &a.matrix, true, &b.matrix, &small.matrix);
    gather(&small, found);
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += a_values[k * m + i] * b_values[j * n + k];
        CHECK_NEAR(found[i * m + j], sum, 1e-12 * n);
      }
    dense_gram(&grid, 2, &a.matrix, &small.matrix);
    gather(&small, found);
    for (int i = 0; i < m; i++)
      for (int j = 0; j <= i; j++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += a_values[k * m + i] * a_values[k * m + j];
        CHECK_NEAR(found[i * m + j], 2 * sum, 1e-12 * n);
      }
    for (int k = 0; k < n * 3; k++) thin[k] = sin(k);
    CHECK_OK(dense_apply(&grid, true, &a.matrix, 3, thin, applied));
    for (int j = 0; j < m; j++)
      for (int s = 0; s < 3; s++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += a_values[k * m + j] * thin[k * 3 + s];
        CHECK_NEAR(applied[j * 3 + s], sum, 1e-12 * n);
      }
    dense_matrix_destroy(&a.matrix);
    dense_matrix_destroy(&b.matrix);
    dense_matrix_destroy(&product.matrix);
    dense_matrix_destroy(&small.matrix);
    grid_destroy(&grid);
  }
}

/* Checks that the orthogonal factor is that of Gram-Schmidt, and so the same on any grid: square and tall. */
static void test_orthogonal(void) {
  for (int c = 0; c < CASES; c++)
    for (int columns = SIZES[c][0]; columns > 0; columns -= 15) {
      const int n = SIZES[c][0];
      static double found[MOST], rows[MOST];
      Dense grid = grid_create(SIZES[c][1]),
            one = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
      Rng rng = STREAM;
      rotation_draw(&rng, columns, n, rows);
      const Dense *const sides[] = {&grid, &one};
      for (int s = 0; s < 2; s++) {
        Side a = make(*sides[s], n, columns);
        CHECK_OK(dense_orthogonal(sides[s], &a.matrix));
        gather(&a, found);
        for (int i = 0; i < n; i++)
          for (int j = 0; j < columns; j++) CHECK_NEAR(found[i * columns + j], rows[j * n + i], 1e-10);
        dense_matrix_destroy(&a.matrix);
      }
      grid_destroy(&grid);
    }
}

/* Compares the eigenvectors of A = G' G / n + diag(i) by grid and by LAPACK: values, and vectors with their
 * signs; checks that A u = w u. */
static void test_eigenvectors(void) {
  for (int c = 0; c < CASES; c++) {
    const int n = SIZES[c][0];
    static double matrix[MOST], vectors[2][MOST], w[2][64];
    Dense grid = grid_create(SIZES[c][1]),
          one = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
    const Dense *const sides[] = {&grid, &one};
    for (int s = 0; s < 2; s++) {
      const Dense *dense = sides[s];
      Side g = make(*dense, n, n), a = make(*dense, n, n);
      dense_gram(dense, 1.0 / n, &g.matrix, &a.matrix);
      gather(&a, matrix);
      for (int i = 0; i < n; i++) {
        matrix[i * n + i] += i;
        for (int j = 0; j < i; j++) matrix[j * n + i] = matrix[i * n + j];
      }
      dense_scatter(dense, matrix, &a.matrix);
      CHECK_OK(dense_eigen(dense, &a.matrix, w[s]));
      gather(&a, vectors[s]);
      for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
          double sum = 0;
          for (int j = 0; j < n; j++) sum += matrix[i * n + j] * vectors[s][j * n + k];
          CHECK_NEAR(sum, w[s][k] * vectors[s][i * n + k], 1e-11);
        }
      dense_matrix_destroy(&g.matrix);
      dense_matrix_destroy(&a.matrix);
    }
    CHECK_NEAR(difference(n, w[0], w[1]), 0, 1e-10);
    CHECK_NEAR(difference(n * n, vectors[0], vectors[1]), 0, 1e-10);
    grid_destroy(&grid);
  }
}

/* Fails on the last rank of the grid only, in place of LAPACK. */
static int fail_on_last(const Dense *dense, DenseMatrix *a, double *w) {
  (void)a, (void)w;
  return dense->row == dense->grid_rows - 1 && dense->column == dense->grid_columns - 1 ? 7 : 0;
}

/* Checks that all ranks learn of a failure, with one kind of error. */
static void test_failure(void) {
  Dense grid = grid_create(5), one = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all);
  const Dense *const sides[] = {&grid, &one};
  for (int s = 0; s < 2; s++) {
    Dense failing = *sides[s];
    DenseOps ops = *failing.ops;
    double w[20];
    ops.eigen = fail_on_last;
    failing.ops = &ops;
    Side a = make(failing, 20, 20);
    CHECK_FAILS(dense_eigen(&failing, &a.matrix, w), STATUS_INPUT, "dsyevd of a 20 x 20 matrix failed");
    dense_matrix_destroy(&a.matrix);
  }
  grid_destroy(&grid);
}

int main(void) {
  CU_TestInfo tests[] = {{"elements", test_elements},
                         {"shares of the ranks", test_shares},
                         {"columns in rounds", test_columns},
                         {"products", test_products},
                         {"orthogonal factors", test_orthogonal},
                         {"eigenvectors", test_eigenvectors},
                         {"a failure on one rank", test_failure},
                         CU_TEST_INFO_NULL};
  return mpi_harness_main("dense", tests);
}
