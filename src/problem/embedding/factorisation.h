/* Low-rank factorisation of a sparse matrix of ratings by alternating least squares, as in Section 6.3 of the
 * DiffTS paper: with the mean rating subtracted, R_ij is about u_i' v_j, and
 *
 *   sum over ratings (R_ij - u_i' v_j)^2 + ridge (sum_i |u_i|^2 + sum_j |v_j|^2)
 *
 * is minimised in turn over all u and over all v. Given the other side, every row is a ridge regression of
 * its own, so rows may be updated anywhere and in any order; src/parallel/factorise.c spreads them over
 * ranks. */
#ifndef PROBLEM_EMBEDDING_FACTORISATION_H
#define PROBLEM_EMBEDDING_FACTORISATION_H

#include "problem/embedding/ratings.h"

#include <stdbool.h>

/* One side of the matrix, row by row: the entries of row r are [start[r], start[r + 1]). */
typedef struct {
  int rows, columns;
  int64_t *start; /* [rows + 1] */
  int *column; /* [entries], ascending within a row */
  double *value; /* [entries] */
} SparseRows;

/* The ratings less `mean`; rows are users, or items when `items`. The caller ends with sparse_rows_free. */
Status sparse_rows_create(const Ratings *ratings, double mean, bool items, SparseRows *out);
void sparse_rows_free(SparseRows *sparse);

typedef struct {
  int d; /* rank */
  double ridge;
  int sweeps; /* each: all users, then all items */
  uint64_t seed; /* of the first item vectors, U(-1, 1) */
} FactorisationSetup;

/* out[rows, d] ~ U(-1, 1), row r from stream (FACTORISATION, run = r). */
void factorisation_start(const FactorisationSetup *setup, int rows, double *out);

/* own[r] = argmin over w of sum_j (value_rj - w' other_j)^2 + ridge |w|^2 for the rows [first, last); own is
 * [rows, d], other [columns, d]. workspace[d, d]. */
void factorisation_update(const SparseRows *sparse, const FactorisationSetup *setup, int first, int last,
                          const double *other, double *own, double *workspace);

/* Sum of squared residuals of each of the rows [first, last): out[rows]. */
void factorisation_residuals(const SparseRows *sparse, int d, int first, int last, const double *other,
                             const double *own, double *out);

#endif
