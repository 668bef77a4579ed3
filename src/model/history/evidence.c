#include "model/history/evidence.h"

#include "core/linalg.h"
#include "core/matrix_lanes.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Repeats x[rows, runs] into x[rows, n], in place: from the end, where a target is never before its
 * source. */
static void evidence_repeat(const HistoryView *view, int rows, int first_run, int runs, double *x) {
  for (int k = rows - 1; k >= 0; k--)
    for (int n = view->lanes - 1; n >= 0; n--)
      x[(size_t)k * (size_t)view->lanes + (size_t)n] =
          x[(size_t)k * (size_t)runs + (size_t)((view->first + n) / view->draws - first_run)];
}

void evidence_basis_apply(const EvidenceBasis *basis, int d, int lanes, bool transpose, const double *x,
                          double *y) {
  if (basis->shared)
    linalg_multiply_shared(d, lanes, transpose, basis->u, x, y);
  else
    (transpose ? linalg_multiply_transposed_lanes : linalg_multiply_lanes)(d, lanes, basis->u, x, y);
}

static int runs_of(const HistoryView *view) {
  return (view->first + view->lanes - 1) / view->draws - view->first / view->draws + 1;
}

/* Decomposes with a basis for each run: basis[d, d, runs]. */
static void decompose_runs(const HistoryView *view, const double *root, double *matrix, double *column,
                           double *basis, double *q, double *b) {
  const int d = view->history->d, first_run = view->first / view->draws, runs = runs_of(view);
  const HistoryView each = {view->history, 1, first_run, runs, view->shift, view->scale};
  history_evidence(&each, matrix, column);
  if (root) {
    matrix_lanes_congruence(d, runs, true, root, matrix, basis);
    matrix_lanes_apply(d, runs, true, root, column, b);
    memcpy(column, b, (size_t)(d * runs) * sizeof *b);
  }
  linalg_eigen_lanes(d, runs, matrix, basis, q);
  for (int k = 0; k < d * runs; k++) q[k] = fmax(q[k], 0); /* rounding */
  linalg_multiply_transposed_lanes(d, runs, basis, column, b);
  evidence_repeat(view, d, first_run, runs, q);
  evidence_repeat(view, d, first_run, runs, b);
}

void evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        EvidenceBasis *basis, double *q, double *b) {
  const int d = view->history->d, runs = runs_of(view);
  decompose_runs(view, root, matrix, column, basis->u, q, b);
  basis->shared = runs == 1;
  if (!basis->shared) evidence_repeat(view, d * d, view->first / view->draws, runs, basis->u);
}

void evidence_decompose_lanes(const HistoryView *view, double *matrix, double *column, double *basis,
                              double *q, double *b) {
  const int d = view->history->d;
  decompose_runs(view, NULL, matrix, column, basis, q, b);
  evidence_repeat(view, d * d, view->first / view->draws, runs_of(view), basis);
}
