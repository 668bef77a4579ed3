#include "core/reservoir.h"

#include <math.h>
#include <stdbool.h>

Status reservoir_create(Arena *memory, int lanes, Reservoir *out) {
  *out = (Reservoir){0};
  ALLOCATE_ARRAYS(memory, lanes, &out->top, &out->total, &out->squares);
  return STATUS_OK;
}

void reservoir_clear(Reservoir *self, int lanes) {
  for (int n = 0; n < lanes; n++) {
    self->top[n] = -INFINITY;
    self->total[n] = 0;
    self->squares[n] = 0;
  }
}

double reservoir_add(Reservoir *self, int n, double log_weight) {
  if (!isfinite(log_weight)) return 0;
  if (log_weight > self->top[n]) {
    const double smaller = exp(self->top[n] - log_weight);
    self->top[n] = log_weight;
    self->total[n] *= smaller;
    self->squares[n] *= smaller * smaller;
  }
  const double weight = exp(log_weight - self->top[n]);
  self->total[n] += weight;
  self->squares[n] += weight * weight;
  return weight / self->total[n];
}

void reservoir_offer(Reservoir *self, int d, int lanes, const double *log_weight, const double *uniform,
                     const double *candidate, double *kept) {
  for (int n = 0; n < lanes; n++) {
    const bool first = self->total[n] == 0;
    const double share = reservoir_add(self, n, log_weight[n]);
    if (!first && uniform[n] >= share) continue;
    for (int i = n; i < d * lanes; i += lanes) kept[i] = candidate[i];
  }
}

double reservoir_log_mean(const Reservoir *self, int n, int count, double *error) {
  const double spread = self->squares[n] / self->total[n] / self->total[n] - 1.0 / count;
  *error = sqrt(fmax(spread, 0) * count / (count - 1.0));
  return self->top[n] + log(self->total[n] / count);
}

double reservoir_ess(const Reservoir *self, int n) {
  return self->total[n] > 0 ? self->total[n] * self->total[n] / self->squares[n] : 0;
}
