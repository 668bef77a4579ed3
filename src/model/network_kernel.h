/* The fast kernels behind network.h, for network.c and its tests only; one version for each instruction level
 * (core/simd.h). Arguments as in network.h. v3 and v4 give the same bits. */
#ifndef MODEL_NETWORK_KERNEL_H
#define MODEL_NETWORK_KERNEL_H

#include "model/network.h"

/* Columns of the transposed inputs of a layer, and of its gradient: its inputs, a column of ones for the
 * bias, and zeros up to a multiple of the widest vector. */
static inline int network_kernel_columns(int inputs) { return (inputs + 1 + 15) / 16 * 16; }

#define NETWORK_KERNEL_DECLARE(level)                                                                        \
  void network_kernel_forward_##level(const NetworkShape *shape, const float *parameters, int lanes,         \
                                      const float *x, float *y, float *workspace);                           \
  void network_kernel_vjp_##level(const NetworkShape *shape, const float *parameters, int lanes,             \
                                  const float *x, const float *v, float *out, float *workspace);             \
  void network_kernel_jacobian_##level(const NetworkShape *shape, const float *parameters, int lanes,        \
                                       const float *x, float *y, float *jacobian, float *workspace);         \
  void network_kernel_gradient_##level(const NetworkShape *shape, const float *parameters, int lanes,        \
                                       const float *x, size_t x_row, NetworkSlope *slope_of, void *context,  \
                                       float *gradient, float *workspace);                                   \
  void network_kernel_sensitivity_##level(const NetworkShape *shape, const float *parameters,                \
                                          const float *x, size_t x_row, float *y, float *jacobian,           \
                                          float *workspace);                                                 \
  void network_kernel_loss_gradient_##level(const NetworkShape *shape, const float *parameters, int lanes,   \
                                            const float *x, const float *target, float *gradient,            \
                                            float *workspace, float *loss);                                  \
  void network_kernel_entropy_gradient_##level(const NetworkShape *shape, const float *parameters,           \
                                               int lanes, const float *x, const float *target,               \
                                               float *gradient, float *workspace, float *loss);
NETWORK_KERNEL_DECLARE(v1)
NETWORK_KERNEL_DECLARE(v3)
NETWORK_KERNEL_DECLARE(v4)
#undef NETWORK_KERNEL_DECLARE

#endif
