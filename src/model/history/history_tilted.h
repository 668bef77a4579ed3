/* Moments of a Gaussian of one variable times the likelihood of a row: mass, mean and variance of N(u; m, v)
 * p(y | u)^c, which expectation propagation matches (ep.h).
 *
 * They come from the trapezoidal rule on 2 K + 1 equally spaced nodes, whose error for an analytic integrand
 * falls exponentially as the spacing shrinks (Trefethen and Weideman 2014, The exponentially convergent
 * trapezoidal rule): with logistic rewards like exp(-2 pi^2 / (s h)), where h is the spacing in standard
 * deviations s, which leaves 1e-6 at s = 3 and 7e-4 at s = 6; from there on a closed form is used. Equally
 * spaced nodes need only one exponential for all. */
#pragma once

#include "core/real.h"
#include "model/history/likelihood.h"

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
