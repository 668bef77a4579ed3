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
  const int lanes = likelihood_rows(&policy->setup.problem->likelihood, runs);
  const size_t square = (size_t)d * (size_t)d;
  *out = (Ridge){0};
  ALLOCATE(memory, out->cholesky, square * (size_t)runs);
  ALLOCATE(memory, out->theta, (size_t)d * (size_t)runs);
  TRY(irls_create(memory, d, lanes, 1e-8, &out->irls));
  ALLOCATE_ARRAYS(memory, square * (size_t)lanes, &out->prior_precision, &out->precision);
  ALLOCATE_ARRAYS(memory, (size_t)d * (size_t)lanes, &out->prior_vector, &out->vector);
  policy_ridge_add_identity(d, lanes, out->prior_precision);
  return STATUS_OK;
}

void ridge_update(Ridge *ridge, const History *history, int64_t *fallbacks) {
  const int d = history->d, runs = history->runs;
  const HistoryView view = history_view(history, 1, 0, runs);
  if (!history_evidence(&view, ridge->cholesky, ridge->theta)) {
    const PriorLanes prior = {.precision = ridge->prior_precision, .vector = ridge->prior_vector};
    const EvidenceLanes evidence = {.precision = ridge->precision, .vector = ridge->vector};
    irls_solve(&ridge->irls, &view, prior, evidence, ridge->theta, fallbacks);
    memcpy(ridge->cholesky, ridge->irls.factor,
           (size_t)d * (size_t)d * (size_t)runs * sizeof *ridge->cholesky);
    return;
  }
  policy_ridge_add_identity(d, runs, ridge->cholesky);
  linalg_factor_cholesky(d, runs, ridge->cholesky, NULL);
  linalg_factor_solve(d, runs, ridge->cholesky, ridge->theta);
}
