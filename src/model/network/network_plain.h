/* The passes of network_kernel.h in plain loops and double precision, one input at a time: what the kernels
 * compute, for readers and for tests; not part of the program. */
#pragma once

#include "model/network/network.h"

/* Computes y[width_L] = network(x[width_0]). */
void network_plain_forward(const NetworkShape *shape, const double *parameters, const double *x, double *y);
/* Computes out[width_0] = J(x)' v, with v[width_L]. */
void network_plain_vjp(const NetworkShape *shape, const double *parameters, const double *x, const double *v,
                       double *out);
/* Returns the mean over lanes and outputs of (network(x) - target)^2, with x[width_0, lanes] and
 * target[width_L, lanes], and computes its gradient[network_parameters]. */
double network_plain_loss_gradient(const NetworkShape *shape, const double *parameters, int lanes,
                                   const double *x, const double *target, double *gradient);
