/* The network in plain double precision, one input at a time: the reference for the fast kernels. */
#ifndef TESTS_NETWORK_REFERENCE_H
#define TESTS_NETWORK_REFERENCE_H

#include "model/network/network.h"

/* Evaluates, like the two functions below, what model/network/network.h defines, for one input x; the
 * gradient is that of `lanes` inputs. */
void network_reference_forward(const NetworkShape *shape, const double *parameters, const double *x,
                               double *y);
void network_reference_vjp(const NetworkShape *shape, const double *parameters, const double *x,
                           const double *v, double *out);
double network_reference_loss_gradient(const NetworkShape *shape, const double *parameters, int lanes,
                                       const double *x, const double *target, double *gradient);

#endif
