/* Passes over the rows of a history at given points, which likelihoods that are not conjugate use instead of
 * evidence. A call is cut into columns of tiles; history_kernel.c computes the sums. */
#include "core/simd.h"
#include "model/history/history_kernel.h"

#include <math.h>
#include <string.h>

/* Returns the lanes from `first` of the view on that are processed together: draws of a single run or, with
 * one draw per run, a column of the history. */
static HistoryColumn history_column_at(const HistoryView *view, int first) {
  const int draws = view->draws, lane = view->first + first, left = view->lanes - first;
  int count = draws == 1 ? TILE_LANES : draws - lane % draws;
  count = count < TILE_LANES ? count : TILE_LANES;
  return (HistoryColumn){.history = view->history,
                         .rows = history_rows(view->history),
                         .run = lane / draws,
                         .shared = draws > 1,
                         .count = count < left ? count : left,
                         .stride = (size_t)view->lanes,
                         .shift = view->shift,
                         .scale = view->scale};
}

static void history_check_tile_view(const HistoryView *view) {
  history_check_view(view);
  ASSERT(view->draws > 1 || view->first % TILE_LANES == 0);
}

/* Converts derivatives from theta to z, multiplies them by `temper`, and fills the upper triangle;
 * `precision` may be NULL. */
SIMD_CLONES
static void scale_derivatives(const HistoryColumn *column, double temper, double *gradient,
                              double *precision) {
  const double *scale = column->scale;
  const size_t d = (size_t)column->history->d, stride = column->stride;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    for (int n = 0; n < column->count; n++) gradient[i * stride + (size_t)n] *= temper * s_i;
    for (size_t j = 0; precision && j <= i; j++) {
      double s_ij = temper * s_i * (scale ? scale[j] : 1);
      double *low = precision + (i * d + j) * stride, *high = precision + (j * d + i) * stride;
      for (int n = 0; n < column->count; n++) high[n] = low[n] *= s_ij;
    }
  }
}

void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision) {
  history_check_tile_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryColumn column = history_column_at(view, first);
    if (!settled || memchr(settled + first, false, (size_t)column.count)) { /* any lane is not settled */
      double *own = precision ? precision + first : NULL;
      history_kernel_sums(&column, z + first, NULL, gradient + first, own);
      scale_derivatives(&column, view->history->temper, gradient + first, own);
    }
    first += column.count;
  }
}

void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient) {
  const double temper = view->history->temper, *excess = history_rows(view->history)->excess;
  history_check_tile_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryColumn column = history_column_at(view, first);
    double *own = gradient ? gradient + first : NULL;
    history_kernel_sums(&column, z + first, log_likelihood + first, own, NULL);
    if (gradient) scale_derivatives(&column, temper, own, NULL);
    first += column.count;
  }
  for (int n = 0; n < view->lanes; n++)
    log_likelihood[n] = -0.5 * temper * (log_likelihood[n] + excess[(view->first + n) / view->draws]);
}

bool history_rows_are_single(const History *history) {
  return history->ops == &history_form_rows && history->temper == 1 && !history_rows(history)->discounted;
}

double history_excess(const HistoryView *view, int lane) {
  const HistoryRows *rows = history_rows(view->history);
  return 0.5 * view->history->temper * rows->excess[(view->first + lane) / view->draws];
}

void history_reach(const HistoryView *view, const double *step, double enough, double *reach) {
  history_check_tile_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryColumn column = history_column_at(view, first);
    double bound[TILE_LANES], *found = reach + first; /* |phi| |theta step| */
    bool all = true;
    for (int n = 0; n < column.count; n++) {
      double square = 0;
      for (int i = 0; i < view->history->d; i++) {
        const double move = (view->scale ? view->scale[i] : 1) * step[i * view->lanes + first + n];
        square += move * move;
      }
      bound[n] = column.rows->longest[column.run + (column.shared ? 0 : n)] * sqrt(square);
      all = all && bound[n] <= enough;
    }
    if (!all) history_kernel_reach(&column, step + first, found);
    /* A lane whose bound is small enough keeps it, so that the lane does not depend on its neighbours in the
     * column. */
    for (int n = 0; n < column.count; n++)
      if (bound[n] <= enough) found[n] = bound[n];
    first += column.count;
  }
}

/* Converts the evidence from theta to z, fills the upper triangle, and adds precision mean to vector. */
SIMD_CLONES
static void history_complete_evidence(const HistoryColumn *column, const double *mean, double *vector,
                                      double *precision) {
  const size_t d = (size_t)column->history->d, stride = column->stride, count = (size_t)column->count;
  scale_derivatives(column, 1, vector, precision);
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++)
      for (size_t n = 0; n < count; n++)
        vector[i * stride + n] += precision[(i * d + j) * stride + n] * mean[j * stride + n];
}

void history_visit_marginals(const HistoryView *view, const double *mean, const double *covariance,
                             HistoryVisit *visit, void *context, double *precision, double *vector) {
  history_check_tile_view(view);
  ASSERT(view->draws == 1);
  for (int first = 0; first < view->lanes;) {
    HistoryColumn column = history_column_at(view, first);
    history_kernel_marginals(&column, first, mean + first, covariance + first, visit, context, vector + first,
                             precision + first);
    history_complete_evidence(&column, mean + first, vector + first, precision + first);
    first += column.count;
  }
}
