#include "model/network/network.h"

#include "core/status.h"
#include "model/network/network_kernel.h"

NetworkShape network_shape(int inputs, int hidden_count, const int *hidden, int outputs) {
  ASSERT(inputs >= 1 && outputs >= 1 && hidden_count >= 0 && hidden_count < NETWORK_MAX_LAYERS);
  NetworkShape shape = {.layers = hidden_count + 1, .width = {inputs}};
  for (int i = 0; i < hidden_count; i++) {
    ASSERT(hidden[i] >= 1);
    shape.width[i + 1] = hidden[i];
  }
  shape.width[hidden_count + 1] = outputs;
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
