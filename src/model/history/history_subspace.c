#include "model/history/history_subspace.h"

#include "core/linalg/linalg.h"
#include "model/history/history_internal.h"
#include "model/history/history_passes.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Rows whose products sum to Lambda = F' F: factor[n, d]. */
typedef struct {
  int n;
  double *factor;
} Rows;

/* Factorises lambda[d, d], which is overwritten, by Cholesky with pivoting, until nothing is left. Only its
 * lower triangle is read, which is LAPACK's upper one. */
static Status subspace_factorise(Arena *memory, int d, double *lambda, Rows *out) {
  SCRATCH_ARENA(scratch);
  const size_t size = (size_t)d;
  int *pivot;
  double largest = 0;
  ALLOCATE(&scratch, pivot, size);
  for (size_t i = 0; i < size; i++) largest = fmax(largest, lambda[i * (size + 1)]);
  const int info =
      LAPACKE_dpstrf(LAPACK_COL_MAJOR, 'U', d, lambda, d, pivot, &out->n, d * DBL_EPSILON * largest);
  if (info < 0) return status_set(STATUS_INTERNAL, "dpstrf of a %d x %d matrix: info = %d", d, d, info);
  if (largest == 0) out->n = 0;
  ALLOCATE(memory, out->factor, (size_t)out->n * size);
  for (size_t k = 0; k < (size_t)out->n; k++)
    for (size_t i = k; i < size; i++) out->factor[k * size + (size_t)pivot[i] - 1] = lambda[i * size + k];
  return STATUS_OK;
}

/* Reads phi[d] of a row that is kept, in the coordinates of the view. */
static void subspace_read_row(const HistoryView *view, int l, double *phi) {
  history_rows_read(view->history, view->first / view->draws, l, phi);
  if (!view->scale) return;
  for (int i = 0; i < view->history->d; i++) phi[i] *= view->scale[i];
}

static Status subspace_read_rows(Arena *memory, const HistoryView *view, Rows *out) {
  const size_t d = (size_t)view->history->d;
  out->n = history_rows(view->history)->length[view->first / view->draws];
  ALLOCATE(memory, out->factor, (size_t)out->n * d);
  for (int l = 0; l < out->n; l++) subspace_read_row(view, l, out->factor + (size_t)l * d);
  return STATUS_OK;
}

/* Finds F, with no more rows than columns, and b of the evidence, which is 0 if rows are kept. */
static Status subspace_find_rows(Arena *memory, const HistoryView *view, Rows *rows, double *b) {
  SCRATCH_ARENA(scratch);
  const int d = view->history->d;
  double *lambda;
  memset(b, 0, (size_t)d * sizeof *b);
  if (!likelihood_is_conjugate(view->history->likelihood)) {
    TRY(subspace_read_rows(memory, view, rows));
    if (rows->n <= d) return STATUS_OK;
  }
  ALLOCATE(&scratch, lambda, (size_t)d * (size_t)d);
  if (likelihood_is_conjugate(view->history->likelihood))
    history_evidence(view, lambda, b);
  else
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, d, rows->n, 1, rows->factor, d, 0, lambda, d);
  return subspace_factorise(memory, d, lambda, rows);
}

/* Finds the deviance of observations of which no direction is seen. */
static Status subspace_find_deviance(const HistoryView *view, double *out) {
  SCRATCH_ARENA(scratch);
  double *anywhere, value;
  if (likelihood_is_conjugate(view->history->likelihood)) return STATUS_OK;
  ALLOCATE(&scratch, anywhere, view->history->d);
  history_log_likelihood(view, anywhere, &value, NULL);
  *out = -2 * value;
  return STATUS_OK;
}

