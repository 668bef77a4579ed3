/* Moments of a Gaussian of one variable times the likelihood of a row: mass, mean and variance of N(u; m, v)
 * p(y | u)^c, which expectation propagation matches (ep.h).
 *
 * They come from the trapezoidal rule on 2 K + 1 equally spaced nodes, whose error for an analytic integrand
 * falls exponentially as the spacing shrinks (Trefethen and Weideman 2014, The exponentially convergent
 * trapezoidal rule): with logistic rewards like exp(-2 pi^2 / (s h)), where h is the spacing in standard
 * deviations s, which leaves 1e-6 at s = 3 and 7e-4 at s = 6; from there on a closed form is used. Equally
 * spaced nodes need only one exponential for all. */
#pragma once

#include "model/history/likelihood.h"

enum { TILTED_PAIRS = 15, TILTED_FEW = 6 }; /* K; fewer, for u that is nearly known */

typedef struct {
  double step, wide_step; /* h of 2 K + 1 nodes; of 2 TILTED_FEW + 1 */
  /* Weights of nodes k h and -k h for N(0, 1), exact up to the third moment; those of the few nodes, then
   * zeros. */
  double weight[TILTED_PAIRS + 1], few_weight[TILTED_PAIRS + 1];
} TiltedNodes;

/* n cells: y[n], c[n], m[n], v[n] > 0. */
typedef struct {
  int n;
  const double *y, *counts, *mean, *variance;
} TiltedCells;

void tilted_moments_nodes(TiltedNodes *out);

/* Computes for single logistic rewards, c = 1: log_mass[n]; move[n], the mean minus m; and shrink[n], the
 * variance divided by v. */
void tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells, double *log_mass,
                              double *move, double *shrink);
/* Computes the same for any likelihood and counts c >= 0. Nodes are placed where u is expected: about
 * centre[n], in units of the root of the variance spread[n]. */
void tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                    const double *centre, const double *spread, double *log_mass, double *move,
                    double *shrink);
