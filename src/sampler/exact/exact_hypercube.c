#include "sampler/exact/exact_hypercube.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

Status exact_hypercube_create(Arena *memory, int d, Hypercube *out) {
  ASSERT(d <= HYPERCUBE_MOST_DIMENSIONS);
  *out = (Hypercube){.d = d};
  ALLOCATE(memory, out->precision, (size_t)d * (size_t)d);
  ALLOCATE_ARRAYS(memory, d, out->vector, out->field);
  ALLOCATE(memory, out->cumulative, (size_t)1 << d);
  return STATUS_OK;
}

/* Flips x_i to `to`, a step of the Gray code: updates the field, and returns the change of the log weight. */
static double exact_hypercube_flip_spin(Hypercube *self, int i, double to) {
  const int d = self->d;
  const double *row = self->precision + i * d;
  const double gain = 2 * to * self->field[i] - 2 * row[i];
  for (int j = 0; j < d; j++) self->field[j] -= 2 * to * row[j];
  return gain;
}

void exact_hypercube_weigh(Hypercube *self) {
  const int d = self->d;
  const uint32_t count = 1u << d;
  double log_weight = 0, largest = 0, sum = 0;
  for (int i = 0; i < d; i++) { /* at x = (-1, .., -1), whose log weight is set to 0 */
    self->field[i] = self->vector[i];
    for (int j = 0; j < d; j++) self->field[i] += self->precision[i * d + j];
  }
  self->cumulative[0] = 0;
  for (uint32_t k = 1, vertex = 0; k < count; k++) {
    int i = 0;
    while (!(k >> i & 1)) i++;
    vertex ^= 1u << i;
    log_weight += exact_hypercube_flip_spin(self, i, vertex >> i & 1 ? 1 : -1);
    self->cumulative[vertex] = log_weight;
    largest = fmax(largest, log_weight);
  }
  for (uint32_t vertex = 0; vertex < count; vertex++)
    sum = self->cumulative[vertex] = sum + exp(fmax(self->cumulative[vertex] - largest, -700));
}

void exact_hypercube_draw(const Hypercube *self, double uniform, size_t stride, double *x) {
  const double place = uniform * self->cumulative[((size_t)1 << self->d) - 1];
  uint32_t vertex = 0;
  for (int i = self->d - 1; i >= 0; i--) { /* finds the first whose cumulative weight is above `place` */
    const uint32_t middle = vertex | 1u << i;
    if (self->cumulative[middle - 1] <= place) vertex = middle;
  }
  for (int i = 0; i < self->d; i++) x[(size_t)i * stride] = vertex >> i & 1 ? 1 : -1;
}
