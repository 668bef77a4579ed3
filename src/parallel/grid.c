#include "parallel/grid.h"

#include "core/arena.h"
#include "parallel/group.h"
#include "parallel/parallel_internal.h"

/* The functions of ScaLAPACK and BLACS used here; the libraries come without a header. In Fortran all
 * arguments are passed by reference, matrices are column-major, and indices begin at 1. A descriptor is {1,
 * context, rows, columns, row block, column block, first row, first column, local rows}. */

int Csys2blacs_handle(MPI_Comm communicator);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);

void pdgemm_(const char *transpose_a, const char *transpose_b, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *desc_a,
             const double *b, const int *ib, const int *jb, const int *desc_b, const double *beta, double *c,
             const int *ic, const int *jc, const int *desc_c);
void pdsyrk_(const char *triangle, const char *transpose, const int *n, const int *k, const double *alpha,
             const double *a, const int *ia, const int *ja, const int *desc_a, const double *beta, double *c,
             const int *ic, const int *jc, const int *desc_c);
void pdgeqrf_(const int *m, const int *n, double *a, const int *ia, const int *ja, const int *desc_a,
              double *tau, double *work, const int *lwork, int *info);
void pdorgqr_(const int *m, const int *n, const int *k, double *a, const int *ia, const int *ja,
              const int *desc_a, const double *tau, double *work, const int *lwork, int *info);
void pdsyevd_(const char *vectors, const char *triangle, const int *n, double *a, const int *ia,
              const int *ja, const int *desc_a, double *w, double *z, const int *iz, const int *jz,
              const int *desc_z, double *work, const int *lwork, int *iwork, const int *liwork, int *info);

static const int FIRST = 1; /* first row or column of a whole matrix */

typedef struct {
  int field[9];
} Descriptor;

static Descriptor scalapack_descriptor(const Dense *grid, const DenseMatrix *matrix) {
  return (Descriptor){{1, grid->context, matrix->rows, matrix->columns, grid->block, grid->block, 0, 0,
                       matrix->local_rows > 0 ? matrix->local_rows : 1}};
}

static void scalapack_multiply(const Dense *grid, double factor, bool transpose_a, const DenseMatrix *a,
                               bool transpose_b, const DenseMatrix *b, DenseMatrix *c) {
  const Descriptor of_a = scalapack_descriptor(grid, a), of_b = scalapack_descriptor(grid, b),
                   of_c = scalapack_descriptor(grid, c);
  const int inner = transpose_a ? a->rows : a->columns;
  const double zero = 0;
  pdgemm_(transpose_a ? "T" : "N", transpose_b ? "T" : "N", &c->rows, &c->columns, &inner, &factor, a->values,
          &FIRST, &FIRST, of_a.field, b->values, &FIRST, &FIRST, of_b.field, &zero, c->values, &FIRST, &FIRST,
          of_c.field);
}

static void scalapack_gram(const Dense *grid, double factor, const DenseMatrix *a, DenseMatrix *c) {
  const Descriptor of_a = scalapack_descriptor(grid, a), of_c = scalapack_descriptor(grid, c);
  const double zero = 0;
  pdsyrk_("L", "T", &c->rows, &a->rows, &factor, a->values, &FIRST, &FIRST, of_a.field, &zero, c->values,
          &FIRST, &FIRST, of_c.field);
}

/* Makes the columns of `a` orthonormal and writes the diagonal of R. Calls with size -1 ask for the size of
 * the workspace. */
