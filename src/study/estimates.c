#include "study/estimates.h"

#include "core/quantile.h"

#include <math.h>

void estimates_summarise(double *mean, double *out) {
  double *sample = mean + ESTIMATES_FIRST, centre = 0, square = 0;
  int n = 0;
  for (int s = 0; s < ESTIMATES_RESAMPLES; s++)
    if (!isnan(sample[s])) centre += sample[s], sample[n++] = sample[s];
  centre /= n > 0 ? n : 1;
  for (int s = 0; s < n; s++) square += (sample[s] - centre) * (sample[s] - centre);
  quantile_sort(n, sample);
  out[ESTIMATES_of_value] = mean[ESTIMATES_VALUE];
  out[ESTIMATES_of_value_se] = n > 1 ? sqrt(square / (n - 1)) : NAN;
  out[ESTIMATES_of_value_low] = n > 1 ? quantile_of_sorted(n, sample, 0.025) : NAN;
  out[ESTIMATES_of_value_high] = n > 1 ? quantile_of_sorted(n, sample, 0.975) : NAN;
  out[ESTIMATES_of_effective_sample_size] = mean[ESTIMATES_SIZE];
  out[ESTIMATES_of_mean_weight] = mean[ESTIMATES_WEIGHT];
}
