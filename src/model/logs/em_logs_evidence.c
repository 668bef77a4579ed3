/* The evidence of tasks: sums with a conjugate likelihood; otherwise expectation propagation, corrected by
 * weighted points, in every E-step or kept from one. */
#include "core/core_tick.h"
#include "core/linalg/linalg.h"
#include "model/history/ep_doubt.h"
#include "model/logs/em_logs_internal.h"
#include "model/mixture/mixture_evidence.h"

#include <string.h>

/* Tolerances of the modes that expectation propagation starts from, and of its sites: the remaining errors
 * average out over tasks. */
static const double START_TOLERANCE = 1e-2, SITE_TOLERANCE = 2e-2;

/* ---- evidence of a chunk */

/* Loads a task into lane n of the chunk, with y - X shift in place of y and X scale in place of X. */
static void em_logs_load_task(const EmLogs *self, const double *task, int n) {
  const size_t d = (size_t)self->data.d, packed = d * (d + 1) / 2;
  const double *gram = task, *moment = task + packed, *shift = self->frame->shift,
               *scale = self->frame->scale;
  Scratch *at = self->scratch;
  double square = moment[d];
  for (size_t i = 0; i < d; i++) {
    double pull = 0;
    for (size_t j = 0; j < d; j++) {
      const double entry = gram[i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i];
      at->gram[(i * d + j) * N + (size_t)n] = entry * scale[i] * scale[j];
      pull += entry * shift[j];
    }
    at->moment[i * N + (size_t)n] = scale[i] * (moment[i] - pull);
    square += shift[i] * (pull - 2 * moment[i]);
  }
  at->square[n] = fmax(square, 0);
  at->count[n] = moment[d + 1];
}

void em_logs_load_chunk(const EmLogs *self, int first, int items) {
  const int d = self->data.d;
  const double factor = 1 / self->variance;
  Scratch *at = self->scratch;
  at->used = items - first < N ? items - first : N;
  memset(at->gram, 0, (size_t)(d * d * N) * sizeof *at->gram);
  memset(at->moment, 0, (size_t)(d * N) * sizeof *at->moment);
  memset(at->square, 0, N * sizeof *at->square);
  memset(at->count, 0, N * sizeof *at->count);
  for (int n = 0; n < at->used; n++)
    em_logs_load_task(self, logs_task(self->logs, (self->first + first + n) % self->logs->tasks), n);
  for (int i = 0; i < d * d * N; i++) at->precision[i] = at->gram[i] * factor;
  for (int i = 0; i < d * N; i++) at->vector[i] = at->moment[i] * factor;
}

void em_logs_set_priors(const EmLogs *self, const Mixture *mixture, const int *c) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  for (int n = 0; n < N; n++) {
    const double *precision = mixture_precision(mixture, c[n]),
                 *information = mixture_information(mixture, c[n]);
    for (int i = 0; i < d * d; i++) at->one_precision[i * N + n] = precision[i];
    for (int i = 0; i < d; i++) at->one_vector[i * N + n] = information[i];
    if (!logs_has_rows(self->logs)) continue;
    for (int i = 0; i < d * d; i++) at->one_root[i * N + n] = mixture->cholesky[c[n] * d * d + i];
    for (int i = 0; i < d; i++) at->one_mean[i * N + n] = mixture->mean[c[n] * d + i];
  }
}

/* Computes each lane's evidence by expectation propagation, under its prior, and log_mass[N], the logarithm
 * of the integral of prior times likelihood; log_volume[N] is that of the factor which depends only on the
 * prior (ep.h). Where that is not exact enough, weighted points correct both (logs_points.h). */
static void em_logs_approximate_tasks(const EmLogs *self, int first, const double *log_volume,
                                      double *log_mass) {
  Scratch *at = self->scratch;
  const size_t vector = (size_t)self->data.d * N;
  const HistoryView in_theta = history_view(&at->history[first / N], 1, 0, N),
                    view = history_view_in(in_theta, self->frame->shift, self->frame->scale);
  const Rng stream = {.key = rng_key(0, RNG_PAST_POINTS), .round = (uint32_t)(self->first + first)};
  memset(at->precision, 0, (size_t)self->data.d * vector * sizeof *at->precision);
  memset(at->vector, 0, vector * sizeof *at->vector);
  const PriorLanes prior = {.precision = at->one_precision, .vector = at->one_vector};
  const EvidenceLanes evidence = {.precision = at->precision, .vector = at->vector};
  irls_solve(&at->irls, &view, prior, evidence, at->mode, at->fallbacks);
  ep_solve(&at->ep, &view, prior, evidence, log_mass, at->fallbacks);
  for (int n = 0; n < N; n++) log_mass[n] += log_volume[n];
  ep_find_inexact(&at->ep, &view, prior, evidence, at->inexact);
  const RootLanes root = {.mean = at->one_mean, .root = at->one_root};
  logs_points_weigh(&at->points, &view, root, evidence, at->inexact, stream, log_mass);
  for (int n = 0; n < N; n++) log_mass[n] -= at->padding[first + n];
}

