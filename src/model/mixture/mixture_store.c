#include "model/mixture/mixture_store.h"

#include <math.h>

/* Checks that a component is finite, in a range, far wider than any prior needs, in which squares, inverses
 * and ratios of a few parameters stay finite, and symmetric up to the rounding of a float; then makes it
 * exactly symmetric. */
static Status mixture_store_check_component(const char *name, int c, Mixture *mixture) {
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
      if (low == high) continue;
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

Status mixture_store_check(const char *name, Mixture *mixture) {
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
  for (int c = 0; c < mixture->components; c++) TRY(mixture_store_check_component(name, c, mixture));
  return STATUS_OK;
}

Status mixture_store_save(const Mixture *mixture, StoreFile *file, int *dim) {
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

Status mixture_store_load(Arena *memory, StoreFile *file, Mixture *out) {
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
  return mixture_store_check(store_path(file), out);
}
