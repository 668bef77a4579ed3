/* Dense matrices too large for a copy in every draw, and perhaps for one rank.
 *
 * A matrix is dealt out in square blocks, round and round in both directions, to a grid of ranks (the
 * block-cyclic layout of ScaLAPACK; Blackford et al. 1997, ScaLAPACK users' guide). On a grid of one rank it
 * is an ordinary column-major matrix. One interface, two implementations: LAPACK on the first rank here,
 * ScaLAPACK on all ranks in parallel/grid.c. Both give the same results to rounding: random matrices are
 * numbered by their global elements, and the signs of what a factorisation leaves open are fixed.
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
  int local_rows, local_columns; /* what is here */
  double *values; /* [local_columns, local_rows]: columns are contiguous */
} DenseMatrix;

/* What differs between the implementations. An int is LAPACK's info, or DENSE_NO_MEMORY. */
typedef struct {
  const char *name;
  void (*multiply)(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                   bool transpose_b, const DenseMatrix *b, DenseMatrix *c);
  void (*gram)(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c);
  /* a <- its orthogonal factor; diagonal[columns] of R where it is here, else 0. */
  int (*orthogonal)(const Dense *dense, DenseMatrix *a, double *diagonal);
  int (*eigen)(const Dense *dense, DenseMatrix *a, double *w);
} DenseOps;

enum { DENSE_NO_MEMORY = -1000000 };

struct Dense {
  const DenseOps *ops;
  int grid_rows, grid_columns, block;
  int row, column; /* place of this rank in the grid; row < 0: outside */
  int rank, ranks; /* of those that `sum` adds up */
  int context; /* of the implementation */
  /* Sum over all ranks, in place; the same on all. */
  void (*sum)(size_t n, double *values);
};

/* Uses LAPACK on the first of the ranks that `sum` adds up; the others hold nothing. On one rank `sum` may
 * be NULL. */
Dense dense_lapack(int rank, int ranks, void (*sum)(size_t n, double *values));

/* Creates a matrix of zeros. The caller ends with dense_matrix_destroy, also after a failure. */
Status dense_matrix_create(const Dense *dense, int rows, int columns, DenseMatrix *out);
void dense_matrix_destroy(DenseMatrix *matrix);
/* Returns the bytes of a matrix over all ranks. */
double dense_bytes(double rows, double columns);

/* Sets element (i, j) to normal number j rows + i of the stream, from its position on. */
void dense_fill_normal(const Dense *dense, Rng rng, DenseMatrix *matrix);
/* Multiplies column j by factor[j]. */
void dense_scale_columns(const Dense *dense, const double *factor, DenseMatrix *matrix);
/* Computes mean[rows] <- the mean of each row, which is taken from its elements. */
void dense_centre(const Dense *dense, DenseMatrix *matrix, double *mean);
/* Returns the sum of the squares of all elements. */
double dense_square(const Dense *dense, const DenseMatrix *matrix);
/* Computes matrix <- x[rows, columns]; x <- matrix. */
void dense_scatter(const Dense *dense, const double *x, DenseMatrix *matrix);
void dense_gather(const Dense *dense, const DenseMatrix *matrix, double *x);

/* Work on whole columns goes in rounds: in each, every rank has some, at most DENSE_COLUMNS; then they change
 * hands. No rank ever holds more of the matrix than its part and the columns of two rounds. */
enum { DENSE_COLUMNS = CHUNK_LANES };
typedef struct {
  int first, count; /* 0: this rank has none in this round */
} DenseColumns;
int dense_rounds(const Dense *dense, int columns);
DenseColumns dense_columns(const Dense *dense, int columns, int round, int rank);
int dense_most_columns(const Dense *dense, int columns); /* of a rank in a round */
/* Computes matrix <- each rank's columns x[rows, count] of the round; x <- matrix. scratch[rows,
 * dense_most_columns]. */
void dense_put_columns(const Dense *dense, int round, const double *x, double *scratch, DenseMatrix *matrix);
void dense_get_columns(const Dense *dense, int round, const DenseMatrix *matrix, double *scratch, double *x);

/* Computes C = factor A B, each of A and B transposed where asked for (dgemm). */
void dense_multiply(const Dense *dense, double factor, bool transpose_a, const DenseMatrix *a,
                    bool transpose_b, const DenseMatrix *b, DenseMatrix *c);
/* Computes y = A x or A' x for n vectors at once: x[columns or rows, n], y likewise. */
Status dense_apply(const Dense *dense, bool transpose, const DenseMatrix *a, int n, const double *x,
                   double *y);
/* Computes the lower triangle of C = factor A' A; the rest of C is left (dsyrk). */
void dense_gram(const Dense *dense, double factor, const DenseMatrix *a, DenseMatrix *c);
/* Replaces a[rows, columns], rows >= columns, by the Q of A = Q R in which R has a positive diagonal: what
 * Gram and Schmidt would make of its columns. For normals it is uniform among all (dgeqrf; Mezzadri 2007,
 * Notices of the AMS 54). */
Status dense_orthogonal(const Dense *dense, DenseMatrix *a);
/* Decomposes a symmetric A = U diag(w) U' given by its lower triangle: a <- U, w[n] ascending (dsyevd).
 * The product of each eigenvector with one fixed random direction is positive. */
Status dense_eigen(const Dense *dense, DenseMatrix *a, double *w);
/* Shares every rank's outcome; when one has failed, all fail. */
Status dense_agree(const Dense *dense, Status mine);