void em_logs_integrate(const EmLogs *self, const Mixture *mixture, int c, double *log_weight) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  mixture_evidence_add(mixture, c, N, at->precision, at->vector, at->factor, at->mean);
  linalg_factor_cholesky(d, N, at->factor, at->jitters);
  linalg_factor_forward(d, N, at->factor, at->mean);
  mixture_evidence_weigh(d, N, at->constant[c] + 0.5 * d * log(2 * M_PI), at->factor, at->mean, log_weight);
}

/* Does the work of em_logs_find_evidence for rows, whatever is kept. */
static void em_logs_find_now(const EmLogs *self, const Mixture *mixture, int c, int first,
                             double *log_scale) {
  Scratch *at = self->scratch;
  const double weight = log(mixture->weight[c]),
               volume = at->constant[c] + 0.5 * self->data.d * log(2 * M_PI) - weight;
  double log_volume[N], log_mass[N], log_weight[N];
  int component[N];
  for (int n = 0; n < N; n++) {
    component[n] = c;
    log_volume[n] = volume;
  }
  em_logs_set_priors(self, mixture, component);
  em_logs_approximate_tasks(self, first, log_volume, log_mass);
  for (int n = 0; n < N; n++) at->few[c * N + n] = at->inexact[n] && !at->points.enough[n];
  em_logs_integrate(self, mixture, c, log_weight);
  for (int n = 0; n < N; n++) log_scale[n] = log_mass[n] + weight - log_weight[n];
}

/* ---- evidence that is kept */

/* Returns the evidence of a chunk under component c: log_scale[N], then b and the lower triangle of Lambda.
 */
static double *em_logs_kept(const EmLogs *self, int c, int first) {
  const size_t chunks = (size_t)(self->data.items + N - 1) / N, size = em_features(self->data.d) * N;
  return self->scratch->evidence + ((size_t)c * chunks + (size_t)(first / N)) * size;
}

static void em_logs_keep(const EmLogs *self, int c, int first, const double *log_scale) {
  const int d = self->data.d;
  const Scratch *at = self->scratch;
  double *row = em_logs_kept(self, c, first);
  memcpy(row, log_scale, N * sizeof *row);
  memcpy(row + N, at->vector, (size_t)(d * N) * sizeof *row);
  row += (1 + d) * N;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++, row += N) memcpy(row, at->precision + (i * d + j) * N, N * sizeof *row);
}

static void em_logs_recall(const EmLogs *self, int c, int first, double *log_scale) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  const double *row = em_logs_kept(self, c, first);
  memcpy(log_scale, row, N * sizeof *row);
  memcpy(at->vector, row + N, (size_t)(d * N) * sizeof *row);
  row += (1 + d) * N;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++, row += N) {
      memcpy(at->precision + (i * d + j) * N, row, N * sizeof *row);
      memcpy(at->precision + (j * d + i) * N, row, N * sizeof *row);
    }
}

Status em_logs_approximate(EmLogs *self, const Mixture *mixture) {
  Scratch *at = self->scratch;
  const int chunks = (self->data.items + N - 1) / N, size = self->ranks ? self->ranks->size : 1,
            rank = self->ranks ? self->ranks->rank : 0;
  ASSERT(logs_has_rows(self->logs) && mixture->components <= at->most);
  if (!at->evidence)
    ALLOCATE(at->memory, at->evidence, (size_t)(at->most * chunks) * em_features(self->data.d) * N);
  at->kept = mixture->components;
  mixture_evidence_constants(mixture, at->constant);
  for (int s = 0; s < EM_LOGS_SLICES; s++) {
    if (em_logs_owner(s, size) != rank) continue;
    for (int chunk = em_logs_slice(s, chunks); chunk < em_logs_slice(s + 1, chunks); chunk++)
      for (int c = 0; c < mixture->components; c++) {
        double log_scale[N];
        TRY(core_tick_check(0));
        em_logs_find_now(self, mixture, c, chunk * N, log_scale);
        em_logs_keep(self, c, chunk * N, log_scale);
      }
  }
  return STATUS_OK;
}

