/* The sums over rows behind history_passes.c; compiled once for each instruction level (core/simd.h). v3 and
 * v4 give the same bits. */
#pragma once

#include "model/history/history_internal.h"

#include <stddef.h>

/* The tiles of at most TILE_LANES lanes. The arrays of a call begin at the first of these lanes, and their
 * rows are `stride` apart. */
typedef struct {
  const History *history;
  const HistoryRows *rows; /* its content */
  int run; /* of the first lane */
  bool shared; /* all lanes belong to `run`; else lane n belongs to run + n, and `run` begins a column */
  int count; /* lanes */
  size_t stride;
  const double *shift, *scale; /* theta = shift + scale z; may be NULL */
} HistoryColumn;

/* Computes sums: deviance[..] and, with respect to theta, the gradient[d, ..] of the log likelihood and the
 * lower triangle of precision[d, d, ..]; each may be NULL, but precision needs the gradient. reach: the
 * largest |phi' scale step| of each lane. marginals: for history_visit_marginals, the sums of slope phi and,
 * in the lower triangle, of curvature phi phi', with covariance[d, d, ..] in coordinates z; never shared. */
void history_kernel_sums(const HistoryColumn *column, const double *z, double *deviance, double *gradient,
                         double *precision);
void history_kernel_reach(const HistoryColumn *column, const double *step, double *reach);
void history_kernel_marginals(const HistoryColumn *column, int lane, const double *mean,
                              const double *covariance, HistoryVisit *visit, void *context, double *vector,
                              double *precision);
