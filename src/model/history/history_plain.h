/* Passes over the rows of one run in plain loops: what history_passes.h computes for many lanes at once, for
 * readers and for tests; not part of the program. */
#pragma once

#include "model/history/likelihood.h"

typedef struct {
  const Likelihood *likelihood;
  int d, count;
  const double *phi; /* [count, d] */
  const double *y; /* [count] */
} PlainRows;

/* Returns minus half the deviance of the rows at theta[d], the log likelihood up to a constant; computes its
 * gradient[d], and minus its Hessian as precision[d, d]. */
double history_plain_pass(const PlainRows *rows, const double *theta, double *gradient, double *precision);
/* Returns the most by which a step[d] moves phi' theta, over all rows. */
double history_plain_reach(const PlainRows *rows, const double *step);
/* Computes the sum over the rows of slope phi as vector[d] and of curvature phi phi' as precision[d, d],
 * where `visit` gives a row's slope and curvature for u = phi' theta ~ N(u_mean, u_variance), theta ~
 * N(mean[d], covariance[d, d]); then adds precision mean to the vector. */
typedef void PlainVisit(void *context, int row, double u_mean, double u_variance, double *slope,
                        double *curvature);
typedef struct {
  const double *mean, *covariance; /* [d], [d, d] */
  PlainVisit *visit;
  void *context;
} PlainMarginals;
void history_plain_marginals(const PlainRows *rows, const PlainMarginals *given, double *precision,
                             double *vector);
