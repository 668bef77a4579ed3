/* Count, mean and sum of squared deviations of values, which can be joined part by part (Chan, Golub,
 * LeVeque, Am. Stat. 37, 1983). */
#pragma once

#include <stdint.h>

typedef struct {
  int64_t n;
  double mean, squares;
} Moments;

/* Returns the moments of values[n]. */
Moments moments_of(int n, const double *values);
/* Returns the moments of the values in a followed by those in b. */
Moments moments_join(Moments a, Moments b);
/* Returns the standard deviation of the values, 0 without any. */
double moments_deviation(Moments moments);
/* Returns the standard error of the mean; infinite with fewer than two values. */
double moments_se(Moments moments);