static int scalapack_orthogonalise(const Dense *grid, DenseMatrix *a, double *diagonal) {
  const Descriptor of_a = scalapack_descriptor(grid, a);
  const int *n = &a->columns, *desc = of_a.field;
  double *tau, *work, first, second;
  int size = -1, info;
  pdgeqrf_(&a->rows, n, a->values, &FIRST, &FIRST, desc, NULL, &first, &size, &info);
  if (info == 0) pdorgqr_(&a->rows, n, n, a->values, &FIRST, &FIRST, desc, NULL, &second, &size, &info);
  if (info != 0) return info;
  size = (int)(first > second ? first : second);
  double short_of_memory =
      memory_new((void **)&tau, (size_t)a->local_columns + (size_t)size + 1, sizeof *tau) != STATUS_OK;
  grid->sum(1, &short_of_memory); /* no rank should begin alone */
  if (short_of_memory > 0) {
    free(tau);
    return DENSE_NO_MEMORY;
  }
  work = tau + a->local_columns + 1;
  pdgeqrf_(&a->rows, n, a->values, &FIRST, &FIRST, desc, tau, work, &size, &info);
  for (int j = 0; j < a->columns; j++) {
    const int block = j / grid->block, rest = j % grid->block;
    if (block % grid->grid_rows != grid->row || block % grid->grid_columns != grid->column) continue;
    /* Entry (j, j), which this rank holds, has the same offset within its block in both directions. */
    const int i = block / grid->grid_rows * grid->block + rest,
              k = block / grid->grid_columns * grid->block + rest;
    diagonal[j] = a->values[(size_t)k * (size_t)a->local_rows + (size_t)i];
  }
  if (info == 0) pdorgqr_(&a->rows, n, n, a->values, &FIRST, &FIRST, desc, tau, work, &size, &info);
  free(tau);
  return info;
}

static int scalapack_eigenvectors(const Dense *grid, DenseMatrix *a, double *w) {
  const Descriptor of_a = scalapack_descriptor(grid, a);
  const int *n = &a->rows, *desc = of_a.field;
  double *vectors = NULL, *work = NULL, needed;
  int *integers = NULL, size = -1, integer_size = -1, integer_count, info;
  pdsyevd_("V", "L", n, a->values, &FIRST, &FIRST, desc, w, NULL, &FIRST, &FIRST, desc, &needed, &size,
           &integer_count, &integer_size, &info);
  if (info != 0) return info;
  const size_t local = (size_t)a->local_rows * (size_t)a->local_columns;
  /* The size that pdsyevd asks for does not cover its own call of pdormtr: if blocks are large compared to
   * the matrix, pdormtr would refuse, and pdsyevd would return without eigenvectors and without an error. */
  size = (int)(needed + (double)grid->block * (a->local_rows + a->local_columns + 2 * grid->block));
  double short_of_memory =
      memory_new((void **)&vectors, local, sizeof *vectors) != STATUS_OK ||
      memory_new((void **)&work, (size_t)size, sizeof *work) != STATUS_OK ||
      memory_new((void **)&integers, (size_t)integer_count, sizeof *integers) != STATUS_OK;
  grid->sum(1, &short_of_memory); /* no rank should begin alone */
  if (short_of_memory > 0)
    info = DENSE_NO_MEMORY;
  else
    pdsyevd_("V", "L", n, a->values, &FIRST, &FIRST, desc, w, vectors, &FIRST, &FIRST, desc, work, &size,
             integers, &integer_count, &info);
  free(work);
  free(integers);
  free(a->values);
  a->values = vectors;
  return info;
}

static const DenseOps scalapack = {.name = "ScaLAPACK",
                                   .multiply = scalapack_multiply,
                                   .gram = scalapack_gram,
                                   .orthogonal = scalapack_orthogonalise,
                                   .eigen = scalapack_eigenvectors};

bool grid_is_available(void) { return true; }

Dense grid_create(int block) {
  const int ranks = group_size();
  int rows = 1;
  for (int r = 1; r * r <= ranks; r++)
    if (ranks % r == 0) rows = r;
  Dense grid = {
      .ops = &scalapack, .block = block, .rank = group_rank(), .ranks = ranks, .sum = group_sum_all};
  const int handle = Csys2blacs_handle(group_communicator());
  grid.context = handle;
  Cblacs_gridinit(&grid.context, "Row", rows, ranks / rows);
  Cfree_blacs_system_handle(handle);
  Cblacs_gridinfo(grid.context, &grid.grid_rows, &grid.grid_columns, &grid.row, &grid.column);
  return grid;
}

void grid_destroy(Dense *grid) { Cblacs_gridexit(grid->context); }
