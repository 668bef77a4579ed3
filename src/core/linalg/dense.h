/* Dense matrices that are too large for a copy per draw, and perhaps too large for one rank.
 *
 * A matrix is dealt out in square blocks, cyclically in both directions, to a grid of ranks (the block-cyclic
 * layout of ScaLAPACK; Blackford et al. 1997, ScaLAPACK users' guide). On a grid of one rank it is an
 * ordinary column-major matrix. One interface has two implementations: LAPACK on the first rank (here) and
 * ScaLAPACK on several (parallel/grid.c). They agree to rounding: the elements of random matrices are
 * numbered globally, and the signs that a factorisation leaves open are fixed.
 *
 * All functions that take a Dense are collective over its ranks, and all ranks get the same Status. Small
 * arrays are the same on all ranks and row-major: x[rows, n]. */
#pragma once

#include "core/rng.h"
#include "core/status.h"
#include "core/tiling.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Dense Dense;

typedef struct {
  int rows, columns;
  int local_rows, local_columns; /* of the part on this rank */
  double *values; /* [local_columns, local_rows]: columns are contiguous */
} DenseMatrix;

/* What differs between the implementations. An int result is LAPACK's info, or DENSE_NO_MEMORY. */
typedef struct {
  const char *name;
  void (*multiply)(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                   bool transpose_b, const DenseMatrix *b, DenseMatrix *c);
  void (*gram)(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c);
  /* a <- its orthogonal factor; diagonal[columns] gets the diagonal of R where it is on this rank, else 0. */
  int (*orthogonal)(const Dense *dense, DenseMatrix *a, double *diagonal);
  int (*eigen)(const Dense *dense, DenseMatrix *a, double *w);
} DenseOps;

enum { DENSE_NO_MEMORY = -1000000 };

struct Dense {
  const DenseOps *ops;
  int grid_rows, grid_columns, block;
  int row, column; /* place of this rank in the grid; row < 0: outside */
  int rank, ranks; /* among the ranks that `sum` adds up */
  int context; /* private to the implementation */
  /* Sums over all ranks, in place; all ranks get the same sums. */
  void (*sum)(size_t n, double *values);
};

/* Returns a Dense that uses LAPACK on the first of the ranks that `sum` adds up; the other ranks hold
 * nothing. On one rank `sum` may be NULL. */
Dense dense_lapack(int rank, int ranks, void (*sum)(size_t n, double *values));

/* Creates a matrix of zeros. The caller must call dense_matrix_destroy, also after a failure. */
Status dense_matrix_create(const Dense *dense, int rows, int columns, DenseMatrix *out);
void dense_matrix_destroy(DenseMatrix *matrix);
/* Returns the size of a matrix in bytes, over all ranks. */
double dense_bytes(double rows, double columns);

/* Sets element (i, j) to normal number j rows + i of the stream, counted from its position. */
void dense_fill_normal(const Dense *dense, Rng rng, DenseMatrix *matrix);
/* Multiplies column j by factor[j]. */
void dense_scale_columns(const Dense *dense, const double *factor, DenseMatrix *matrix);
/* Computes mean[rows], the mean of each row, and subtracts it from the elements of the row. */
void dense_centre(const Dense *dense, DenseMatrix *matrix, double *mean);
/* Returns the sum of the squares of all elements. */
double dense_square(const Dense *dense, const DenseMatrix *matrix);
/* Copies x[rows, columns] to the matrix, or the matrix to x. */
void dense_scatter(const Dense *dense, const double *x, DenseMatrix *matrix);
void dense_gather(const Dense *dense, const DenseMatrix *matrix, double *x);

/* Work on whole columns goes in rounds: in each round every rank gets up to DENSE_COLUMNS columns, which are
 * then exchanged. No rank ever holds more of the matrix than its own part and the columns of two rounds. */
enum { DENSE_COLUMNS = CHUNK_LANES };
typedef struct {
  int first, count; /* count is 0 if the rank has no columns in this round */
} DenseColumns;
int dense_rounds(const Dense *dense, int columns);
DenseColumns dense_columns(const Dense *dense, int columns, int round, int rank);
int dense_most_columns(const Dense *dense, int columns); /* per rank and round */
/* Copies each rank's columns x[rows, count] of the round to the matrix, or from the matrix to x. Needs
 * scratch[rows, dense_most_columns]. */
void dense_put_columns(const Dense *dense, int round, const double *x, double *scratch, DenseMatrix *matrix);
void dense_get_columns(const Dense *dense, int round, const DenseMatrix *matrix, double *scratch, double *x);

/* Computes C = factor A B, with A or B transposed on request (dgemm). */
void dense_multiply(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                    bool transpose_b, const DenseMatrix *b, DenseMatrix *c);
/* Computes y = A x or A' x for n vectors at once: x[columns or rows, n], and y[rows or columns, n]. */
Status dense_apply(const Dense *dense, bool transpose, const DenseMatrix *a, int n, const double *x,
                   double *y);
/* Computes the lower triangle of C = factor A' A; the rest of C is left alone (dsyrk). */
void dense_gram(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c);
/* Replaces a[rows, columns], rows >= columns, by the Q of A = Q R whose R has a positive diagonal, as
 * Gram-Schmidt would. For a matrix of normals, Q is uniform among all such matrices (dgeqrf; Mezzadri 2007,
 * Notices of the AMS 54). */
Status dense_orthogonal(const Dense *dense, DenseMatrix *a);
/* Decomposes a symmetric A = U diag(w) U' given by its lower triangle: a <- U, w[n] ascending (dsyevd).
 * The product of each eigenvector with one fixed random direction is positive. */
Status dense_eigen(const Dense *dense, DenseMatrix *a, double *w);
/* Combines the outcomes of all ranks: if one has failed, all fail. */
Status dense_agree(const Dense *dense, Status mine);
