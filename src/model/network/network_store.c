#include "model/network/network_store.h"

#include "core/arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the offset of layer l = 0 .. layers - 1, its weights and then its biases, in the parameters of a
 * network. */
static size_t network_store_layer_offset(const NetworkShape *shape, int l) {
  NetworkShape before = *shape;
  before.layers = l;
  return network_parameters(&before);
}

Status network_store_save(const NetworkShape *shape, int count, const float *parameters, StoreFile *file,
                          int dimension) {
  int units[NETWORK_MAX_LAYERS + 1];
  char name[32], weight[32], bias[32];
  for (int l = 0; l <= shape->layers; l++) {
    snprintf(name, sizeof name, "units_%d", l);
    TRY(store_dimension(file, name, (size_t)shape->width[l], &units[l]));
  }
  for (int l = 0; l < shape->layers; l++) {
    const size_t in = (size_t)shape->width[l], out = (size_t)shape->width[l + 1];
    const float *from = parameters + network_store_layer_offset(shape, l);
    snprintf(weight, sizeof weight, "weight_%d", l + 1);
    TRY(store_variable(file, weight, STORE_FLOAT, 3, (int[]){dimension, units[l + 1], units[l]},
                       "weights of a layer", "1"));
    snprintf(bias, sizeof bias, "bias_%d", l + 1);
    TRY(store_variable(file, bias, STORE_FLOAT, 2, (int[]){dimension, units[l + 1]}, "biases of a layer",
                       "1"));
    for (size_t t = 0; t < (size_t)count; t++, from += network_parameters(shape)) {
      size_t start[] = {t, 0, 0};
      TRY(store_put_part(file, weight, start, (size_t[]){1, out, in}, from));
      TRY(store_put_part(file, bias, start, (size_t[]){1, out}, from + in * out));
    }
  }
  return STATUS_OK;
}

Status network_store_load_hidden(StoreFile *file, size_t count, size_t inputs, size_t outputs,
                                 int *hidden_count, int *hidden) {
  *hidden_count = -1;
  size_t width = inputs;
  for (int l = 1;; l++) {
    char name[32];
    snprintf(name, sizeof name, "weight_%d", l);
    if (!store_has_variable(file, name)) break;
    if (*hidden_count == NETWORK_MOST_HIDDEN)
      return status_set(STATUS_INPUT, "%s: more than %d hidden layers", store_path(file), *hidden_count);
    size_t lengths[] = {count, SIZE_MAX, width};
    TRY(store_shape(file, name, 3, lengths));
    if (*hidden_count >= 0) hidden[*hidden_count] = (int)width;
    ++*hidden_count;
    width = lengths[1];
    if (width < 1 || width > NETWORK_MOST_UNITS)
      return status_set(STATUS_INPUT, "%s: %s has %zu units; a layer must have 1 to %d", store_path(file),
                        name, width, NETWORK_MOST_UNITS);
  }
  if (*hidden_count < 0 || width != outputs)
    return status_set(STATUS_INPUT, "%s: the layers do not connect %zu inputs to %zu outputs",
                      store_path(file), inputs, outputs);
  return STATUS_OK;
}

Status network_store_load(const NetworkShape *shape, size_t count, StoreFile *file, float *parameters) {
  SCRATCH_ARENA(scratch);
  const size_t stride = network_parameters(shape);
  float *buffer;
  ALLOCATE(&scratch, buffer, count * stride);
  for (int l = 0; l < shape->layers; l++) {
    char name[32];
    const size_t in = (size_t)shape->width[l], out = (size_t)shape->width[l + 1];
    snprintf(name, sizeof name, "bias_%d", l + 1);
    TRY(store_shape(file, name, 2, (size_t[]){count, out}));
    for (int bias = 0; bias < 2; bias++) {
      const size_t values = bias ? out : in * out,
                   offset = network_store_layer_offset(shape, l) + (bias ? in * out : 0);
      snprintf(name, sizeof name, "%s_%d", bias ? "bias" : "weight", l + 1);
      TRY(store_get_part(file, name, STORE_FLOAT, NULL, NULL, buffer));
      for (size_t i = 0; i < count * values; i++)
        if (!isfinite(buffer[i]))
          return status_set(STATUS_INPUT, "%s: %s contains a value that is not finite", store_path(file),
                            name);
      for (size_t t = 0; t < count; t++)
        memcpy(parameters + t * stride + offset, buffer + t * values, values * sizeof *buffer);
    }
  }
  return STATUS_OK;
}
