/* What the observations of a run say about theta, in the fewest numbers.
 *
 * Let X be the rows over their noise and y the rewards over it, X = U S V' with r = rank(X) <= min(n, d). The
 * log likelihood is -|S V' theta - U' y|^2 / 2 up to a constant: r numbers U' y, each with noise of standard
 * deviation 1, of the products with the r rows of S V'. All other directions of theta are as the prior has
 * them. The history keeps the evidence Lambda = X'X, b = X'y, which is enough: V and S^2 are its eigenvectors
 * and eigenvalues above 0. With any other likelihood theta is seen in the same directions V: X = (X V) V', so
 * that it depends on V' theta alone. */
#pragma once

#include "model/history/history.h"

typedef struct {
  int d, rank; /* r */
  double *direction; /* [r, d]: V', rows of length 1 */
  double *value; /* [r] > 0, falling: S; 1 if the likelihood is not conjugate */
  double *reward; /* [r]: U' y; 0 if the likelihood is not conjugate */
  double residual; /* |y|^2 - |U' y|^2 >= 0; likewise, but with r = 0 the deviance */
} Subspace;

/* Finds the subspace of a view of one lane, in its coordinates. Directions whose eigenvalue is below d times
 * the rounding error of the largest count as unseen. Errors: STATUS_INTERNAL. */
Status history_subspace_find(Arena *memory, const HistoryView *view, Subspace *out);
/* Computes out[r, n] = V' x for n lanes x[d, n], and adds V y[r, n] to x[d, n]. */
void history_subspace_project(const Subspace *self, int n, const double *x, double *out);
void history_subspace_add(const Subspace *self, int n, const double *y, double *x);
/* Creates the same observations of coordinates x, for a history that keeps rows: x = axis[m, d] (theta /
 * scale), with the scale of a view of one lane, and axes, rows of length 1, that span the subspace. */
Status history_subspace_rows(Arena *memory, const HistoryView *view, int m, const double *axis, History *out);

/* Coordinates x = axis theta: m >= rank orthonormal rows axis[m, d], the first of which are the directions
 * that are seen. */
typedef struct {
  const Subspace *seen;
  int m;
  const double *axis;
} SeenAxes;
/* Creates a history of one run with what this view of one lane, in theta, says about x, `temper` included:
 * all of it. With `diagonal` the likelihood must be conjugate, and there are no matrices. */
Status history_project(Arena *memory, const HistoryView *view, SeenAxes axes, bool diagonal, History *out);
