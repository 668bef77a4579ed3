#include "app/train_logs.h"

#include "model/logs/logs_read.h"
#include "model/prior/fit_keys.h"
#include "parallel/logs_learn.h"

#include <stdio.h>
#include <string.h>

/* Takes the options: as many components as predict best, unless a number is asked for. */
static Status take_options(const TrainLogs *job, int d, PriorFit *fit) {
  bool given = false;
  TRY(fit_of_options("--option", job->options->count, job->options->texts, job->seed, fit));
  for (int i = 0; i < job->options->count; i++)
    given = given || strncmp(job->options->texts[i], "components=", strlen("components=")) == 0;
  if (!given) fit->components = 0;
  prior_settle(job->family, fit, d);
  return STATUS_OK;
}

static Progress reading;

static void show_reading(double done, double total) {
  const double mega = 1e6;
  progress_update(&reading, (long)(done / mega), (long)(total / mega), total > 0 ? done / total : 0);
}

/* Reads logs on rank 0. */
static Status read_logs(Arena *memory, const Parallel *parallel, const TrainLogs *job, Logs *logs) {
  Status status = STATUS_OK;
  reading = progress_begin(PROGRESS_AUTO, parallel->rank == 0, "reading logs, MB");
  if (parallel->rank == 0)
    status = logs_read(memory, job->file, &job->likelihood, job->estimate_noise, show_reading, logs);
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(&logs->d, sizeof logs->d);
  logs->likelihood = &job->likelihood;
  return STATUS_OK;
}

void train_warn_of_few(const Prior *prior, int tasks) {
  enum { ENOUGH = 10 };
  const int components = prior->mixture ? prior->mixture->components : 1;
  if (tasks < ENOUGH * components)
    fprintf(stderr,
            "note: %d past task%s for a prior of %d component%s: with fewer than %d for each it follows "
            "single tasks, and a posterior under it may be far too sure\n",
            tasks, tasks == 1 ? "" : "s", components, components == 1 ? "" : "s", ENOUGH);
}

static void report(const TrainLogs *job, const Logs *logs, const Prior *prior, const LogsLearned *learned) {
  printf("%s: %s prior in %d dimensions from %lld observations of %d tasks%s, %.3g CPU seconds", job->output,
         prior->ops->name, prior->d, (long long)logs->observations, logs->tasks,
         learned->resumed ? " (going on from the partial file)" : "", prior->seconds_fit);
  if (!logs_has_rows(logs))
    printf("; noise %.6g (%s)", prior->noise, job->estimate_noise ? "learned" : "given");
  if (learned->iterations > 0) printf("; %d iterations over all tasks", learned->iterations);
  if (learned->networks_from > 0) printf("; networks from draws of %d tasks", learned->networks_from);
  printf(prior->ops->report ? "; " : "\n");
  if (prior->ops->report) prior->ops->report(prior, stdout);
  train_warn_of_few(prior, logs->tasks);
}

static Status finish(const TrainLogs *job, const char *partial, const Logs *logs, const Prior *prior,
                     const LogsLearned *learned) {
  TRY(prior_save(prior, job->output));
  TRY(logs_learn_done(partial));
  report(job, logs, prior, learned);
  return STATUS_OK;
}

Status train_logs(const Parallel *parallel, const TrainLogs *job) {
  SCRATCH_ARENA(memory);
  Logs logs = {0};
  Prior prior;
  PriorFit fit;
  LogsLearned learned;
  const char *partial;
  TRY(arena_print(&memory, &partial, "%s.partial", job->output));
  TRY(read_logs(&memory, parallel, job, &logs));
  TRY(parallel_agree(parallel, take_options(job, logs.d, &fit)));
  Status status =
      logs_learn(&memory, parallel, job->family, &fit, &logs, partial, PROGRESS_AUTO, &prior, &learned);
  if (status == STATUS_INPUT) status = status_prefix(status, "%s: ", job->file);
  TRY(status);
  if (parallel->rank == 0) status = finish(job, partial, &logs, &prior, &learned);
  return parallel_agree(parallel, status);
}
