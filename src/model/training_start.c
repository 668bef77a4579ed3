#include "model/training_start.h"

#include "model/learning.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Two units for each coordinate pass it on, max(0, x) and max(0, -x); they are at most half of a layer. */
static bool training_start_has_room(const NetworkShape *shape) {
  for (int l = 1; l < shape->layers; l++)
    if (shape->width[l] < 4 * shape->width[0]) return false;
  return true;
}

/* Row k of a layer with weights[out, in] takes input j alone, times slope. */
static void pass(const NetworkShape *shape, int layer, int k, int j, double slope, float *weights) {
  const size_t in = (size_t)shape->width[layer], out = (size_t)shape->width[layer + 1];
  float *row = weights + (size_t)k * in;
  memset(row, 0, in * sizeof *row);
  row[j] = (float)slope;
  weights[out * in + (size_t)k] = 0;
}

/* Units 2 i and 2 i + 1 of hidden layer `layer` become the positive and the negative part of x_i. */
static void pass_coordinates(const NetworkShape *shape, int layer, float *weights) {
  for (int k = 0; k < 2 * shape->width[0]; k++)
    pass(shape, layer, k, layer ? k : k / 2, layer || k % 2 == 0 ? 1 : -1, weights);
}

/* Output i <- offset_i + slope_i x_i: the regression of eps on s = sqrt(bar) z + sqrt(1 - bar) eps. */
static void put_regression(const NetworkShape *shape, double bar, const double *mean, const double *deviation,
                           float *weights) {
  const int last = shape->layers - 1, d = shape->width[0];
  const size_t in = (size_t)shape->width[last];
  for (int i = 0; i < d; i++) {
    const double slope = sqrt(1 - bar) / (bar * deviation[i] * deviation[i] + 1 - bar);
    pass(shape, last, i, last ? 2 * i : i, slope, weights);
    if (last) weights[(size_t)i * in + (size_t)(2 * i + 1)] = (float)-slope;
    weights[(size_t)d * in + (size_t)i] = (float)(-slope * sqrt(bar) * mean[i]);
  }
}

void training_start(const NetworkShape *shape, double alpha_bar, const double *mean, const double *deviation,
                    Rng *rng, float *parameters) {
  const int last = shape->layers - 1;
  const bool linear = training_start_has_room(shape);
  for (int l = 0; l < last; l++) {
    const int in = shape->width[l], out = shape->width[l + 1], count = out * (in + 1);
    learning_draw_weights(in, count, rng, parameters);
    if (linear) pass_coordinates(shape, l, parameters);
    parameters += count;
  }
  memset(parameters, 0, (size_t)(shape->width[last + 1] * (shape->width[last] + 1)) * sizeof *parameters);
  if (linear) put_regression(shape, alpha_bar, mean, deviation, parameters);
}
