/* Shapes, and the choice of the kernel for this processor. */
#include "model/network/network.h"

#include "core/simd.h"
#include "core/status.h"
#include "model/network/network_kernel.h"

NetworkShape network_shape(int d, int hidden_count, const int *hidden) {
  ASSERT(d >= 1 && hidden_count >= 0 && hidden_count < NETWORK_MAX_LAYERS);
  NetworkShape shape = {.layers = hidden_count + 1, .width = {d}};
  for (int i = 0; i < hidden_count; i++) {
    ASSERT(hidden[i] >= 1);
    shape.width[i + 1] = hidden[i];
  }
  shape.width[hidden_count + 1] = d;
  return shape;
}

NetworkShape network_scalar_shape(int d, int hidden_count, const int *hidden) {
  NetworkShape shape = network_shape(d, hidden_count, hidden);
  shape.width[shape.layers] = 1;
  return shape;
}

size_t network_parameters(const NetworkShape *shape) {
  size_t count = 0;
  for (int l = 0; l < shape->layers; l++)
    count += (size_t)shape->width[l + 1] * (size_t)(shape->width[l] + 1);
  return count;
}

size_t network_workspace(const NetworkShape *shape) {
  size_t lane_rows = 0,
         gradient = 0; /* rows of NETWORK_LANES floats; the layout is that of network_kernel.c */
  int widest = shape->width[0];
  for (int l = 0; l < shape->layers; l++) {
    size_t columns = (size_t)network_kernel_columns(shape->width[l]), out = (size_t)shape->width[l + 1];
    if (shape->width[l + 1] > widest) widest = shape->width[l + 1];
    lane_rows += out + columns;
    gradient += out * columns;
  }
  return (lane_rows + 2 * (size_t)widest) * NETWORK_LANES + gradient;
}

void network_forward(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                     float *workspace) {
  ASSERT(lanes % NETWORK_GRAIN == 0);
  network_kernel_forward(shape, parameters, lanes, x, y, workspace);
}

void network_vjp(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                 const float *v, float *out, float *workspace) {
  ASSERT(lanes % NETWORK_GRAIN == 0);
  network_kernel_vjp(shape, parameters, lanes, x, v, out, workspace);
}

void network_jacobian(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                      float *jacobian, float *workspace) {
  ASSERT(lanes % NETWORK_GRAIN == 0);
  network_kernel_jacobian(shape, parameters, lanes, x, y, jacobian, workspace);
}

void network_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                      size_t x_row, NetworkSlope *slope_of, void *context, float *gradient,
                      float *workspace) {
  ASSERT(lanes % NETWORK_LANES == 0);
  network_kernel_gradient(shape, parameters, lanes, x, x_row, slope_of, context, gradient, workspace);
}

void network_sensitivity(const NetworkShape *shape, const float *parameters, const float *x, size_t x_row,
                         float *y, float *jacobian, float *workspace) {
  ASSERT(shape->width[shape->layers] == 1);
  network_kernel_sensitivity(shape, parameters, x, x_row, y, jacobian, workspace);
}

float network_loss_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                            const float *target, float *gradient, float *workspace) {
  ASSERT(lanes >= NETWORK_LANES && lanes % NETWORK_LANES == 0);
  float loss;
  network_kernel_loss_gradient(shape, parameters, lanes, x, target, gradient, workspace, &loss);
  return loss;
}

float network_entropy_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                               const float *target, float *gradient, float *workspace) {
  ASSERT(lanes >= NETWORK_LANES && lanes % NETWORK_LANES == 0);
  float loss;
  network_kernel_entropy_gradient(shape, parameters, lanes, x, target, gradient, workspace, &loss);
  return loss;
}
