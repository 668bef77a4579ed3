#include "core/linalg/dense.h"

#include "core/arena.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* ---- layout */

/* Returns how many of n rows (or columns) are at place p of `places`. */
static int dense_local_count(int n, int block, int p, int places) {
  if (p < 0) return 0;
  const int blocks = n / block, rest = blocks % places;
  return blocks / places * block + (p < rest ? block : p == rest ? n % block : 0);
}

static int dense_global_index(int local, int block, int p, int places) {
  return (local / block * places + p) * block + local % block;
}

static int dense_global_row(const Dense *dense, int local) {
  return dense_global_index(local, dense->block, dense->row, dense->grid_rows);
}
static int dense_global_column(const Dense *dense, int local) {
  return dense_global_index(local, dense->block, dense->column, dense->grid_columns);
}

static double *dense_column_of(const DenseMatrix *matrix, int j) {
  return matrix->values + (size_t)j * (size_t)matrix->local_rows;
}

Status dense_agree(const Dense *dense, Status mine) {
  double failed = mine != STATUS_OK;
  dense->sum(1, &failed);
  if (mine != STATUS_OK || failed == 0) return mine;
  return status_set(STATUS_INTERNAL, "another rank failed or ran out of memory");
}

Status dense_matrix_create(const Dense *dense, int rows, int columns, DenseMatrix *out) {
  *out = (DenseMatrix){.rows = rows,
                       .columns = columns,
                       .local_rows = dense_local_count(rows, dense->block, dense->row, dense->grid_rows),
                       .local_columns =
                           dense_local_count(columns, dense->block, dense->column, dense->grid_columns)};
  return dense_agree(dense,
                     memory_new((void **)&out->values, (size_t)out->local_rows * (size_t)out->local_columns,
                                sizeof *out->values));
}

void dense_matrix_destroy(DenseMatrix *matrix) {
  free(matrix->values);
  *matrix = (DenseMatrix){0};
}

double dense_bytes(double rows, double columns) { return rows * columns * sizeof(double); }

/* ---- elements */

/* Fills in block by block. Two normals come from one counter value, so a block may begin with the second one.
 */
void dense_fill_normal(const Dense *dense, Rng rng, DenseMatrix *matrix) {
  for (int j = 0; j < matrix->local_columns; j++)
    for (int i = 0; i < matrix->local_rows; i += dense->block) {
      const int64_t first =
          (int64_t)dense_global_column(dense, j) * matrix->rows + dense_global_row(dense, i);
      const int left = matrix->local_rows - i, count = left < dense->block ? left : dense->block;
      const int odd = (int)(first % 2);
      double *out = dense_column_of(matrix, j) + i, pair[2];
      Rng own = rng;
      own.position += (uint32_t)(first / 2);
      if (odd) rng_normal(&own, 2, pair), out[0] = pair[1];
      rng_normal(&own, count - odd, out + odd);
    }
}

void dense_scale_columns(const Dense *dense, const double *factor, DenseMatrix *matrix) {
  for (int j = 0; j < matrix->local_columns; j++) {
    const double by = factor[dense_global_column(dense, j)];
    double *column = dense_column_of(matrix, j);
    for (int i = 0; i < matrix->local_rows; i++) column[i] *= by;
  }
}

void dense_centre(const Dense *dense, DenseMatrix *matrix, double *mean) {
  memset(mean, 0, (size_t)matrix->rows * sizeof *mean);
  for (int j = 0; j < matrix->local_columns; j++)
    for (int i = 0; i < matrix->local_rows; i++)
      mean[dense_global_row(dense, i)] += dense_column_of(matrix, j)[i] / matrix->columns;
  dense->sum((size_t)matrix->rows, mean);
  for (int j = 0; j < matrix->local_columns; j++)
    for (int i = 0; i < matrix->local_rows; i++)
      dense_column_of(matrix, j)[i] -= mean[dense_global_row(dense, i)];
}

double dense_square(const Dense *dense, const DenseMatrix *matrix) {
  double sum = 0;
  for (int j = 0; j < matrix->local_columns; j++)
    for (int i = 0; i < matrix->local_rows; i++)
      sum += dense_column_of(matrix, j)[i] * dense_column_of(matrix, j)[i];
  dense->sum(1, &sum);
  return sum;
}

/* Copies x[rows, count] to columns first .. first + count - 1 of the matrix, or (below) those columns to
 * x. */
static void dense_scatter_columns(const Dense *dense, int first, int count, const double *x,
                                  DenseMatrix *matrix) {
  for (int j = 0; j < matrix->local_columns; j++) {
    const int k = dense_global_column(dense, j) - first;
    if (k < 0 || k >= count) continue;
    for (int i = 0; i < matrix->local_rows; i++)
      dense_column_of(matrix, j)[i] = x[(size_t)dense_global_row(dense, i) * (size_t)count + (size_t)k];
  }
}

