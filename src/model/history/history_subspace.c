#include "model/history/history_subspace.h"

#include "core/linalg/linalg.h"

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

/* Factorises lambda[d, d], which is overwritten, by Cholesky with pivoting, until nothing is left. */
static Status subspace_factorise(Arena *memory, int d, double *lambda, Rows *out) {
  SCRATCH_ARENA(scratch);
  const size_t size = (size_t)d;
  int *pivot;
  double largest = 0;
  ALLOCATE(&scratch, pivot, size);
  for (size_t i = 0; i < size; i++) largest = fmax(largest, lambda[i * (size + 1)]);
  const int info =
      LAPACKE_dpstrf(LAPACK_ROW_MAJOR, 'U', d, lambda, d, pivot, &out->n, d * DBL_EPSILON * largest);
  if (info < 0) return status_set(STATUS_INTERNAL, "dpstrf of a %d x %d matrix: info = %d", d, d, info);
  if (largest == 0) out->n = 0;
  ALLOCATE(memory, out->factor, (size_t)out->n * size);
  for (size_t k = 0; k < (size_t)out->n; k++)
    for (size_t i = k; i < size; i++) out->factor[k * size + (size_t)pivot[i] - 1] = lambda[k * size + i];
  return STATUS_OK;
}

/* Reads the observations of the run as rows. */
static Status subspace_read_rows(Arena *memory, const HistoryView *view, Rows *out) {
  const int run = view->first / view->draws;
  const size_t d = (size_t)view->history->d;
  ASSERT(!view->shift && !view->scale);
  out->n = history_observations(view->history, run);
  ALLOCATE(memory, out->factor, (size_t)out->n * d);
  for (int l = 0; l < out->n; l++) history_observation(view->history, run, l, 1, out->factor + (size_t)l * d);
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
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, d, rows->n, 1, rows->factor, d, 0, lambda, d);
  return subspace_factorise(memory, d, lambda, rows);
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
  if (n == 0) return STATUS_OK;
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
    out->value[r] = sqrt(eigenvalue[k]);
    for (size_t i = 0; i < (size_t)d; i++) direction[i] = turned[k * (size_t)d + i] / out->value[r];
    out->reward[r] = cblas_ddot(d, direction, 1, b, 1) / out->value[r];
    out->residual -= out->reward[r] * out->reward[r];
  }
  out->residual = fmax(out->residual, 0);
  return STATUS_OK;
}
