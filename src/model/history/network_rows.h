/* Passes over the rows of a history whose mean reward is a network, u = f(phi; theta): the counterpart of
 * history_passes.h, where u = phi' theta. They give the derivatives of the log likelihood with respect to
 * theta, which has p entries.
 *
 * The Hessian is the Gauss-Newton approximation: with J the derivatives of the outputs, J' diag(-l''(u)) J
 * replaces minus the Hessian of the log likelihood. It omits the sum over rows of l'(u) times the Hessian of
 * f, which is zero if the network fits.
 *
 * Lane n belongs to run n / draws; its result does not depend on the other lanes. Computed in float32. */
#pragma once

#include "model/history/history.h"

typedef struct {
  NetworkShape shape;
  int parameters; /* p */
  /* For one lane at a time: */
  float *theta, *gradient, *workspace; /* [p], [p], network_workspace */
  float *jacobian, *square; /* [p, NETWORK_LANES], [p, p] */
} NetworkRows;

Status network_rows_create(Arena *memory, const NetworkShape *shape, NetworkRows *out);

/* Computes, at theta[p, lanes], value[lanes] of the tempered log likelihood, as history_log_likelihood does,
 * and its gradient[p, lanes]; either may be NULL. */
void network_rows_gradient(NetworkRows *rows, const HistoryView *view, const double *theta, double *value,
                           double *gradient);
/* Computes that gradient and minus the Gauss-Newton Hessian, precision[p, p, lanes]. */
void network_rows_derivatives(NetworkRows *rows, const HistoryView *view, const double *theta,
                              double *gradient, double *precision);
/* Computes trace[lanes] of that matrix, which bounds its eigenvalues. */
void network_rows_trace(NetworkRows *rows, const HistoryView *view, const double *theta, double *trace);
