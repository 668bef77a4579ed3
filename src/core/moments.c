#include "core/moments.h"

#include <math.h>

Moments moments_of(int n, const double *values) {
  Moments all = {.n = n};
  for (int i = 0; i < n; i++) all.mean += values[i] / n;
  for (int i = 0; i < n; i++) all.squares += (values[i] - all.mean) * (values[i] - all.mean);
  return all;
}

Moments moments_join(Moments a, Moments b) {
  if (a.n == 0 || b.n == 0) return a.n == 0 ? b : a;
  double n = (double)(a.n + b.n), step = b.mean - a.mean;
  return (Moments){.n = a.n + b.n,
                   .mean = a.mean + step * (double)b.n / n,
                   .squares = a.squares + b.squares + step * step * (double)a.n * (double)b.n / n};
}

double moments_deviation(Moments moments) {
  return moments.n > 0 ? sqrt(moments.squares / (double)moments.n) : 0;
}

double moments_se(Moments moments) {
  double n = (double)moments.n;
  return moments.n > 1 ? sqrt(moments.squares / (n - 1) / n) : INFINITY;
}
