/* Energy distance (Szekely and Rizzo 2013): the root of 2 E|X - Y| - E|X - X'| - E|Y - Y'|, with means over
 * all pairs of points; it needs neither directions nor an assignment. */
#include "metric/metrics.h"

#include <math.h>

/* Returns the mean of |x - y| over the points of x[d, n] and y[d, m]. */
static double mean_distance(int d, const Cloud *x, const Cloud *y) {
  double sum = 0;
  for (int n = 0; n < x->n; n++)
    for (int m = 0; m < y->n; m++) {
      double square = 0;
      for (int i = 0; i < d; i++) {
        const double difference = x->theta[i * x->n + n] - y->theta[i * y->n + m];
        square += difference * difference;
      }
      sum += sqrt(square);
    }
  return sum / x->n / y->n;
}

Status measure_energy(const Comparison *self, double *out) {
  const double between = mean_distance(self->d, self->x, self->y);
  const double within = mean_distance(self->d, self->x, self->x) + mean_distance(self->d, self->y, self->y);
  *out = sqrt(fmax(0, 2 * between - within)); /* rounding can leave it below zero */
  return STATUS_OK;
}
