/* Low-rank factorisation of a sparse matrix of ratings by alternating least squares, as in Section 6.3 of the
 * DiffTS paper: with the mean rating subtracted, R_ij is approximately u_i' v_j, and
 *
 *   sum over ratings (R_ij - u_i' v_j)^2 + ridge (sum_i |u_i|^2 + sum_j |v_j|^2)
 *
 * is minimised in turn over all u and over all v. Given the other side, each row is a separate ridge
 * regression. */
#pragma once

#include "core/arena.h"
#include "problem/embedding/ratings.h"

#include <stdbool.h>

/* One side of the matrix, row by row: the entries of row r are start[r] .. start[r + 1] - 1. */
typedef struct {
  int rows, columns;
  int64_t *start; /* [rows + 1] */
  int *column; /* [entries], ascending within a row */
  double *value; /* [entries] */
} SparseRows;

/* Sorts the ratings by row and subtracts `mean`; rows are users, or items if `items`. */
Status embedding_factorisation_rows_create(Arena *memory, const Ratings *ratings, double mean, bool items,
                                           SparseRows *out);

typedef struct {
  int d; /* rank */
  double ridge;
  int sweeps; /* each updates all users, then all items */
  uint64_t seed; /* of the first item vectors, U(-1, 1) */
} FactorisationSetup;

typedef struct {
  int d, sweeps;
  double mean; /* of all ratings, subtracted */
  double *user, *item; /* [users, d], [items, d] */
  double *rmse; /* [sweeps], root mean squared residual after each sweep */
} Factorisation;

/* Factorises the ratings, with the result in `memory`; calls report(sweep, rmse) after each sweep, from 1. */
Status embedding_factorise(Arena *memory, const Ratings *ratings, const FactorisationSetup *setup,
                           void (*report)(int sweep, double rmse), Factorisation *out);

/* Draws out[rows, d] ~ U(-1, 1), row r from stream (FACTORISATION, run = r). */
void embedding_factorisation_start(const FactorisationSetup *setup, int rows, double *out);

/* Computes own[r] = argmin over w of sum_j (value_rj - w' other_j)^2 + ridge |w|^2 for every row, with
 * own[rows, d], other[columns, d] and scratch workspace[d, d]. */
void embedding_factorisation_update(const SparseRows *sparse, const FactorisationSetup *setup,
                                    const double *other, double *own, double *workspace);
