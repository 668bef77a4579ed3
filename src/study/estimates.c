#include "study/estimates.h"

#include "core/arena.h"
#include "core/quantile.h"

#include <math.h>

/* Returns the mean over runs at a point, leaving out NaN; NaN if nothing is left. */
static double study_curve_mean_at(int64_t runs, const double *curve, int point) {
  double sum = 0;
  int64_t n = 0;
  for (int64_t r = 0; r < runs; r++) {
    const double value = curve[r * ESTIMATES_POINTS + point];
    if (!isnan(value)) sum += value, n++;
  }
  return n > 0 ? sum / (double)n : NAN;
}

Status estimates_summarise(int64_t runs, const double *curve, double *out) {
  SCRATCH_ARENA(scratch);
  double *sample, mean = 0, square = 0;
  int n = 0;
  ALLOCATE(&scratch, sample, ESTIMATES_RESAMPLES);
  for (int s = 0; s < ESTIMATES_RESAMPLES; s++) {
    const double value = study_curve_mean_at(runs, curve, ESTIMATES_FIRST + s);
    if (!isnan(value)) sample[n++] = value, mean += value;
  }
  mean /= n > 0 ? n : 1;
  for (int s = 0; s < n; s++) square += (sample[s] - mean) * (sample[s] - mean);
  quantile_sort(n, sample);
  out[ESTIMATES_of_value] = study_curve_mean_at(runs, curve, ESTIMATES_VALUE);
  out[ESTIMATES_of_value_se] = n > 1 ? sqrt(square / (n - 1)) : NAN;
  out[ESTIMATES_of_value_low] = n > 1 ? quantile_of_sorted(n, sample, 0.025) : NAN;
  out[ESTIMATES_of_value_high] = n > 1 ? quantile_of_sorted(n, sample, 0.975) : NAN;
  out[ESTIMATES_of_effective_sample_size] = study_curve_mean_at(runs, curve, ESTIMATES_SIZE);
  out[ESTIMATES_of_mean_weight] = study_curve_mean_at(runs, curve, ESTIMATES_WEIGHT);
  return STATUS_OK;
}
