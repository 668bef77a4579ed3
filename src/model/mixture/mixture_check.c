/* What a mixture must be to serve as a prior: in a file that somebody wrote, and as the result of a fit, so
 * that what is saved can be read. */
#include "model/mixture/mixture.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Checks weights; those that sum to 1 but for the rounding of a float are brought to 1. */
static Status check_weights(const char *name, Mixture *mixture) {
  double sum = 0;
  for (int c = 0; c < mixture->components; c++) {
    if (!isfinite(mixture->weight[c]) || mixture->weight[c] <= 0)
      return status_set(STATUS_INPUT, "%s: weight[%d] is %g; weights are above 0", name, c,
                        mixture->weight[c]);
    sum += mixture->weight[c];
  }
  if (fabs(sum - 1) > 1e-6)
    return status_set(STATUS_INPUT, "%s: the weights sum to %.9g instead of 1", name, sum);
  bool exact = fabs(sum - 1) <= 1e-14; /* our own files, to be read back bit for bit */
  for (int c = 0; c < mixture->components && !exact; c++) mixture->weight[c] /= sum;
  return STATUS_OK;
}

/* Checks that parameters lie within what squares, inverses and ratios of a few of them keep finite; far
 * beyond any prior's use. */
static Status mixture_check_range(const char *name, int c, size_t i, double mean, double variance) {
  const double most_mean = 1e50, least_variance = 1e-100, most_variance = 1e100;
  if (fabs(mean) > most_mean)
    return status_set(STATUS_INPUT, "%s: mean[%d, %zu] is %g; means are at most %g in size", name, c, i, mean,
                      most_mean);
  if (variance > 0 && (variance < least_variance || variance > most_variance))
    return status_set(STATUS_INPUT, "%s: covariance[%d, %zu, %zu] is %g; variances are between %g and %g",
                      name, c, i, i, variance, least_variance, most_variance);
  return STATUS_OK;
}

/* Checks that a component is finite, and symmetric but for the rounding of a float; then makes it
 * symmetric. */
static Status check_component(const char *name, int c, Mixture *mixture) {
  size_t d = (size_t)mixture->d;
  double *s = mixture->covariance + (size_t)c * d * d;
  for (size_t i = 0; i < d; i++) {
    if (!isfinite(mixture->mean[(size_t)c * d + i]))
      return status_set(STATUS_INPUT, "%s: mean[%d, %zu] is not a finite number", name, c, i);
    for (size_t j = 0; j < d; j++)
      if (!isfinite(s[i * d + j]))
        return status_set(STATUS_INPUT, "%s: covariance[%d, %zu, %zu] is not a finite number", name, c, i, j);
    TRY(mixture_check_range(name, c, i, mixture->mean[(size_t)c * d + i], s[i * d + i]));
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
  TRY(check_weights(name, mixture));
  for (int c = 0; c < mixture->components; c++) TRY(check_component(name, c, mixture));
  return STATUS_OK;
}
