#include "model/logs/logs_identified.h"

#include "core/linalg/linalg.h"

#include <math.h>
#include <string.h>

/* ---- noise */

/* Copies the X'X of a task into gram[d, d], in units scale[d]. */
static void logs_scaled_gram(const Logs *logs, int task, const double *scale, double *gram) {
  const size_t d = (size_t)logs->d;
  const double *entry = logs_task(logs, task);
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++, entry++) gram[i * d + j] = gram[j * d + i] = *entry * scale[i] * scale[j];
}

/* Computes out = sum over tasks G m G with m[d, d] symmetric; gram and half are scratch[d, d]. */
static void logs_sandwich(const Logs *logs, const double *scale, const double *m, double *gram, double *half,
                          double *out) {
  const int d = logs->d;
  memset(out, 0, (size_t)(d * d) * sizeof *out);
  for (int t = 0; t < logs->tasks; t++) {
    double *product = half + d * d;
    logs_scaled_gram(logs, t, scale, gram);
    linalg_product(d, false, gram, false, m, half);
    linalg_product(d, false, half, false, gram, product);
    for (int i = 0; i < d * d; i++) out[i] += product[i];
  }
}

static double logs_inner(int n, const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Returns the degrees of freedom that tasks with more observations than dimensions have for certain. */
static double logs_certain_freedom(const Logs *logs) {
  const size_t width = logs_width(logs->d);
  double sum = 0;
  for (int t = 0; t < logs->tasks; t++) sum += fmax(logs_task(logs, t)[width - 1] - logs->d, 0);
  return sum;
}

/* Minimises sum |I - X M X'|^2 = sum of [n - 2 tr(M G) + tr(M G M G)] by conjugate gradients, from M = 0. */
Status logs_noise_freedom(const Logs *logs, double enough, double *out) {
  enum { STEPS = 100 };
  const double settled = 1e-20;
  const int d = logs->d, square = d * d;
  SCRATCH_ARENA(scratch);
  double *scale, *gram, *half, *residual, *direction, *image, length;
  *out = logs_certain_freedom(logs);
  if (*out >= enough) return STATUS_OK;
  ALLOCATE(&scratch, scale, d);
  ALLOCATE_ARRAYS(&scratch, square, &gram, &residual, &direction, &image);
  ALLOCATE(&scratch, half, 2 * square);
  for (int i = 0; i < d; i++) scale[i] = 1;
  for (int t = 0; t < logs->tasks; t++) {
    logs_scaled_gram(logs, t, scale, gram);
    for (int i = 0; i < square; i++) residual[i] += gram[i];
  }
  for (int i = 0; i < d; i++)
    if (residual[i * (d + 1)] > 0) scale[i] = 1 / sqrt(residual[i * (d + 1)] / logs->tasks);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) residual[i * d + j] *= scale[i] * scale[j];
  memcpy(direction, residual, (size_t)square * sizeof *direction);
  *out = (double)logs->observations;
  length = logs_inner(square, residual, residual);
  const double first = length;
  for (int step = 0; step < STEPS && length > settled * first; step++) {
    logs_sandwich(logs, scale, direction, gram, half, image);
    const double curvature = logs_inner(square, direction, image), before = length;
    if (!(curvature > 0)) break;
    const double by = length / curvature;
    *out -= by * length; /* each step lowers the sum by this */
    for (int i = 0; i < square; i++) residual[i] -= by * image[i];
    length = logs_inner(square, residual, residual);
    for (int i = 0; i < square; i++) direction[i] = residual[i] + length / before * direction[i];
  }
  *out = fmax(*out, 0);
  return STATUS_OK;
}

/* ---- clicks */

Status logs_seen_twice(const Logs *logs, bool *seen_twice) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)logs->d;
  bool *in_task, *in_any;
  ALLOCATE(&scratch, in_task, (size_t)logs->tasks * d);
  ALLOCATE(&scratch, in_any, d);
  memset(seen_twice, 0, d * sizeof *seen_twice);
  for (int64_t r = 0; r < logs->observations; r++) {
    const double *row = logs_row(logs, r);
    bool *own = in_task + (size_t)row[d + 1] * d;
    for (size_t i = 0; i < d; i++) {
      if (row[i] == 0) continue;
      if (own[i]) seen_twice[i] = true;
      own[i] = in_any[i] = true;
    }
  }
  for (size_t i = 0; i < d; i++)
    if (!in_any[i]) seen_twice[i] = true;
  return STATUS_OK;
}

static Status logs_check_clicks(const Logs *logs) {
  SCRATCH_ARENA(scratch);
  bool *seen_twice, any = false;
  ALLOCATE(&scratch, seen_twice, logs->d);
  TRY(logs_seen_twice(logs, seen_twice));
  for (int i = 0; i < logs->d; i++) any = any || seen_twice[i];
  if (any) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "no task has two clicks that depend on the same coordinate of theta, so how much theta varies "
      "from task to task does not show in these logs; give logs with several clicks per task");
}

Status logs_check_identified(const Logs *logs) {
  const double share = 1e-6; /* of the observations; rounding leaves less */
  double freedom;
  if (logs->likelihood->ops->binary) return logs_check_clicks(logs);
  if (!logs->estimate_noise || logs_has_rows(logs)) return STATUS_OK;
  TRY(logs_noise_freedom(logs, 1, &freedom));
  if (freedom > share * (double)logs->observations) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "no task has more observations than coordinates of theta show in them, so only the sum of two "
      "variances can be learned, that of the noise and that of theta; give the noise (--noise S), "
      "or logs with more observations per task");
}
