#include "policy/ridge.h"

#include "core/linalg.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

Status ridge_create(int d, int runs, Ridge *out) {
  *out = (Ridge){0};
  NEW(out->cholesky, (size_t)d * (size_t)d * (size_t)runs);
  NEW(out->theta, (size_t)d * (size_t)runs);
  return STATUS_OK;
}

void ridge_destroy(Ridge *ridge) {
  free(ridge->cholesky);
  free(ridge->theta);
}

void ridge_update(Ridge *ridge, const History *history) {
  int d = history->d, runs = history->runs;
  size_t size = (size_t)d * (size_t)runs;
  memcpy(ridge->cholesky, history->precision, size * (size_t)d * sizeof *ridge->cholesky);
  for (int i = 0; i < d; i++)
    for (int b = 0; b < runs; b++) ridge->cholesky[(size_t)(i * d + i) * (size_t)runs + (size_t)b] += 1;
  linalg_cholesky_lanes(d, runs, ridge->cholesky, NULL);
  memcpy(ridge->theta, history->vector, size * sizeof *ridge->theta);
  linalg_solve_lanes(d, runs, ridge->cholesky, ridge->theta);
}
