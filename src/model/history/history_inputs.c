/* Rows that are kept separately for each run, for a mean reward that is a network; network_rows.c reads
 * them. */
#include "model/history/history_internal.h"

#include <string.h>

static Status history_inputs_reserve(History *history, int rounds) {
  HistoryInputs *self = history_inputs(history);
  const size_t runs = (size_t)history->runs;
  const int width = (rounds + NETWORK_LANES - 1) / NETWORK_LANES * NETWORK_LANES;
  ALLOCATE(history->memory, self->inputs, runs * (size_t)history->d * (size_t)width);
  ALLOCATE(history->memory, self->responses, runs * (size_t)width);
  self->capacity = rounds;
  self->width = width;
  return STATUS_OK;
}

static void history_inputs_clear(History *history) {
  const HistoryInputs *self = history_inputs(history);
  const size_t responses = (size_t)history->runs * (size_t)self->width;
  memset(self->inputs, 0, responses * (size_t)history->d * sizeof *self->inputs);
  memset(self->responses, 0, responses * sizeof *self->responses);
}

static void history_inputs_append(History *history, const int *arm, const double *phi, const double *y) {
  const HistoryInputs *self = history_inputs(history);
  const size_t d = (size_t)history->d, runs = (size_t)history->runs, width = (size_t)self->width;
  ASSERT(history->rounds < self->capacity);
  for (size_t n = 0; n < runs; n++) {
    const size_t l = (size_t)history_observations(history, (int)n);
    if (arm && arm[n] < 0) continue;
    for (size_t i = 0; i < d; i++) self->inputs[(n * d + i) * width + l] = (float)phi[i * runs + n];
    self->responses[n * width + l] = y[n];
  }
}

const HistoryOps history_form_inputs = {.size = sizeof(HistoryInputs),
                                        .reserve = history_inputs_reserve,
                                        .append = history_inputs_append,
                                        .clear = history_inputs_clear};
