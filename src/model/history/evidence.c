#include "model/history/evidence.h"

#include "core/linalg.h"
#include "core/matrix_lanes.h"

#include <math.h>
#include <string.h>

void evidence_basis_apply(const EvidenceBasis *basis, int d, int lanes, bool transpose, const double *x,
                          double *y) {
  if (basis->shared)
    linalg_multiply_shared(d, lanes, transpose, basis->u, x, y);
  else
    (transpose ? linalg_multiply_transposed_lanes : linalg_multiply_lanes)(d, lanes, basis->u, x, y);
}

void evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        EvidenceBasis *basis, double *q, double *b) {
  const int d = view->history->d, first_run = view->first / view->draws,
            runs = (view->first + view->lanes - 1) / view->draws - first_run + 1;
  const HistoryView each = {view->history, 1, first_run, runs, view->shift, view->scale};
  history_evidence(&each, matrix, column);
  if (root) {
    matrix_lanes_congruence(d, runs, true, root, matrix, basis->u);
    linalg_multiply_shared(d, runs, true, root, column, b);
    memcpy(column, b, (size_t)(d * runs) * sizeof *b);
  }
  linalg_eigen_lanes(d, runs, matrix, basis->u, q);
  for (int k = 0; k < d * runs; k++) q[k] = fmax(q[k], 0); /* rounding */
  linalg_multiply_transposed_lanes(d, runs, basis->u, column, b);
  history_repeat_runs(view, first_run, runs, d, q, matrix);
  history_repeat_runs(view, first_run, runs, d, b, matrix);
  basis->shared = runs == 1;
  if (!basis->shared) history_repeat_runs(view, first_run, runs, d * d, basis->u, matrix);
}

void evidence_decompose_lanes(const HistoryView *view, double *matrix, double *column, double *u, double *q,
                              double *b) {
  const int d = view->history->d;
  EvidenceBasis basis = {.u = u};
  evidence_decompose(view, NULL, matrix, column, &basis, q, b);
  if (basis.shared) history_repeat_runs(view, view->first / view->draws, 1, d * d, u, matrix);
}
