/* Passes over the rows of a history at given points, which likelihoods that are not conjugate use instead of
 * evidence; compiled once for each instruction level (core/simd.h). v3 and v4 give the same bits. Lanes of
 * the same run share its rows; the result for a lane does not depend on the other lanes. */
#pragma once

#include "model/history/history.h"

/* Computes, at z[d, lanes], gradient[d, lanes] of the log likelihood with respect to z and, unless it is
 * NULL, minus its Hessian, precision[d, d, lanes]. Columns of tiles in which every settled[lanes] is true are
 * left unchanged (NULL: none is). */
void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision);
/* Does the work of history_log_likelihood. */
void history_passes_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                                   double *gradient);
/* The rows of a tile, whose u = phi' theta ~ N(mean, variance): for cells [n] a visitor computes the slope
 * and minus the curvature in u of a Gaussian log factor, at the mean. Cell k is in lane `lane` + k %
 * TILE_LANES of the view, whose lanes end at `lanes`. Each cell has counts (0: no row) and rewards as in a
 * history, and two numbers that are kept from pass to pass, lambda and nu (ep.h). */
typedef struct {
  int n, lane, lanes;
  const double *y, *counts, *mean, *variance;
  double *lambda, *nu, *slope, *curvature;
} HistoryMarginals;
typedef void HistoryVisit(void *context, const HistoryMarginals *cells);
/* Makes one pass over all rows under theta ~ N(mean, covariance), in the coordinates of the view, draws = 1:
 * precision[d, d, lanes] = sum of curvature phi phi' and vector[d, lanes] = precision mean + sum of slope
 * phi. */
void history_visit_marginals(const HistoryView *view, const double *mean, const double *covariance,
                             HistoryVisit *visit, void *context, double *precision, double *vector);
/* Computes reach[lanes]: the most by which a step[d, lanes] in z moves phi' theta, over all observations. It
 * is the upper bound |phi| |theta step| if that is at most `enough`; otherwise the exact maximum, which takes
 * a pass over the rows of the tiles. */
void history_reach(const HistoryView *view, const double *step, double enough, double *reach);
