#include "core/quantile.h"

#include <math.h>
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

static double quantile_middle_of(double a, double b, double c) {
  return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static void quantile_swap(double *a, double *b) {
  const double kept = *a;
  *a = *b;
  *b = kept;
}

/* Moves values[low .. high] so that number k is what it is after a sort, none before it is larger, and none
 * after it smaller (FIND: Hoare, Comm. ACM 4, 321, 1961). What is left after many rounds, since the values
 * were in an unlucky order, is sorted. */
static void quantile_select(int64_t k, int64_t low, int64_t high, double *values) {
  enum { MANY = 64 };
  for (int round = 0; low < high && round < MANY; round++) {
    const double pivot = quantile_middle_of(values[low], values[low + (high - low) / 2], values[high]);
    int64_t i = low, j = high;
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) quantile_swap(&values[i++], &values[j--]);
    }
    if (k > j && k < i) return;
    if (k <= j)
      high = j;
    else
      low = i;
  }
  if (low < high) quantile_sort(high - low + 1, values + low);
}

void quantile_of_values(int64_t n, double *values, int count, const double *shares, double *quantiles) {
  int64_t from = 0; /* all before it is in place as far as needed */
  for (int q = 0; q < count; q++) {
    const int64_t below = (int64_t)(shares[q] * (double)(n - 1));
    if (below >= from) quantile_select(below, from, n - 1, values);
    if (below + 1 < n) quantile_select(below + 1, below + 1, n - 1, values);
    from = below + 1;
    quantiles[q] = quantile_of_sorted(n, values, shares[q]);
  }
}

double quantile_median(int64_t n, double *values) {
  quantile_sort(n, values);
  return quantile_of_sorted(n, values, 0.5);
}