Status history_subspace_find(Arena *memory, const HistoryView *view, Subspace *out) {
  SCRATCH_ARENA(scratch);
  const int d = view->history->d;
  double *b, *square, *axes, *eigenvalue, *turned; /* of F F', [n, n]; axes' F, [n, d] */
  Rows rows = {0};
  ASSERT(view->lanes == 1);
  *out = (Subspace){.d = d};
  if (view->history->rounds == 0) return STATUS_OK;
  ALLOCATE(&scratch, b, d);
  TRY(subspace_find_rows(&scratch, view, &rows, b));
  const size_t n = (size_t)rows.n;
  ALLOCATE_ARRAYS(&scratch, n * n, &square, &axes);
  ALLOCATE(&scratch, eigenvalue, n);
  ALLOCATE(&scratch, turned, n * (size_t)d);
  ALLOCATE(memory, out->direction, n * (size_t)d);
  ALLOCATE_ARRAYS(memory, n, &out->value, &out->reward);
  history_residual(view, &out->residual);
  if (n == 0) return subspace_find_deviance(view, &out->residual);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows.n, rows.n, d, 1, rows.factor, d, rows.factor, d,
              0, square, rows.n);
  TRY(linalg_eigen(rows.n, square, axes, eigenvalue));
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows.n, d, rows.n, 1, axes, rows.n, rows.factor, d, 0,
              turned, d);
  const double least = d * DBL_EPSILON * eigenvalue[n - 1];
  for (size_t k = n; k-- > 0;) { /* eigenvalues come in rising order */
    if (!(eigenvalue[k] > least)) continue;
    const size_t r = (size_t)out->rank++;
    double *direction = out->direction + r * (size_t)d;
    const double value = sqrt(eigenvalue[k]);
    for (size_t i = 0; i < (size_t)d; i++) direction[i] = turned[k * (size_t)d + i] / value;
    out->value[r] = likelihood_is_conjugate(view->history->likelihood) ? value : 1;
    out->reward[r] = cblas_ddot(d, direction, 1, b, 1) / value;
    out->residual -= out->reward[r] * out->reward[r];
  }
  out->residual = fmax(out->residual, 0);
  if (out->rank == 0) TRY(subspace_find_deviance(view, &out->residual));
  return STATUS_OK;
}

void history_subspace_project(const Subspace *self, int n, const double *x, double *out) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, self->rank, n, self->d, 1, self->direction, self->d,
              x, n, 0, out, n);
}

void history_subspace_add(const Subspace *self, int n, const double *y, double *x) {
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, self->d, n, self->rank, 1, self->direction, self->d, y,
              n, 1, x, n);
}

Status history_subspace_rows(Arena *memory, const HistoryView *view, int m, const double *axis,
                             History *out) {
  SCRATCH_ARENA(scratch);
  const History *from = view->history;
  const int d = from->d, run = view->first / view->draws,
            count = from->rounds > 0 ? history_rows(from)->length[run] : 0;
  double *phi, *along;
  ALLOCATE(&scratch, phi, d);
  ALLOCATE(&scratch, along, m);
  TRY(history_create(memory, m, 1, from->likelihood, out));
  TRY(history_reserve(out, count > 0 ? count : 1));
  for (int l = 0; l < count; l++) {
    subspace_read_row(view, l, phi);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, axis, d, phi, 1, 0, along, 1);
    history_rows_copy(from, run, l, along, out);
  }
  if (from->rounds > 0) history_rows_finish(from, run, out);
  return STATUS_OK;
}

/* ---- in fewer coordinates */

/* Creates the evidence of x: it is that of the seen directions, and nothing in the others. */
static Status subspace_project_evidence(Arena *memory, const HistoryView *view, SeenAxes axes, bool diagonal,
                                        History *out) {
  SCRATCH_ARENA(scratch);
  const Subspace *seen = axes.seen;
  const int m = axes.m, count = history_observations(view->history, view->first / view->draws);
  double *q, *b, *state, squares = seen->residual;
  ALLOCATE_ARRAYS(&scratch, m, &q, &b);
  for (int k = 0; k < seen->rank; k++) {
    q[k] = seen->value[k] * seen->value[k];
    b[k] = seen->value[k] * seen->reward[k];
    squares += seen->reward[k] * seen->reward[k];
  }
  if (diagonal) {
    const DiagonalEvidence evidence = {
        .d = m, .observations = count, .q = q, .b = b, .reward_squares = squares};
    return history_create_diagonal(memory, &evidence, view->history->likelihood, out);
  }
  TRY(history_create(memory, m, 1, view->history->likelihood, out));
  TRY(history_reserve(out, 0));
  ALLOCATE(&scratch, state, history_state(out));
  double *upper = state, *rest = state + m * (m + 1) / 2;
  for (int i = 0; i < m; upper += m - i, i++) upper[0] = q[i];
  memcpy(rest, b, (size_t)m * sizeof *b);
  rest[m] = squares;
  history_load(out, 0, count, state);
  return STATUS_OK;
}

Status history_project(Arena *memory, const HistoryView *view, SeenAxes axes, bool diagonal, History *out) {
  ASSERT(view->lanes == 1 && !view->shift && !view->scale);
  return likelihood_is_conjugate(view->history->likelihood)
             ? subspace_project_evidence(memory, view, axes, diagonal, out)
             : history_subspace_rows(memory, view, axes.m, axes.axis, out);
}