static void dense_gather_columns(const Dense *dense, int first, int count, const DenseMatrix *matrix,
                                 double *x) {
  const size_t size = (size_t)matrix->rows * (size_t)count;
  memset(x, 0, size * sizeof *x);
  for (int j = 0; j < matrix->local_columns; j++) {
    const int k = dense_global_column(dense, j) - first;
    if (k < 0 || k >= count) continue;
    for (int i = 0; i < matrix->local_rows; i++)
      x[(size_t)dense_global_row(dense, i) * (size_t)count + (size_t)k] = dense_column_of(matrix, j)[i];
  }
  dense->sum(size, x);
}

void dense_scatter(const Dense *dense, const double *x, DenseMatrix *matrix) {
  dense_scatter_columns(dense, 0, matrix->columns, x, matrix);
}

void dense_gather(const Dense *dense, const DenseMatrix *matrix, double *x) {
  dense_gather_columns(dense, 0, matrix->columns, matrix, x);
}

/* ---- columns in rounds */

int dense_rounds(const Dense *dense, int columns) {
  const int most = dense->ranks * DENSE_COLUMNS;
  return columns / most + (columns % most > 0);
}

/* Divides the columns among all rounds and ranks, in shares that differ by at most one, and returns the share
 * of `rank` in `round`. */
DenseColumns dense_columns(const Dense *dense, int columns, int round, int rank) {
  const int64_t shares = (int64_t)dense_rounds(dense, columns) * dense->ranks,
                share = (int64_t)round * dense->ranks + rank;
  const int first = (int)(columns * share / shares);
  return (DenseColumns){first, (int)(columns * (share + 1) / shares) - first};
}

int dense_most_columns(const Dense *dense, int columns) {
  const int shares = dense_rounds(dense, columns) * dense->ranks;
  return columns / shares + (columns % shares > 0);
}

void dense_put_columns(const Dense *dense, int round, const double *x, double *scratch, DenseMatrix *matrix) {
  for (int r = 0; r < dense->ranks; r++) {
    const DenseColumns columns = dense_columns(dense, matrix->columns, round, r);
    const size_t size = (size_t)matrix->rows * (size_t)columns.count;
    if (r == dense->rank)
      memcpy(scratch, x, size * sizeof *x);
    else
      memset(scratch, 0, size * sizeof *x);
    dense->sum(size, scratch);
    dense_scatter_columns(dense, columns.first, columns.count, scratch, matrix);
  }
}

void dense_get_columns(const Dense *dense, int round, const DenseMatrix *matrix, double *scratch, double *x) {
  for (int r = 0; r < dense->ranks; r++) {
    const DenseColumns columns = dense_columns(dense, matrix->columns, round, r);
    dense_gather_columns(dense, columns.first, columns.count, matrix, scratch);
    if (r == dense->rank) memcpy(x, scratch, (size_t)matrix->rows * (size_t)columns.count * sizeof *x);
  }
}

/* ---- algebra */

void dense_multiply(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                    bool transpose_b, const DenseMatrix *b, DenseMatrix *c) {
  ASSERT((transpose_a ? a->columns : a->rows) == c->rows);
  ASSERT((transpose_b ? b->rows : b->columns) == c->columns);
  ASSERT((transpose_a ? a->rows : a->columns) == (transpose_b ? b->columns : b->rows));
  if (dense->row >= 0) dense->ops->multiply(dense, factor, transpose_a, a, transpose_b, b, c);
}

Status dense_apply(const Dense *dense, bool transpose, const DenseMatrix *a, int n, const double *x,
                   double *y) {
  DenseMatrix from = {0}, to = {0};
  Status status = dense_matrix_create(dense, transpose ? a->rows : a->columns, n, &from);
  if (status == STATUS_OK) status = dense_matrix_create(dense, transpose ? a->columns : a->rows, n, &to);
  if (status == STATUS_OK) {
    dense_scatter(dense, x, &from);
    dense_multiply(dense, 1, transpose, a, false, &from, &to);
    dense_gather(dense, &to, y);
  }
  dense_matrix_destroy(&from);
  dense_matrix_destroy(&to);
  return status;
}

void dense_gram(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c) {
  ASSERT(c->rows == a->columns && c->columns == a->columns);
  if (dense->row >= 0) dense->ops->gram(dense, factor, a, c);
}

/* Turns the `info` of LAPACK's routine `name` on this rank into a Status; ranks outside the grid pass 0. All
 * ranks return the same kind of failure, since a run that cannot be computed is recorded, while a lack of
 * memory ends the job. */
static Status dense_check_lapack_info(const Dense *dense, const char *name, const DenseMatrix *matrix,
                                      int info) {
  double failed[2] = {info == DENSE_NO_MEMORY, info != DENSE_NO_MEMORY && info != 0};
  dense->sum(2, failed);
  if (failed[0] > 0)
    return status_set(STATUS_INTERNAL, "out of memory in %s of a %d x %d matrix", name, matrix->rows,
                      matrix->columns);
  if (failed[1] > 0)
    return status_set(STATUS_INPUT, "%s of a %d x %d matrix failed with info = %d", name, matrix->rows,
                      matrix->columns, info);
  return STATUS_OK;
}

