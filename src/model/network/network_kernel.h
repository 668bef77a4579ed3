/* The fast kernels behind network.h, for network.c and its tests only; one version for each instruction level
 * (core/simd.h). Arguments as in network.h. v3 and v4 give the same bits. */
#pragma once

#include "model/network/network.h"

/* Returns the columns of the transposed inputs of a layer, and of its gradient: its inputs, a column of ones
 * for the bias, and zeros up to a multiple of the widest vector. */
static inline int network_kernel_columns(int inputs) { return (inputs + 1 + 15) / 16 * 16; }

void network_kernel_forward(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                            float *y, float *workspace);
void network_kernel_vjp(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                        const float *v, float *out, float *workspace);
void network_kernel_jacobian(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                             float *y, float *jacobian, float *workspace);
void network_kernel_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                             size_t x_row, NetworkSlope *slope_of, void *context, float *gradient,
                             float *workspace);
void network_kernel_sensitivity(const NetworkShape *shape, const float *parameters, const float *x,
                                size_t x_row, float *y, float *jacobian, float *workspace);
void network_kernel_loss_gradient(const NetworkShape *shape, const float *parameters, int lanes,
                                  const float *x, const float *target, float *gradient, float *workspace,
                                  float *loss);
void network_kernel_entropy_gradient(const NetworkShape *shape, const float *parameters, int lanes,
                                     const float *x, const float *target, float *gradient, float *workspace,
                                     float *loss);
