/* Mixtures and networks in prior files. */
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

/* ---- what a mixture must satisfy to serve as a prior, whether somebody wrote it to a file or it was fitted,
 * so that what is saved can be read */

/* Checks that a component is finite, in a range, far wider than any prior needs, in which squares, inverses
 * and ratios of a few parameters stay finite, and symmetric up to the rounding of a float; then makes it
 * exactly symmetric. */
static Status mixture_check_component(const char *name, int c, Mixture *mixture) {
  const double most_mean = 1e50, least_variance = 1e-100, most_variance = 1e100;
  size_t d = (size_t)mixture->d;
  double *s = mixture->covariance + (size_t)c * d * d;
  for (size_t i = 0; i < d; i++) {
    const double mean = mixture->mean[(size_t)c * d + i], variance = s[i * d + i];
    if (!isfinite(mean))
      return status_set(STATUS_INPUT, "%s: mean[%d, %zu] is not a finite number", name, c, i);
    for (size_t j = 0; j < d; j++)
      if (!isfinite(s[i * d + j]))
        return status_set(STATUS_INPUT, "%s: covariance[%d, %zu, %zu] is not a finite number", name, c, i, j);
    if (fabs(mean) > most_mean)
      return status_set(STATUS_INPUT, "%s: mean[%d, %zu] is %g; means must be at most %g in absolute value",
                        name, c, i, mean, most_mean);
    if (variance > 0 && (variance < least_variance || variance > most_variance))
      return status_set(STATUS_INPUT,
                        "%s: covariance[%d, %zu, %zu] is %g; variances must be between %g and %g", name, c, i,
                        i, variance, least_variance, most_variance);
  }
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j < i; j++) {
      double low = s[i * d + j], high = s[j * d + i];
      if (fabs(low - high) > 1e-6 * sqrt(fabs(s[i * d + i] * s[j * d + j])))
        return status_set(
            STATUS_INPUT,
            "%s: the covariance of component %d is not symmetric: [%zu, %zu] is %g but [%zu, %zu] is %g",
            name, c, i, j, low, j, i, high);
      s[i * d + j] = s[j * d + i] = 0.5 * low + 0.5 * high;
    }
  }
  return STATUS_OK;
}

Status mixture_check(const char *name, Mixture *mixture) {
  double sum = 0;
  for (int c = 0; c < mixture->components; c++) {
    if (!isfinite(mixture->weight[c]) || mixture->weight[c] <= 0)
      return status_set(STATUS_INPUT, "%s: weight[%d] is %g; weights must be above 0", name, c,
                        mixture->weight[c]);
    sum += mixture->weight[c];
  }
  if (fabs(sum - 1) > 1e-6)
    return status_set(STATUS_INPUT, "%s: the weights sum to %.9g, not to 1", name, sum);
  /* Weights that sum to 1 up to the rounding of a float are normalised, but those of our own files are to be
   * read back bit for bit. */
  if (fabs(sum - 1) > 1e-14)
    for (int c = 0; c < mixture->components; c++) mixture->weight[c] /= sum;
  for (int c = 0; c < mixture->components; c++) TRY(mixture_check_component(name, c, mixture));
  return STATUS_OK;
}

/* ---- mixtures */

Status mixture_save(const Mixture *mixture, StoreFile *file, int *dim) {
  int axis[3];
  TRY(store_dimension(file, "component", (size_t)mixture->components, &axis[0]));
  TRY(store_dimension(file, "dim", (size_t)mixture->d, &axis[1]));
  TRY(store_dimension(file, "dim2", (size_t)mixture->d, &axis[2]));
  *dim = axis[1];
  TRY(store_write(file, "weight", STORE_DOUBLE, 1, axis, "weight of the component", "1", mixture->weight));
  TRY(store_write(file, "mean", STORE_DOUBLE, 2, axis, "mean of the component", "1", mixture->mean));
  return store_write(file, "covariance", STORE_DOUBLE, 3, axis, "covariance of the component", "1",
                     mixture->covariance);
}

Status mixture_load(Arena *memory, StoreFile *file, Mixture *out) {
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  TRY(store_shape(file, "mean", 2, shape));
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    return status_set(STATUS_INPUT, "%s: 'mean' has shape (%zu, %zu); expected (component, dim)",
                      store_path(file), shape[0], shape[1]);
  shape[2] = shape[1];
  TRY(store_axes(file, "mean", 2, (const char *[]){"component", "dim"}));
  TRY(store_shape(file, "weight", 1, shape));
  TRY(store_axes(file, "weight", 1, (const char *[]){"component"}));
  TRY(store_shape(file, "covariance", 3, shape));
  TRY(store_axes(file, "covariance", 3, (const char *[]){"component", "dim", "dim2"}));
  TRY(mixture_create(memory, (int)shape[1], (int)shape[0], out));
  TRY(store_get_doubles(file, "weight", out->weight));
  TRY(store_get_doubles(file, "mean", out->mean));
  TRY(store_get_doubles(file, "covariance", out->covariance));
  return mixture_check(store_path(file), out);
}

/* ---- networks */

/* Returns the offset of layer l = 0 .. layers - 1, its weights and then its biases, in the parameters of a
 * network. */
static size_t layer_offset(const NetworkShape *shape, int l) {
  NetworkShape before = *shape;
  before.layers = l;
  return network_parameters(&before);
}

Status network_save(const NetworkShape *shape, int count, const float *parameters, StoreFile *file,
                    int dimension) {
  int units[NETWORK_MAX_LAYERS + 1];
  char name[32], weight[32], bias[32];
  for (int l = 0; l <= shape->layers; l++) {
    snprintf(name, sizeof name, "units_%d", l);
    TRY(store_dimension(file, name, (size_t)shape->width[l], &units[l]));
  }
  for (int l = 0; l < shape->layers; l++) {
    const size_t in = (size_t)shape->width[l], out = (size_t)shape->width[l + 1];
    const float *from = parameters + layer_offset(shape, l);
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

Status network_load_hidden(StoreFile *file, size_t count, size_t inputs, size_t outputs, int *hidden_count,
                           int *hidden) {
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

Status network_load(const NetworkShape *shape, size_t count, StoreFile *file, float *parameters) {
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
      const size_t values = bias ? out : in * out, offset = layer_offset(shape, l) + (bias ? in * out : 0);
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
