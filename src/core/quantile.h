/* Quantiles of a sample. */
#pragma once

#include <stdint.h>

/* Sorts values[n] in ascending order. */
void quantile_sort(int64_t n, double *values);
/* Returns the quantile `share`, in [0, 1], of n >= 1 sorted values, interpolated linearly. */
double quantile_of_sorted(int64_t n, const double *values, double share);
/* Computes the quantiles `shares`, which rise, of n >= 1 values as quantile_of_sorted has them, in a time
 * that grows like n. Changes the order of the values. */
void quantile_of_values(int64_t n, double *values, int count, const double *shares, double *quantiles);
/* Sorts values[n] and returns their median. */
double quantile_median(int64_t n, double *values);
