#include "parallel/statistics.h"

#include "core/quantile.h"

#include <math.h>

/* Sums loop over runs, and over the points within each run, because the values of a run are contiguous in
 * memory. */

/* Adds `runs` runs, from number `first` on, to sum[points] and n[points]. */
static void statistics_add_runs(int64_t first, int64_t runs, int points, const double *values,
                                const double *base, double *sum, double *n) {
  for (int64_t at = first * points; at < (first + runs) * points; at += points)
    for (int i = 0; i < points; i++) {
      double value = values[at + i] - (base ? base[at + i] : 0);
      if (!isnan(value)) sum[i] += value, n[i]++;
    }
}

void statistics_mean(int64_t runs, int points, const double *values, const double *base, double *mean,
                     double *se, double *n) {
  for (int i = 0; i < points; i++) mean[i] = se[i] = n[i] = 0;
  statistics_add_runs(0, runs, points, values, base, mean, n);
  for (int i = 0; i < points; i++) mean[i] = n[i] > 0 ? mean[i] / n[i] : NAN;
  for (int64_t at = 0; at < runs * points; at += points)
    for (int i = 0; i < points; i++) {
      double value = values[at + i] - (base ? base[at + i] : 0);
      if (!isnan(value)) se[i] += (value - mean[i]) * (value - mean[i]);
    }
  for (int i = 0; i < points; i++) se[i] = n[i] > 1 ? sqrt(se[i] / (n[i] - 1) / n[i]) : NAN;
}

Status statistics_quantiles(int64_t runs, int points, const double *values, double *quantiles) {
  SCRATCH_ARENA(scratch);
  double *column, found[STUDY_QUANTILES];
  ALLOCATE(&scratch, column, runs);
  for (int i = 0; i < points; i++) {
    int64_t n = 0;
    for (int64_t r = 0; r < runs; r++)
      if (!isnan(values[r * points + i])) column[n++] = values[r * points + i];
    for (int q = 0; q < STUDY_QUANTILES; q++) found[q] = NAN;
    if (n > 0) quantile_of_values(n, column, STUDY_QUANTILES, study_quantiles, found);
    for (int q = 0; q < STUDY_QUANTILES; q++) quantiles[q * points + i] = found[q];
  }
  return STATUS_OK;
}

Status statistics_replicate_se(const Study *study, int64_t runs, const double *values, const double *base,
                               double *se) {
  SCRATCH_ARENA(scratch);
  const int points = study->places,
            stride = study->runs.adaptive ? study->runs.replicates : 1; /* to the next block of a replicate */
  double *sum;
  ALLOCATE(&scratch, sum, 4 * points);
  double *n = sum + points, *mean = n + points, *count = mean + points;
  for (int i = 0; i < points; i++) se[i] = 0;
  for (int r = 0, k = 0; r < study->runs.replicates; r++) {
    for (int i = 0; i < points; i++) sum[i] = n[i] = 0;
    if (stride > 1) k = r;
    for (; k < study->runs.blocks && study->blocks[k].replicate == (uint32_t)r &&
           study->blocks[k].first_run < runs;
         k += stride)
      statistics_add_runs(study->blocks[k].first_run, study->blocks[k].runs, points, values, base, sum, n);
    /* Welford's running count, mean and squares over the means of replicates */
    for (int i = 0; i < points; i++) {
      if (n[i] == 0) continue;
      const double value = sum[i] / n[i], step = value - mean[i];
      mean[i] += step / ++count[i];
      se[i] += step * (value - mean[i]);
    }
  }
  for (int i = 0; i < points; i++) se[i] = count[i] > 1 ? sqrt(se[i] / (count[i] - 1) / count[i]) : NAN;
  return STATUS_OK;
}
