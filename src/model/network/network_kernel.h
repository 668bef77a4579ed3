/* Forward and backward passes of a network (network.h), with a workspace of network_workspace floats;
 * compiled once for each instruction level (core/simd.h). v3 and v4 give the same bits. */
#pragma once

#include "model/network/network.h"

/* Returns the number of columns of the transposed inputs of a layer, and of its gradient: its inputs, a
 * column of ones for the bias, and zeros up to a multiple of the widest vector. */
static inline int network_kernel_columns(int inputs) { return (inputs + 1 + 15) / 16 * 16; }

/* Computes y[width_L, lanes] = network(x[width_0, lanes]). */
void network_forward(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                     float *workspace);
/* Computes out[width_0, lanes] = J(x)' v, with v[width_L, lanes]: vector-Jacobian product (ReLU at 0 has
 * slope 0). */
void network_vjp(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                 const float *v, float *out, float *workspace);
/* Computes y[width_L, lanes] as network_forward gives it, and the whole Jacobian there: jacobian[width_L,
 * width_0, lanes], its rows bit for bit what network_vjp gives for unit vectors. */
void network_jacobian(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                      float *jacobian, float *workspace);
/* The inputs x[width_0, lanes] of a network, in rows of `row` >= lanes. */
typedef struct {
  int lanes;
  const float *x;
  size_t row;
} NetworkInputs;
/* Computes gradient[network_parameters] of any function of the outputs that is a sum over lanes: slope_of
 * computes its derivatives slope[width_L, NETWORK_LANES] with respect to the outputs
 * y[width_L, NETWORK_LANES] of lanes first, first + 1, .. */
typedef void NetworkSlope(void *context, int first, const float *y, float *slope);
void network_gradient(const NetworkShape *shape, const float *parameters, NetworkInputs inputs,
                      NetworkSlope *slope_of, void *context, float *gradient, float *workspace);
/* Computes, for a network with one output and NETWORK_LANES lanes of x in rows of x_row, y[NETWORK_LANES]
 * and, for each lane separately, its derivatives with respect to the parameters, jacobian[network_parameters,
 * NETWORK_LANES]. */
void network_sensitivity(const NetworkShape *shape, const float *parameters, const float *x, size_t x_row,
                         float *y, float *jacobian, float *workspace);
/* Returns the mean over lanes and outputs of (network(x) - target)^2, and its
 * gradient[network_parameters]. */
float network_loss_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                            const float *target, float *gradient, float *workspace);
/* Returns the same for a classifier: the mean over lanes of the cross entropy -sum_j target_j log
 * softmax(network(x))_j, where target[width_L, lanes] holds probabilities (one 1 in each lane when the
 * classes are known). */
float network_entropy_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                               const float *target, float *gradient, float *workspace);
