/* Expectation propagation (Minka 2001; for generalised linear models Seeger 2008, Bayesian inference and
 * optimal design for the sparse linear model): a Gaussian approximation of a Gaussian prior N(P^-1 h, P^-1)
 * times the likelihood of a history that keeps rows, with the same mean and covariance as far as each single
 * row can tell; for many lanes at once.
 *
 * The likelihood of row i, p(y_i | u_i)^c_i with u_i = phi_i' theta, is replaced by a site, a Gaussian factor
 * exp(nu_i u_i - lambda_i u_i^2 / 2), so that the posterior is N(m, S), S = (P + Lambda)^-1, m = S (h + b),
 * with the evidence Lambda = sum lambda_i phi_i phi_i', b = sum nu_i phi_i. A sweep updates all sites at
 * once. For row i, let v = phi_i' S phi_i and mu = phi_i' m. The cavity, which is the posterior without this
 * site, has the variance v_c = 1 / (1/v - lambda_i) and the mean m_c = v_c (mu/v - nu_i). The new site is the
 * one that gives the cavity the mean m_1 and the variance v_1 of N(u; m_c, v_c) p(y_i | u)^c_i:
 *
 *     lambda_i = 1/v_1 - 1/v_c,   nu_i = m_1/v_1 - m_c/v_c.
 *
 * At the fixed point m_1 = mu and v_1 = v. A lane stops after a sweep, its second at the earliest, in which
 * no row misses this by more than the tolerance, with |m_1 - mu| in standard deviations and v_1 relative to
 * v. Sites start as the expansion of the likelihood about the mean under the evidence to start from: that at
 * the mode (irls.h), or that of the history one observation ago.
 *
 * The mass Z_i of the tilted Gaussians gives the evidence of the model: with site i scaled by
 *
 *     s_i = Z_i (1 + lambda_i v_c)^1/2 exp(m_c^2 / (2 v_c) - (m_c/v_c + nu_i)^2 / (2 (1/v_c + lambda_i)))
 *
 * it is the integral of the prior times all sites. Near the fixed point it does not change with the sites to
 * first order, so its value for the sites before the last sweep is as good as for those after it. */
#pragma once

#include "core/real.h"
#include "model/history/history.h"
#include "model/history/irls.h"

#include <stdint.h>

/* ---- moments of a Gaussian of one variable times the likelihood of a row: mass, mean and variance of N(u;
 * m, v) p(y | u)^c
 *
 * They come from the trapezoidal rule on 2 K + 1 equally spaced nodes, whose error for an analytic integrand
 * falls exponentially as the spacing shrinks (Trefethen and Weideman 2014, The exponentially convergent
 * trapezoidal rule): with logistic rewards like exp(-2 pi^2 / (s h)), where h is the spacing in standard
 * deviations s, which leaves 1e-6 at s = 3 and 7e-4 at s = 6; from there on a closed form is used. Equally
 * spaced nodes need only one exponential for all. */

enum { TILTED_PAIRS = 15, TILTED_FEW = 6 }; /* K; fewer, for u that is nearly known */

typedef struct {
  double step, wide_step; /* h of 2 K + 1 nodes; of 2 TILTED_FEW + 1 */
  /* Weights of nodes k h and -k h for N(0, 1), exact up to the third moment; those of the few nodes, then
   * zeros. */
  double weight[TILTED_PAIRS + 1], few_weight[TILTED_PAIRS + 1];
} TiltedNodes;

/* Eight cells: y, c, m, v > 0; and their moments: the logarithm of the mass, the mean minus m, the variance
 * divided by v. */
typedef struct {
  Real y, counts, mean, variance;
} TiltedCells;
typedef struct {
  Real log_mass, move, shrink;
} TiltedMoments;

void history_tilted_nodes(TiltedNodes *out);

/* Computes the moments for single logistic rewards, whose counts are not read. */
void history_tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells, TiltedMoments *out);
/* Computes them for any likelihood and counts c >= 0. Nodes are placed where u is expected: about `centre`,
 * in units of the root of the variance `spread`. */
void history_tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                            const Real *centre, const Real *spread, TiltedMoments *out);

/* ---- propagation */

enum { EP_SWEEPS = 100 };
/* For draws: it leaves an error of 1% of a standard deviation (tests/model/test_ep.c). */
#define EP_TOLERANCE 0.0025

/* n <= capacity lanes, lane last. */
typedef struct {
  int d, capacity;
  double tolerance;
  TiltedNodes nodes;
  double *factor, *covariance, *mean; /* [d, d, n], [d, d, n], [d, n]: Cholesky factor of P + Lambda, S, m */
  double *next_precision, *next_vector; /* [d, d, n], [d, n]: evidence of the sites after a sweep */
  double *volume; /* [n]: |L^-1 (h + b)|^2 / 2 - log |L| */
  double *miss, *log_scale; /* [n]: largest miss of a sweep; sum of log s_i */
  double *wide, *widest; /* [n]: the largest v of a row in a sweep, and in any sweep until the lane settled */
  double *settled_mean,
      *settled_scale; /* [d, n], [n]: m and that sum of the last sweep before a lane settled */
  double *moving; /* [n]: 1, or 0 once the lane has settled */
  int *jitters; /* [n] */
} Ep;

Status ep_create(Arena *memory, int d, int capacity, double tolerance, Ep *out);

/* Finds the sites for the lanes of the view, draws = 1, with the prior in its coordinates. `evidence` is what
 * to start from and becomes that of the sites. log_evidence[lanes] is the logarithm of the integral without
 * the factor that depends only on the prior, |P|^1/2 exp(-h' P^-1 h / 2), as in mixture_evidence.h, and with
 * likelihoods as in history_log_likelihood. Lanes that did not stop within EP_SWEEPS, and pivots that were
 * jittered, are added to fallbacks[B]. */
void ep_solve(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, double *log_evidence,
              int64_t *fallbacks);

/* Splits what the preceding ep_solve found for these lanes, with the same prior, by rows: the evidence of all
 * rows becomes that of the rows before `row`, and log_scale[lanes] the sum of their log s_i, with the sites
 * of all rows as they were left. */
void ep_split(Ep *ep, const HistoryView *view, PriorLanes prior, int row, EvidenceLanes evidence,
              double *log_scale);

/* Sites of n lanes with a single row each. */
typedef struct {
  double *lambda, *nu, *log_scale; /* [n]; log s */
} SiteLanes;

/* Finds the sites of lanes with a single click y[n], where u has mean[n] and variance[n] under the prior: the
 * cavity is that prior, so nothing is iterated. Variances that count as 0 are raised to the smallest that
 * does not. */
void ep_click(const TiltedNodes *nodes, int n, const double *y, const double *mean, const double *variance,
              SiteLanes out);
