/* Passes over the rows of a history at given points: what a likelihood that is not conjugate has in place of
 * evidence. A call is cut into strips of lanes; history_kernel.c does the sums. */
#include "core/simd.h"
#include "core/status.h"
#include "model/history_kernel.h"

#include <math.h>

/* The strip that begins at lane `first` of the view. It never spans two runs that have several draws each;
 * with one draw for each run it is a strip of the history. */
static HistoryStrip strip_at(const HistoryView *view, int first) {
  const int draws = view->draws, lane = view->first + first, left = view->lanes - first;
  int count = draws == 1 ? HISTORY_STRIP : draws - lane % draws;
  count = count < HISTORY_STRIP ? count : HISTORY_STRIP;
  return (HistoryStrip){.history = view->history,
                        .rows = history_rows(view->history),
                        .run = lane / draws,
                        .shared = draws > 1,
                        .count = count < left ? count : left,
                        .stride = (size_t)view->lanes,
                        .shift = view->shift,
                        .scale = view->scale};
}

static void check_view(const HistoryView *view) {
  history_check_view(view);
  ASSERT(view->draws > 1 || view->first % HISTORY_STRIP == 0);
}

/* From theta to z, tempered, and the upper triangle. */
SIMD_CLONES
static void scale_derivatives(const HistoryStrip *strip, double *gradient, double *precision) {
  const double *scale = strip->scale, temper = strip->history->temper;
  const size_t d = (size_t)strip->history->d, stride = strip->stride;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    for (int n = 0; n < strip->count; n++) gradient[i * stride + (size_t)n] *= temper * s_i;
    for (size_t j = 0; j <= i; j++) {
      double s_ij = temper * s_i * (scale ? scale[j] : 1);
      double *low = precision + (i * d + j) * stride, *high = precision + (j * d + i) * stride;
      for (int n = 0; n < strip->count; n++) high[n] = low[n] *= s_ij;
    }
  }
}

static bool all_settled(int count, const bool *settled) {
  for (int n = 0; n < count; n++)
    if (!settled[n]) return false;
  return true;
}

void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision) {
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryStrip strip = strip_at(view, first);
    if (!settled || !all_settled(strip.count, settled + first)) {
      SIMD_CALL(history_kernel_derivatives, &strip, z + first, gradient + first, precision + first);
      scale_derivatives(&strip, gradient + first, precision + first);
    }
    first += strip.count;
  }
}

void history_deviance(const HistoryView *view, const double *z, double *deviance, double *gradient) {
  const size_t d = (size_t)view->history->d, stride = (size_t)view->lanes;
  const double temper = view->history->temper, *excess = history_rows(view->history)->excess;
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryStrip strip = strip_at(view, first);
    SIMD_CALL(history_kernel_deviance, &strip, z + first, deviance + first,
              gradient ? gradient + first : NULL);
    first += strip.count;
  }
  for (int n = 0; n < view->lanes; n++) deviance[n] += excess[(view->first + n) / view->draws];
  for (size_t n = 0; n < stride; n++) deviance[n] *= temper;
  for (size_t i = 0; gradient && i < d; i++)
    for (size_t n = 0; n < stride; n++)
      gradient[i * stride + n] *= temper * (view->scale ? view->scale[i] : 1);
}

/* |phi| |theta step| of every lane, at most; returns whether all are at most `enough`. */
static bool bound_reach(const HistoryStrip *strip, const double *step, double enough, double *reach) {
  bool all = true;
  for (int n = 0; n < strip->count; n++) {
    double square = 0;
    for (int i = 0; i < strip->history->d; i++) {
      double move = (strip->scale ? strip->scale[i] : 1) * step[(size_t)i * strip->stride + (size_t)n];
      square += move * move;
    }
    reach[n] = strip->rows->longest[strip->run + (strip->shared ? 0 : n)] * sqrt(square);
    all = all && reach[n] <= enough;
  }
  return all;
}

void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient) {
  history_deviance(view, z, log_likelihood, gradient);
  for (int n = 0; n < view->lanes; n++) log_likelihood[n] *= -0.5;
}

void history_reach(const HistoryView *view, const double *step, double enough, double *reach) {
  check_view(view);
  for (int first = 0; first < view->lanes;) {
    HistoryStrip strip = strip_at(view, first);
    double bound[HISTORY_STRIP], *found = reach + first;
    if (!bound_reach(&strip, step + first, enough, bound))
      SIMD_CALL(history_kernel_reach, &strip, step + first, found);
    /* A lane whose bound is enough keeps the bound, so that it does not depend on its neighbours in the
     * strip. */
    for (int n = 0; n < strip.count; n++)
      if (bound[n] <= enough) found[n] = bound[n];
    first += strip.count;
  }
}
