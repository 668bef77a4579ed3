#include "policy/ridge.h"

#include "core/linalg/linalg.h"

#include <string.h>

static void policy_ridge_add_identity(int d, int runs, double *matrix) {
  for (int i = 0; i < d; i++)
    for (int b = 0; b < runs; b++) matrix[(size_t)(i * d + i) * (size_t)runs + (size_t)b] += 1;
}

Status ridge_create(Policy *policy, Ridge *out) {
  Arena *memory = policy->memory;
  const int d = policy->setup.problem->d, runs = policy->setup.runs;
  const size_t vector = (size_t)d * (size_t)runs, matrix = (size_t)d * vector;
  *out = (Ridge){0};
  ALLOCATE(memory, out->cholesky, matrix);
  ALLOCATE(memory, out->theta, vector);
  if (likelihood_is_conjugate(&policy->setup.problem->likelihood)) return STATUS_OK;
  TRY(irls_create(memory, d, runs, 1e-8, &out->irls));
  ALLOCATE_ARRAYS(memory, matrix, out->prior_precision, out->precision);
  ALLOCATE_ARRAYS(memory, vector, out->prior_vector, out->vector);
  policy_ridge_add_identity(d, runs, out->prior_precision);
  return STATUS_OK;
}

void ridge_update(Ridge *ridge, const History *history, int64_t *fallbacks) {
  const int d = history->d, runs = history->runs;
  const size_t vectors = (size_t)d * (size_t)runs;
  const HistoryView view = history_view(history, 1, 0, runs);
  if (ridge->prior_precision) {
    const PriorLanes prior = {.precision = ridge->prior_precision, .vector = ridge->prior_vector};
    const EvidenceLanes evidence = {.precision = ridge->precision, .vector = ridge->vector};
    irls_solve(&ridge->irls, &view, prior, evidence, ridge->theta, fallbacks);
    memcpy(ridge->cholesky, ridge->irls.factor, vectors * (size_t)d * sizeof *ridge->cholesky);
    return;
  }
  history_evidence(&view, ridge->cholesky, ridge->theta);
  policy_ridge_add_identity(d, runs, ridge->cholesky);
  linalg_factor_cholesky(d, runs, ridge->cholesky, NULL);
  linalg_factor_solve(d, runs, ridge->cholesky, ridge->theta);
}
