#include "core/quantile.h"

#include <stdlib.h>

static int quantile_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void quantile_sort(int64_t n, double *values) { qsort(values, (size_t)n, sizeof *values, quantile_compare); }

double quantile_of_sorted(int64_t n, const double *values, double share) {
  const double place = share * (double)(n - 1);
  const int64_t below = (int64_t)place, above = below + (below + 1 < n);
  return values[below] + (place - (double)below) * (values[above] - values[below]);
}

double quantile_median(int64_t n, double *values) {
  quantile_sort(n, values);
  return quantile_of_sorted(n, values, 0.5);
}
