#include "model/network/network.h"

#include "core/simd.h"
#include "core/status.h"
#include "model/network/network_kernel.h"

#include <math.h>
#include <string.h>

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

/* ---- training */

static const float ADAM_BETA1 = 0.9f, ADAM_BETA2 = 0.999f, ADAM_EPSILON = 1e-8f;

void learning_draw_weights(int inputs, int n, Rng *rng, float *weights) {
  for (int count; n > 0; n -= count) {
    double normal[CHUNK_WEIGHTS];
    count = n < CHUNK_WEIGHTS ? n : CHUNK_WEIGHTS;
    rng_normal(rng, count, normal);
    for (int i = 0; i < count; i++) *weights++ = (float)(sqrt(2.0 / inputs) * normal[i]);
  }
}

void learning_start(const NetworkShape *shape, Rng *rng, float *parameters) {
  for (int l = 0; l < shape->layers; l++) {
    int in = shape->width[l], out = shape->width[l + 1];
    learning_draw_weights(in, out * in, rng, parameters);
    parameters += (size_t)out * (size_t)in;
    memset(parameters, 0, (size_t)out * sizeof *parameters);
    parameters += out;
  }
}

float learning_rate(double peak, int step, int steps) {
  double rise = fmin(1, 20.0 * step / steps), fall = 0.5 * (1 + cos(M_PI * (step - 1) / steps));
  return (float)(peak * rise * fall * sqrt(1 - pow(ADAM_BETA2, step)) / (1 - pow(ADAM_BETA1, step)));
}

SIMD_CLONES
void learning_adam(size_t n, float rate, const float *restrict gradient, float *restrict first,
                   float *restrict second, float *restrict parameters) {
  for (size_t i = 0; i < n; i++) {
    first[i] = ADAM_BETA1 * first[i] + (1 - ADAM_BETA1) * gradient[i];
    second[i] = ADAM_BETA2 * second[i] + (1 - ADAM_BETA2) * gradient[i] * gradient[i];
    parameters[i] -= rate * first[i] / (sqrtf(second[i]) + ADAM_EPSILON);
  }
}

double learning_cost(double steps, double batch, double parameters) {
  return 1.5 * steps * batch * parameters;
}
