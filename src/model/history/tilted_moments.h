/* Moments of a Gaussian of one variable times the likelihood of a row: mass, mean and variance of N(u; m, v)
 * p(y | u)^c, which expectation propagation matches (ep.h).
 *
 * The trapezoid rule on 2 K + 1 even nodes, whose error for an analytic integrand falls exponentially with
 * their distance (Trefethen and Weideman 2014, The exponentially convergent trapezoidal rule): with logistic
 * rewards as exp(-2 pi^2 / (s h)), h the distance in standard deviations s, so that 1e-6 is left at s = 3 and
 * 7e-4 at s = 6; a closed form takes over there. Even nodes need one exponential for all. */
#pragma once

#include "model/history/likelihood.h"

enum { TILTED_PAIRS = 15, TILTED_FEW = 6 }; /* K; of a rule for clicks whose u is nearly known */

typedef struct {
  double step, wide_step; /* h of 2 K + 1 nodes; of 2 TILTED_FEW + 1 */
  /* Weights of node k h and of -k h: those of N(0, 1), exact up to its third moment; of the few, then
   * zeros. */
  double weight[TILTED_PAIRS + 1], few_weight[TILTED_PAIRS + 1];
} TiltedNodes;

/* n cells: y[n], c[n], m[n], v[n] > 0. */
typedef struct {
  int n;
  const double *y, *counts, *mean, *variance;
} TiltedCells;

void tilted_moments_nodes(TiltedNodes *out);

/* Computes for single logistic rewards, c = 1: log_mass[n]; move[n], by which the mean lies beyond m; and
 * shrink[n], the variance over v. */
void tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells, double *log_mass,
                              double *move, double *shrink);
/* Computes the same for any likelihood and counts c >= 0, with nodes about `centre`[n] in units of its
 * standard deviation, variance `spread`[n]: where u is thought to be. */
void tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                    const double *centre, const double *spread, double *log_mass, double *move,
                    double *shrink);
