#include "sampler/tilted/tilt_flow.h"

#include <math.h>

double tilt_flow_reach(const Schedule *schedule, int t) {
  return (1 - schedule->alpha_bar[t]) / schedule->alpha_bar[t];
}

int tilt_flow_stage(const Schedule *schedule, double largest, double margin) {
  int t = 0;
  while (t < schedule->stages && tilt_flow_reach(schedule, t + 1) * largest <= 1 - margin) t++;
  return t;
}

void tilt_flow(int n, int stride, double c, double *q, double *b) {
  for (int k = 0; k < n * stride; k += stride) {
    const double left = 1 - c * q[k];
    ASSERT(left > 0);
    q[k] *= (1 + c) / left;
    b[k] *= sqrt(1 + c) / left;
  }
}
