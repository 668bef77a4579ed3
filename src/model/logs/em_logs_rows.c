#include "model/logs/em_logs_rows.h"

#include <string.h>

enum { N = LOGS_BLOCK };

/* Tolerances of the modes that expectation propagation starts from, and of its sites: the remaining errors
 * average out over tasks. */
static const double START_TOLERANCE = 1e-2, SITE_TOLERANCE = 2e-2;

static int logs_task_rows(const Logs *logs, int task) {
  return (int)logs_task(logs, task)[logs_width(logs->d) - 1];
}

/* Row numbers sorted by task: those of `task` are row[start[task]] .. row[start[task + 1] - 1]. */
typedef struct {
  int64_t *start, *row;
} Index;

static Status logs_index_rows_by_task(Arena *memory, const Logs *logs, Index *out) {
  SCRATCH_ARENA(scratch);
  int64_t *next;
  ALLOCATE(memory, out->start, logs->tasks + 1);
  ALLOCATE(memory, out->row, logs->observations);
  ALLOCATE(&scratch, next, logs->tasks);
  for (int t = 0; t < logs->tasks; t++) {
    next[t] = out->start[t];
    out->start[t + 1] = out->start[t] + logs_task_rows(logs, t);
  }
  for (int64_t r = 0; r < logs->observations; r++) {
    const int task = (int)logs_row(logs, r)[logs->d + 1];
    out->row[next[task]++] = r;
  }
  return STATUS_OK;
}

/* Arranges the rows of one chunk, with tasks task[N] (-1: none), as rounds of a history, and computes
 * padding[N]. */
static Status em_logs_rows_fill_history(Arena *memory, const Logs *logs, const Index *index, const int *task,
                                        History *history, double *padding) {
  SCRATCH_ARENA(scratch);
  const int d = logs->d;
  const double zero = 0;
  int rounds = 0;
  double *phi, y[N], none;
  ALLOCATE(&scratch, phi, d * N);
  for (int n = 0; n < N; n++)
    if (task[n] >= 0 && logs_task_rows(logs, task[n]) > rounds) rounds = logs_task_rows(logs, task[n]);
  TRY(history_create(memory, d, N, logs->likelihood, history));
  TRY(history_reserve(history, rounds));
  for (int k = 0; k < rounds; k++) {
    memset(phi, 0, (size_t)(d * N) * sizeof *phi);
    memset(y, 0, sizeof y);
    for (int n = 0; n < N; n++) {
      if (task[n] < 0 || k >= logs_task_rows(logs, task[n])) continue;
      const double *row = logs_row(logs, index->row[index->start[task[n]] + k]);
      for (int i = 0; i < d; i++) phi[i * N + n] = row[i];
      y[n] = row[d];
    }
    history_record(history, NULL, phi, y);
  }
  logs->likelihood->ops->deviance(logs->likelihood, 1, &zero, &zero, &none);
  for (int n = 0; n < N; n++)
    padding[n] = -none / 2 * (rounds - (task[n] >= 0 ? logs_task_rows(logs, task[n]) : 0));
  return STATUS_OK;
}

Status em_logs_rows_create(Arena *memory, const Logs *logs, int first, int items, EmLogsRows *out) {
  SCRATCH_ARENA(scratch);
  const int chunks = (items + N - 1) / N;
  Index index;
  *out = (EmLogsRows){.d = logs->d};
  ALLOCATE(memory, out->history, chunks);
  ALLOCATE(memory, out->padding, (size_t)chunks * N);
  ALLOCATE(memory, out->mode, logs->d * N);
  ALLOCATE(memory, out->fallbacks, N);
  TRY(irls_create(memory, logs->d, N, START_TOLERANCE, &out->irls));
  TRY(ep_create(memory, logs->d, N, SITE_TOLERANCE, &out->ep));
  TRY(logs_index_rows_by_task(&scratch, logs, &index));
  for (int chunk = 0; chunk < chunks; chunk++) {
    int task[N];
    for (int n = 0; n < N; n++)
      task[n] = chunk * N + n < items ? (int)(((int64_t)first + chunk * N + n) % logs->tasks) : -1;
    TRY(em_logs_rows_fill_history(memory, logs, &index, task, &out->history[chunk],
                                  out->padding + chunk * N));
  }
  return STATUS_OK;
}

void em_logs_rows_evidence(EmLogsRows *self, int chunk, const double *shift, const double *scale,
                           const double *prior_precision, const double *prior_vector, double *precision,
                           double *vector, double *log_evidence) {
  const int d = self->d;
  const HistoryView view = {&self->history[chunk], 1, 0, N, shift, scale};
  memset(precision, 0, (size_t)(d * d * N) * sizeof *precision);
  memset(vector, 0, (size_t)(d * N) * sizeof *vector);
  irls_solve(&self->irls, &view, prior_precision, prior_vector, precision, vector, self->mode,
             self->fallbacks);
  ep_solve(&self->ep, &view, prior_precision, prior_vector, precision, vector, log_evidence, self->fallbacks);
  for (int n = 0; n < N; n++) log_evidence[n] -= self->padding[chunk * N + n];
}
