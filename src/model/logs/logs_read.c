#include "model/logs/logs_read.h"

#include "io/logs_file.h"

typedef struct {
  Arena *memory;
  const Likelihood *likelihood;
  Logs *logs;
  void (*progress)(double done, double total);
} Target;

static Status begin(void *context, int d) {
  const Target *target = context;
  return logs_create(target->memory, d, target->likelihood, target->logs);
}

static Status take(void *context, int task, const double *x, double y) {
  const Target *target = context;
  const LikelihoodOps *ops = target->likelihood->ops;
  if (!ops->admits(y))
    return status_set(STATUS_INPUT, "the reward %g; with the likelihood '%s' rewards are %s", y, ops->name,
                      ops->rewards);
  return logs_add(target->logs, task, x, y);
}

static void show(void *context, double done, double total) {
  const Target *target = context;
  target->progress(done, total);
}

Status logs_read(Arena *memory, const char *path, const Likelihood *likelihood, bool estimate_noise,
                 void (*progress)(double done, double total), Logs *out) {
  Target target = {memory, likelihood, out, progress};
  const LogsSink sink = {.context = &target, .begin = begin, .row = take, .progress = progress ? show : NULL};
  TRY(logs_file_read(path, &sink));
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