Status dense_orthogonal(const Dense *dense, DenseMatrix *a) {
  ASSERT(a->rows >= a->columns);
  double *diagonal;
  const size_t columns = (size_t)a->columns;
  TRY(dense_agree(dense, memory_new((void **)&diagonal, columns, sizeof *diagonal)));
  Status status = dense_check_lapack_info(dense, "dgeqrf", a,
                                          dense->row < 0 ? 0 : dense->ops->orthogonal(dense, a, diagonal));
  dense->sum(columns, diagonal);
  for (size_t j = 0; j < columns; j++) diagonal[j] = diagonal[j] < 0 ? -1 : 1;
  if (status == STATUS_OK) dense_scale_columns(dense, diagonal, a);
  free(diagonal);
  return status;
}

/* Computes sign[columns], the sign of each column's product with normals from a fixed stream; direction[rows]
 * is scratch. */
static void dense_column_signs(const Dense *dense, const DenseMatrix *matrix, double *direction,
                               double *sign) {
  Rng rng = {.key = rng_key(0, RNG_DIRECTION)};
  rng_normal(&rng, matrix->rows, direction);
  for (int j = 0; j < matrix->local_columns; j++) {
    const double *column = dense_column_of(matrix, j);
    double sum = 0;
    for (int i = 0; i < matrix->local_rows; i++) sum += column[i] * direction[dense_global_row(dense, i)];
    sign[dense_global_column(dense, j)] = sum;
  }
  dense->sum((size_t)matrix->columns, sign);
  for (int j = 0; j < matrix->columns; j++) sign[j] = sign[j] < 0 ? -1 : 1;
}

Status dense_eigen(const Dense *dense, DenseMatrix *a, double *w) {
  ASSERT(a->rows == a->columns);
  double *scratch;
  const size_t n = (size_t)a->rows;
  TRY(dense_agree(dense, memory_new((void **)&scratch, 2 * n, sizeof *scratch)));
  memset(w, 0, n * sizeof *w);
  Status status =
      dense_check_lapack_info(dense, "dsyevd", a, dense->row < 0 ? 0 : dense->ops->eigen(dense, a, w));
  if (dense->row != 0 || dense->column != 0) memset(w, 0, n * sizeof *w);
  dense->sum(n, w);
  if (status == STATUS_OK) {
    dense_column_signs(dense, a, scratch, scratch + n);
    dense_scale_columns(dense, scratch + n, a);
  }
  free(scratch);
  return status;
}

/* ---- LAPACK on one rank */

static void lapack_multiply(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                            bool transpose_b, const DenseMatrix *b, DenseMatrix *c) {
  (void)dense;
  cblas_dgemm(CblasColMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
              c->rows, c->columns, transpose_a ? a->rows : a->columns, factor, a->values, a->rows, b->values,
              b->rows, 0, c->values, c->rows);
}

static void lapack_gram(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c) {
  (void)dense;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, a->columns, a->rows, factor, a->values, a->rows, 0,
              c->values, c->rows);
}

static int lapack_orthogonal(const Dense *dense, DenseMatrix *a, double *diagonal) {
  (void)dense;
  double *tau;
  if (memory_new((void **)&tau, (size_t)a->columns, sizeof *tau) != STATUS_OK) return DENSE_NO_MEMORY;
  int info = LAPACKE_dgeqrf(LAPACK_COL_MAJOR, a->rows, a->columns, a->values, a->rows, tau);
  for (int j = 0; j < a->columns; j++) diagonal[j] = dense_column_of(a, j)[j];
  if (info == 0)
    info = LAPACKE_dorgqr(LAPACK_COL_MAJOR, a->rows, a->columns, a->columns, a->values, a->rows, tau);
  free(tau);
  return info == LAPACK_WORK_MEMORY_ERROR ? DENSE_NO_MEMORY : info;
}

static int lapack_eigen(const Dense *dense, DenseMatrix *a, double *w) {
  (void)dense;
  const int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', a->rows, a->values, a->rows, w);
  return info == LAPACK_WORK_MEMORY_ERROR ? DENSE_NO_MEMORY : info;
}

static const DenseOps lapack = {.name = "LAPACK on one rank",
                                .multiply = lapack_multiply,
                                .gram = lapack_gram,
                                .orthogonal = lapack_orthogonal,
                                .eigen = lapack_eigen};

static void dense_sum_one_rank(size_t n, double *values) {
  (void)n;
  (void)values;
}

Dense dense_lapack(int rank, int ranks, void (*sum)(size_t n, double *values)) {
  return (Dense){.ops = &lapack,
                 .grid_rows = 1,
                 .grid_columns = 1,
                 .block = 64, /* any value: there is only one place */
                 .row = rank == 0 ? 0 : -1,
                 .column = rank == 0 ? 0 : -1,
                 .rank = rank,
                 .ranks = ranks,
                 .sum = sum ? sum : dense_sum_one_rank};
}
