#include "model/logs/logs.h"

#include "io/io_logs.h"

#include <limits.h>
#include <string.h>

Status logs_create(Arena *memory, int d, const Likelihood *likelihood, Logs *out) {
  ASSERT(d >= 1);
  *out = (Logs){.memory = memory, .d = d, .likelihood = likelihood};
  return STATUS_OK;
}

/* Adds a block of `size` zeros to the list blocks[count]. */
static Status logs_add_block(Arena *memory, size_t count, size_t size, double ***blocks) {
  GROW(memory, *blocks, count);
  ALLOCATE(memory, (*blocks)[count], size);
  return STATUS_OK;
}

static Status logs_add_row(Logs *logs, int task, const double *x, double y) {
  const size_t d = (size_t)logs->d, index = (size_t)logs->observations;
  if (index % LOGS_ROWS == 0)
    TRY(logs_add_block(logs->memory, index / LOGS_ROWS, LOGS_ROWS * (d + 2), &logs->row_block));
  double *row = logs->row_block[index / LOGS_ROWS] + index % LOGS_ROWS * (d + 2);
  memcpy(row, x, d * sizeof *x);
  row[d] = y;
  row[d + 1] = task;
  return STATUS_OK;
}

const double *logs_row(const Logs *logs, int64_t index) {
  return logs->row_block[index / LOGS_ROWS] + (size_t)(index % LOGS_ROWS) * (size_t)(logs->d + 2);
}

/* Adds a task without observations. */
static Status logs_begin_task(Logs *logs) {
  const int task = logs->tasks;
  if (task == INT_MAX) return status_set(STATUS_INPUT, "the logs have more than %d tasks", INT_MAX);
  if (task % LOGS_BLOCK == 0)
    TRY(logs_add_block(logs->memory, (size_t)task / LOGS_BLOCK, LOGS_BLOCK * logs_width(logs->d),
                       &logs->block));
  logs->tasks++;
  return STATUS_OK;
}

Status logs_add_task(Logs *logs, const double *entry) {
  const size_t width = logs_width(logs->d);
  ASSERT(!logs_has_rows(logs));
  TRY(logs_begin_task(logs));
  memcpy(logs_task(logs, logs->tasks - 1), entry, width * sizeof *entry);
  logs->observations += (int64_t)entry[width - 1];
  return STATUS_OK;
}

Status logs_add(Logs *logs, int task, const double *x, double y) {
  const int d = logs->d;
  ASSERT(task >= 0 && task <= logs->tasks);
  if (task == logs->tasks) TRY(logs_begin_task(logs));
  if (logs_has_rows(logs)) TRY(logs_add_row(logs, task, x, y));
  logs->observations++;
  logs->clicks += y == 0 || y == 1;
  double *entry = logs_task(logs, task);
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) *entry++ += x[i] * x[j];
  for (int i = 0; i < d; i++) *entry++ += x[i] * y;
  *entry++ += y * y;
  *entry += 1;
  return STATUS_OK;
}

Status logs_select(Arena *memory, const Logs *logs, int count, const int *task, Logs *out) {
  SCRATCH_ARENA(scratch);
  const size_t width = logs_width(logs->d);
  int *place; /* number of each task in `out`, or -1 */
  TRY(logs_create(memory, logs->d, logs->likelihood, out));
  out->estimate_noise = logs->estimate_noise;
  ALLOCATE(&scratch, place, logs->tasks);
  memset(place, -1, (size_t)logs->tasks * sizeof *place);
  for (int k = 0; k < count; k++) {
    TRY(logs_begin_task(out));
    memcpy(logs_task(out, k), logs_task(logs, task[k]), width * sizeof(double));
    if (!logs_has_rows(logs)) out->observations += (int64_t)logs_task(out, k)[width - 1];
    place[task[k]] = k;
  }
  for (int64_t r = 0; r < logs->observations && logs_has_rows(logs); r++) {
    const double *row = logs_row(logs, r);
    const int to = place[(int)row[logs->d + 1]];
    if (to < 0) continue;
    TRY(logs_add_row(out, to, row, row[logs->d]));
    out->observations++;
  }
  return STATUS_OK;
}

Status logs_sample(Arena *memory, const Logs *logs, int most, uint64_t seed, Logs *out) {
  SCRATCH_ARENA(scratch);
  Rng rng = {.key = rng_key(seed, RNG_PAST_TASKS)};
  const int n = logs->tasks, count = n < most ? n : most;
  int *order;
  ALLOCATE(&scratch, order, n);
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = 0; i < count; i++) {
    const int j = i + (int)rng_index(&rng, (uint64_t)(n - i)), swap = order[i];
    order[i] = order[j], order[j] = swap;
  }
  return logs_select(memory, logs, count, order, out);
}

/* ---- from a file */

static Status logs_begin_file(void *context, int d) {
  Logs *logs = context;
  return logs_create(logs->memory, d, logs->likelihood, logs);
}

static Status logs_take_file_row(void *context, int task, const double *x, double y) {
  Logs *logs = context;
  const LikelihoodOps *ops = logs->likelihood->ops;
  if (!ops->admits(y))
    return status_set(STATUS_INPUT, "the reward is %g; with the likelihood '%s' it must be %s", y, ops->name,
                      ops->rewards);
  return logs_add(logs, task, x, y);
}

Status logs_read(Arena *memory, const char *path, const Likelihood *likelihood, bool estimate_noise,
                 void (*progress)(double done, double total), Logs *out) {
  const LogsSink sink = {
      .context = out, .begin = logs_begin_file, .row = logs_take_file_row, .progress = progress};
  *out = (Logs){.memory = memory, .likelihood = likelihood};
  TRY(io_logs_read(path, &sink));
  out->estimate_noise = estimate_noise;
  return STATUS_OK;
}

Status logs_digest(const Logs *logs, char out[DIGEST_SIZE]) {
  Digest digest;
  const size_t width = logs_width(logs->d) * sizeof(double);
  digest_begin(&digest);
  for (int t = 0; t < logs->tasks; t++) digest_add(&digest, logs_task(logs, t), width);
  for (int64_t r = 0; logs_has_rows(logs) && r < logs->observations; r++)
    digest_add(&digest, logs_row(logs, r), (size_t)(logs->d + 2) * sizeof(double));
  return digest_end(&digest, out);
}
