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

void evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        double *basis, double *q, double *b) {
  const int d = view->history->d, first_run = view->first / view->draws;
  const int runs = (view->first + view->lanes - 1) / view->draws - first_run + 1;
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
  evidence_repeat(view, d * d, first_run, runs, basis);
  evidence_repeat(view, d, first_run, runs, q);
  evidence_repeat(view, d, first_run, runs, b);
}
