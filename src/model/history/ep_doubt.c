#include "model/history/ep_doubt.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"

#include <string.h>

/* Shares of a Gaussian's precision below which its curvature is too small. In 300 posteriors of clicks and
 * counts under N(0, 2^2 I) to N(0, 9^2 I) the moments were off by up to 0.05 standard deviations and 10%
 * above 0.8, by 0.2 and 20% between that and 0.5, and by 0.25 and 35% below, although widened. With 1 000
 * clicks of 0 the share is 0.64 under a prior N(0, 3^2), where candidates are right, 0.36 under N(0, 5^2),
 * and below 0.2 under N(0, 10^2). */
static const double DOUBTFUL = 0.8, NARROW = 0.5;
/* Share from which on the moments were off by less than 0.04 standard deviations and 5%, the error of the
 * reference included. */
static const double EXACT = 0.9;

/* Returns the squared distance of a lane's mean from the mode, in standard deviations at the mode. */
static double ep_square_from_mode(const Ep *ep, int lanes, int n, const Irls *irls, const double *mode) {
  double square = 0;
  for (int i = 0; i < ep->d; i++) {
    double sum = 0;
    for (int j = i; j < ep->d; j++)
      sum +=
          irls->factor[(j * ep->d + i) * lanes + n] * (ep->settled_mean[j * lanes + n] - mode[j * lanes + n]);
    square += sum * sum;
  }
  return square;
}

void ep_find_failed(const Ep *ep, int lanes, const Irls *irls, const double *mode, bool *failed) {
  static const double FARTHEST = 3;
  for (int n = 0; n < lanes; n++)
    failed[n] = ep->moving[n] > 0 ||
                (mode && !(ep_square_from_mode(ep, lanes, n, irls, mode) <= FARTHEST * FARTHEST));
}

/* Moves the evidence of a lane half of the way to the curvature, with the same mean under the prior. */
static void ep_widen_lane(const Ep *ep, int lanes, int n, PriorLanes prior, EvidenceLanes evidence) {
  double *precision = evidence.precision, *vector = evidence.vector;
  for (int i = 0; i < ep->d; i++) {
    vector[i * lanes + n] = -prior.vector[i * lanes + n];
    for (int j = 0; j < ep->d; j++) {
      const int k = (i * ep->d + j) * lanes + n;
      precision[k] = 0.5 * (precision[k] + ep->next_precision[k]);
      vector[i * lanes + n] += (prior.precision[k] + precision[k]) * ep->settled_mean[j * lanes + n];
    }
  }
}

/* Sets ep->jitters[lanes] above 0 where the precision of the log posterior at the mean, with the curvature in
 * ep->next_precision, is less than `share` of that of the Gaussian in some direction: P + H - share (P +
 * Lambda) is not positive definite. */
static void ep_compare_curvature(Ep *ep, int lanes, double share, const double *prior_precision,
                                 const double *precision) {
  const size_t entries = (size_t)ep->d * (size_t)ep->d * (size_t)lanes;
  lanes_sum(entries, prior_precision, ep->next_precision, ep->covariance);
  lanes_add(entries, -share, prior_precision, ep->covariance);
  lanes_add(entries, -share, precision, ep->covariance);
  memset(ep->jitters, 0, (size_t)lanes * sizeof *ep->jitters);
  linalg_factor_cholesky(ep->d, lanes, ep->covariance, ep->jitters);
}

/* Raises doubt[lanes] to `level` where that is so, unless u is known to within 1. */
static void ep_raise_doubt(const Ep *ep, int lanes, int level, int *doubt) {
  for (int n = 0; n < lanes; n++)
    if (ep->widest[n] > 1 && ep->jitters[n] > 0) doubt[n] = level;
}

void ep_widen(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, int *doubt) {
  const int lanes = view->lanes;
  bool any = false;
  for (int n = 0; n < lanes; n++) {
    doubt[n] = EP_RIGHT;
    any = any || ep->widest[n] > 1;
  }
  if (!any) return;
  history_derivatives(view, ep->settled_mean, NULL, ep->next_vector, ep->next_precision);
  ep_compare_curvature(ep, lanes, DOUBTFUL, prior.precision, evidence.precision);
  ep_raise_doubt(ep, lanes, EP_DOUBTFUL, doubt);
  ep_compare_curvature(ep, lanes, NARROW, prior.precision, evidence.precision);
  ep_raise_doubt(ep, lanes, EP_NARROW, doubt);
  for (int n = 0; n < lanes; n++)
    if (doubt[n] == EP_NARROW) ep_widen_lane(ep, lanes, n, prior, evidence);
}

void ep_find_inexact(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence,
                     bool *inexact) {
  history_derivatives(view, ep->settled_mean, NULL, ep->next_vector, ep->next_precision);
  ep_compare_curvature(ep, view->lanes, EXACT, prior.precision, evidence.precision);
  for (int n = 0; n < view->lanes; n++) inexact[n] = ep->jitters[n] > 0;
}
