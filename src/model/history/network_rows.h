/* Passes over the rows of a history whose mean reward is a network, u = f(phi; theta): what history_passes.c
 * is for u = phi' theta. The log likelihood and its derivatives with respect to theta, p numbers.
 *
 * The Hessian is that of Gauss and Newton: with J the derivatives of the outputs, J' diag(-l''(u)) J stands
 * for minus the Hessian of the log likelihood; what is left out is the sum over rows of l'(u) times the
 * Hessian of f, which is zero where the network fits.
 *
 * Lane n belongs to run n / draws; its result does not depend on the
 * others. float32 inside. */
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

/* Computes, at theta[p, lanes], gradient[p, lanes] of the tempered log likelihood. */
void network_rows_gradient(NetworkRows *rows, const HistoryView *view, const double *theta, double *gradient);
/* Computes also minus its Gauss-Newton Hessian, precision[p, p, lanes]. */
void network_rows_derivatives(NetworkRows *rows, const HistoryView *view, const double *theta,
                              double *gradient, double *precision);
/* Computes trace[lanes] of that matrix, which bounds its eigenvalues. */
void network_rows_trace(NetworkRows *rows, const HistoryView *view, const double *theta, double *trace);
