#include "model/network/learning.h"

#include "core/simd.h"

#include <math.h>
#include <string.h>

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