void em_logs_find_evidence(const EmLogs *self, const Mixture *mixture, int c, int first, double *log_scale) {
  memset(log_scale, 0, N * sizeof *log_scale);
  if (self->scratch->kept > 0)
    em_logs_recall(self, self->scratch->kept > 1 ? c : 0, first, log_scale);
  else if (logs_has_rows(self->logs))
    em_logs_find_now(self, mixture, c, first, log_scale);
}

void em_logs_find_own_evidence(const EmLogs *self, int first) {
  const double log_volume[N] = {0};
  double ignored[N];
  if (self->scratch->kept == 1)
    em_logs_recall(self, 0, first, ignored);
  else if (logs_has_rows(self->logs))
    em_logs_approximate_tasks(self, first, log_volume, ignored);
}

/* ---- rows */

/* Arranges the rows of one chunk as rounds of a history, and computes their padding; the rows of task t are
 * row[start[t]] .. row[start[t + 1] - 1]. */
static Status em_logs_fill_history(Arena *memory, const EmLogs *self, int chunk, const int64_t *start,
                                   const int64_t *row) {
  SCRATCH_ARENA(scratch);
  const Logs *logs = self->logs;
  const int d = logs->d, left = self->data.items - chunk * N;
  const double zero = 0;
  History *history = &self->scratch->history[chunk];
  int64_t from[N], count[N] = {0}, rounds = 0;
  double *phi, y[N], none;
  ALLOCATE(&scratch, phi, d * N);
  for (int n = 0; n < N && n < left; n++) {
    const int64_t task = ((int64_t)self->first + chunk * N + n) % logs->tasks;
    from[n] = start[task];
    count[n] = start[task + 1] - from[n];
    if (count[n] > rounds) rounds = count[n];
  }
  TRY(history_create(memory, d, N, logs->likelihood, history));
  TRY(history_reserve(history, (int)rounds));
  for (int64_t k = 0; k < rounds; k++) {
    memset(phi, 0, (size_t)(d * N) * sizeof *phi);
    memset(y, 0, sizeof y);
    for (int n = 0; n < N; n++) {
      if (k >= count[n]) continue;
      const double *own = logs_row(logs, row[from[n] + k]);
      for (int i = 0; i < d; i++) phi[i * N + n] = own[i];
      y[n] = own[d];
    }
    history_record(history, NULL, phi, y);
  }
  logs->likelihood->ops->deviance(logs->likelihood, 1, &zero, &zero, &none);
  for (int n = 0; n < N; n++) self->scratch->padding[chunk * N + n] = -none / 2 * (double)(rounds - count[n]);
  return STATUS_OK;
}

Status em_logs_create_rows(Arena *memory, int components, const EmLogs *self) {
  SCRATCH_ARENA(scratch);
  const Logs *logs = self->logs;
  const int chunks = (self->data.items + N - 1) / N;
  const size_t width = logs_width(logs->d);
  Scratch *at = self->scratch;
  int64_t *start, *next, *row;
  ALLOCATE(memory, at->history, chunks);
  ALLOCATE(memory, at->padding, (size_t)chunks * N);
  ALLOCATE(memory, at->mode, logs->d * N);
  ALLOCATE(memory, at->fallbacks, N);
  ALLOCATE(memory, at->few, components * N);
  ALLOCATE(memory, at->inexact, N);
  at->most = components;
  at->memory = memory;
  TRY(irls_create(memory, logs->d, N, START_TOLERANCE, &at->irls));
  TRY(ep_create(memory, logs->d, N, SITE_TOLERANCE, &at->ep));
  TRY(logs_points_create(memory, logs->d, N, &at->points));
  ALLOCATE(memory, at->one_root, logs->d * logs->d * N);
  ALLOCATE(memory, at->one_mean, logs->d * N);
  ALLOCATE(&scratch, start, logs->tasks + 1);
  ALLOCATE(&scratch, next, logs->tasks);
  ALLOCATE(&scratch, row, logs->observations);
  for (int t = 0; t < logs->tasks; t++) {
    next[t] = start[t];
    start[t + 1] = start[t] + (int64_t)logs_task(logs, t)[width - 1];
  }
  for (int64_t r = 0; r < logs->observations; r++) row[next[(int)logs_row(logs, r)[logs->d + 1]]++] = r;
  for (int chunk = 0; chunk < chunks; chunk++) TRY(em_logs_fill_history(memory, self, chunk, start, row));
  return STATUS_OK;
}
