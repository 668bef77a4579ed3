/* Weighted points for tasks whose likelihood is not Gaussian: the posterior of a task where expectation
 * propagation errs, as it does for tasks with hardly a click under a wide prior, whose posterior is the prior
 * cut off on one side.
 *
 * For a prior component N(m, C) and a task's approximate evidence (Lambda, b), points are drawn from the
 * Gaussians N(m, C) exp(a (b' z - z' Lambda z / 2)) for a few fractions a, from the approximation (a = 1) to
 * the prior (a = 0), and each is weighted by the ratio of prior times likelihood to the mean density of these
 * Gaussians (Veach and Guibas 1995, the balance heuristic; Owen and Zhou 2000): as the prior is among them,
 * no weight exceeds the likelihood by more than their number. All of them are diagonal in one basis, in which
 * the draws are a Latin hypercube (McKay, Beckman and Conover 1979); what a task's rows do not touch keeps
 * the prior's moments exactly. */
#pragma once

#include "core/rng.h"
#include "model/history/irls.h"

enum {
  POINTS_EACH = 32,
  POINTS_STEPS = 4,
  POINTS = POINTS_EACH * POINTS_STEPS,
  POINTS_NODES = 32 * POINTS_EACH
};

/* N lanes. Points have coordinates v with z = m + map v, in which the prior is N(0, I) and the evidence is
 * diagonal. */
typedef struct {
  int d, lanes;
  double node[POINTS_NODES]; /* quantiles of a normal distribution, scaled to variance 1 */
  double *matrix, *basis, *map; /* [d, d, N] */
  double *centre, *turned, *precision, *vector; /* [d, N]: m; scratch; evidence on v */
  double *axes, *variance; /* [d, d, N], [d, N]: eigenvectors and eigenvalues of the covariance of v */
  double *inverse, *rows; /* [d, d], of one lane: L^-1; from z to its axes */
  double *v, *z; /* [N, d, POINTS] */
  /* [N, POINTS]: log weights, then weights, of sum 1, for the posterior and for its approximation. */
  double *share, *own_share, *log_likelihood;
  bool *enough; /* [N]: points were wanted, and enough of them have weight for moments and draws */
  double *trust; /* [N]: share of the approximation in the moments, from 0 to 1 */
} LogsPoints;

Status logs_points_create(Arena *memory, int d, int lanes, LogsPoints *out);
/* Priors N(m, L L') of N lanes, in the coordinates of the view. */
typedef struct {
  const double *mean, *root; /* [d, N]; [d, d, N]: L */
} RootLanes;
/* Weighs points for the runs of the view (draws = 1) that are wanted[N]. Task first + n names the stream of
 * lane n under the key. Where enough points have weight, log_mass[N], that of prior times likelihood (as in
 * history_log_likelihood), and the approximate evidence are replaced: with the prior it then has the moments
 * of the points, but no variance above the prior's, as likelihoods are log-concave. */
void logs_points_weigh(LogsPoints *self, const HistoryView *view, RootLanes prior, EvidenceLanes evidence,
                       const bool *wanted, Rng stream, double *log_mass);
/* Replaces z[d, N] of one lane by the point that a uniform number falls on; does nothing if too few have
 * weight. */
void logs_points_pick(const LogsPoints *self, int lane, double uniform, double *z);
