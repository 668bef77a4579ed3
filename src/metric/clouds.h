/* Two clouds of points whose distance is measured: x[d, n] and y[d, m], lanes last. Nothing is owned. */
#pragma once

typedef struct {
  int d, n, m;
  const double *x, *y; /* [d, n], [d, m] */
} Clouds;
