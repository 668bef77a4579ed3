#include "model/history/history_subspace.h"

#include "core/linalg/linalg.h"

#include <float.h>
#include <math.h>

/* Returns the place of the largest of x[n]. */
static size_t subspace_largest(size_t n, const double *x) {
  size_t place = 0;
  for (size_t i = 1; i < n; i++)
    if (x[i] > x[place]) place = i;
  return place;
}

static double subspace_dot(size_t n, const double *x, const double *y) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

/* Factorises Lambda = F' F by Cholesky with pivoting, one row of factor[r, d] after the other, until nothing
 * is left; returns r. Scratch: left[d], what is left of the diagonal. */
static size_t subspace_factorise(size_t d, const double *lambda, double *left, double *factor) {
  for (size_t i = 0; i < d; i++) left[i] = lambda[i * d + i];
  const double least = (double)d * DBL_EPSILON * left[subspace_largest(d, left)];
  for (size_t r = 0; r < d; r++) {
    const size_t pivot = subspace_largest(d, left);
    double *row = factor + r * d;
    if (!(left[pivot] > least)) return r;
    const double root = sqrt(left[pivot]);
    for (size_t i = 0; i < d; i++) row[i] = lambda[pivot * d + i];
    for (size_t k = 0; k < r; k++)
      for (size_t i = 0; i < d; i++) row[i] -= factor[k * d + pivot] * factor[k * d + i];
    for (size_t i = 0; i < d; i++) {
      row[i] /= root;
      left[i] -= row[i] * row[i];
    }
    left[pivot] = 0;
  }
  return d;
}

Status history_subspace_find(Arena *memory, const HistoryView *view, Subspace *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)view->history->d;
  double *lambda, *factor, *b, *left;
  ASSERT(view->lanes == 1);
  *out = (Subspace){.d = (int)d};
  ALLOCATE_ARRAYS(&scratch, d * d, &lambda, &factor);
  ALLOCATE_ARRAYS(&scratch, d, &b, &left);
  const bool whole = history_evidence(view, lambda, b);
  ASSERT(whole);
  const size_t rank = subspace_factorise(d, lambda, left, factor);
  double *square, *axes, *eigenvalue; /* of F F', [r, r] */
  ALLOCATE_ARRAYS(&scratch, rank * rank, &square, &axes);
  ALLOCATE(&scratch, eigenvalue, rank);
  ALLOCATE(memory, out->direction, rank * d);
  ALLOCATE_ARRAYS(memory, rank, &out->value, &out->reward);
  for (size_t j = 0; j < rank; j++)
    for (size_t k = 0; k < rank; k++) square[j * rank + k] = subspace_dot(d, factor + j * d, factor + k * d);
  if (rank > 0) TRY(linalg_eigen((int)rank, square, axes, eigenvalue));
  history_residual(view, &out->residual);
  for (size_t k = rank; k-- > 0;) { /* eigenvalues come in rising order */
    if (!(eigenvalue[k] > 0)) continue;
    const size_t r = (size_t)out->rank++;
    double *direction = out->direction + r * d;
    out->value[r] = sqrt(eigenvalue[k]);
    for (size_t j = 0; j < rank; j++)
      for (size_t i = 0; i < d; i++) direction[i] += axes[j * rank + k] / out->value[r] * factor[j * d + i];
    out->reward[r] = subspace_dot(d, direction, b) / out->value[r];
    out->residual -= out->reward[r] * out->reward[r];
  }
  out->residual = fmax(out->residual, 0);
  return STATUS_OK;
}
