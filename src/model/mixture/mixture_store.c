#include "model/mixture/mixture_store.h"

#include <stdint.h>

Status mixture_save(const Mixture *mixture, StoreFile *file, int *dim) {
  int axis[3], weight, mean, covariance;
  TRY(store_dimension(file, "component", (size_t)mixture->components, &axis[0]));
  TRY(store_dimension(file, "dim", (size_t)mixture->d, &axis[1]));
  TRY(store_dimension(file, "dim2", (size_t)mixture->d, &axis[2]));
  TRY(store_variable(file, "weight", STORE_DOUBLE, 1, axis, "weight of the component", "1", &weight));
  TRY(store_variable(file, "mean", STORE_DOUBLE, 2, axis, "mean of the component", "1", &mean));
  TRY(store_variable(file, "covariance", STORE_DOUBLE, 3, axis, "covariance of the component", "1",
                     &covariance));
  *dim = axis[1];
  TRY(store_put(file, weight, mixture->weight));
  TRY(store_put(file, mean, mixture->mean));
  return store_put(file, covariance, mixture->covariance);
}

Status mixture_load(Arena *memory, StoreFile *file, Mixture *out) {
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  TRY(store_shape(file, "mean", 2, shape));
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    return status_set(STATUS_INPUT, "%s: 'mean' has shape (%zu, %zu); it is (component, dim)",
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
