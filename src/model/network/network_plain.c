#include "model/network/network_plain.h"

#include "core/status.h"

#include <string.h>

enum { WIDEST = 4096 };

/* unit[l][width_l] of layers l = 0 .. L: x, the hidden activations, y. */
typedef double Units[NETWORK_MAX_LAYERS + 1][WIDEST];

/* Computes unit[l + 1] = max(0, W_l unit[l] + b_l), without max for the last layer; W_l[width_(l+1), width_l]
 * and b_l[width_(l+1)] follow each other in `parameters`. */
static void network_plain_units(const NetworkShape *shape, const double *parameters, const double *x,
                                Units unit) {
  memcpy(unit[0], x, (size_t)shape->width[0] * sizeof *x);
  for (int l = 0; l < shape->layers; l++) {
    int in = shape->width[l], out = shape->width[l + 1];
    ASSERT(in <= WIDEST && out <= WIDEST);
    const double *bias = parameters + (size_t)out * (size_t)in;
    for (int j = 0; j < out; j++) {
      double sum = bias[j];
      for (int k = 0; k < in; k++) sum += parameters[(size_t)j * (size_t)in + (size_t)k] * unit[l][k];
      unit[l + 1][j] = l < shape->layers - 1 && sum <= 0 ? 0 : sum;
    }
    parameters = bias + out;
  }
}

/* Turns the derivative with respect to y, delta[width_L], into that with respect to x, in place; adds the
 * derivatives with respect to the parameters to gradient when it is not NULL. */
static void network_plain_backward(const NetworkShape *shape, const double *parameters, Units unit,
                                   double *delta, double *gradient) {
  size_t end = network_parameters(shape);
  for (int l = shape->layers - 1; l >= 0; l--) {
    int in = shape->width[l], out = shape->width[l + 1];
    size_t begin = end - (size_t)out * (size_t)(in + 1);
    const double *weight = parameters + begin;
    double before[WIDEST] = {0};
    for (int j = 0; j < out; j++) {
      for (int k = 0; k < in; k++) before[k] += weight[(size_t)j * (size_t)in + (size_t)k] * delta[j];
      if (!gradient) continue;
      for (int k = 0; k < in; k++)
        gradient[begin + (size_t)j * (size_t)in + (size_t)k] += delta[j] * unit[l][k];
      gradient[begin + (size_t)out * (size_t)in + (size_t)j] += delta[j];
    }
    for (int k = 0; k < in; k++) delta[k] = l > 0 && unit[l][k] <= 0 ? 0 : before[k];
    end = begin;
  }
}

void network_plain_forward(const NetworkShape *shape, const double *parameters, const double *x, double *y) {
  Units unit;
  network_plain_units(shape, parameters, x, unit);
  memcpy(y, unit[shape->layers], (size_t)shape->width[shape->layers] * sizeof *y);
}

void network_plain_vjp(const NetworkShape *shape, const double *parameters, const double *x, const double *v,
                       double *out) {
  Units unit;
  double delta[WIDEST];
  network_plain_units(shape, parameters, x, unit);
  memcpy(delta, v, (size_t)shape->width[shape->layers] * sizeof *v);
  network_plain_backward(shape, parameters, unit, delta, NULL);
  memcpy(out, delta, (size_t)shape->width[0] * sizeof *out);
}

double network_plain_loss_gradient(const NetworkShape *shape, const double *parameters, int lanes,
                                   const double *x, const double *target, double *gradient) {
  int in = shape->width[0], out = shape->width[shape->layers];
  double loss = 0, count = (double)lanes * out;
  memset(gradient, 0, network_parameters(shape) * sizeof *gradient);
  for (int lane = 0; lane < lanes; lane++) {
    Units unit;
    double delta[WIDEST];
    for (int i = 0; i < in; i++) delta[i] = x[(size_t)i * (size_t)lanes + (size_t)lane];
    network_plain_units(shape, parameters, delta, unit);
    for (int j = 0; j < out; j++) {
      double difference = unit[shape->layers][j] - target[(size_t)j * (size_t)lanes + (size_t)lane];
      loss += difference * difference / count;
      delta[j] = 2 * difference / count;
    }
    network_plain_backward(shape, parameters, unit, delta, gradient);
  }
  return loss;
}
