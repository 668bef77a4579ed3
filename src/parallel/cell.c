#include "parallel/cell.h"

#include "core/memory.h"
#include "parallel/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Status allocate(const Study *study, Cell *cell) {
  size_t runs = (size_t)study->runs;
  NEW(cell->curves, (size_t)study->curve_count * runs * (size_t)study->points);
  NEW(cell->seconds, runs);
  NEW(cell->fallbacks, runs);
  NEW(cell->status, runs);
  return STATUS_OK;
}

Status cell_create(const Study *study, Cell *out) {
  *out = (Cell){0};
  Status status = allocate(study, out);
  if (status != STATUS_OK) cell_destroy(out);
  return status;
}

void cell_destroy(Cell *cell) {
  free(cell->curves);
  free(cell->seconds);
  free(cell->fallbacks);
  free(cell->status);
  *cell = (Cell){0};
}

static void clear(const Study *study, Cell *cell) {
  size_t runs = (size_t)study->runs, size = (size_t)study->curve_count * runs * (size_t)study->points;
  for (size_t i = 0; i < size; i++) cell->curves[i] = NAN;
  for (size_t r = 0; r < runs; r++)
    cell->seconds[r] = NAN, cell->fallbacks[r] = 0, cell->status[r] = RUN_NOT_RUN;
}

static void copy_block(const Study *study, const Task *task, const TaskResult *result, Cell *cell) {
  size_t points = (size_t)study->points, runs = (size_t)study->runs, first = task->first_run,
         block = (size_t)task->runs;
  for (int c = 0; c < study->curve_count; c++)
    memcpy(cell->curves + ((size_t)c * runs + first) * points, result->curves + (size_t)c * block * points,
           block * points * sizeof *cell->curves);
  memcpy(cell->seconds + first, result->seconds, block * sizeof *cell->seconds);
  memcpy(cell->fallbacks + first, result->fallbacks, block * sizeof *cell->fallbacks);
  memset(cell->status + first, result->status, block);
}

static Status load_task(const Study *study, const char *directory, const Task *task, bool failed, Cell *cell,
                        ReduceCounts *counts) {
  TaskResult result;
  TRY(task_result_create(study, task, &result));
  Status status = checkpoint_load(directory, study, task, failed, &result);
  if (status == STATUS_OK) {
    copy_block(study, task, &result, cell);
    if (failed)
      counts->failed++;
    else
      counts->ok++;
  } else if (status == STATUS_INPUT) {
    fprintf(stderr, "thompson: %s; the file is set aside and its runs count as not run\n", status_message());
    status = checkpoint_set_aside(directory, task, failed);
    counts->missing++;
  }
  task_result_destroy(&result);
  return status;
}

/* CPU seconds of the fitted priors of a cell, from the prior files. */
static Status train_seconds(const Study *study, const char *directory, int setting, int policy,
                            double *seconds) {
  const Config *config = study->file->settings[setting];
  Problem problem;
  double sum = 0;
  int fitted = 0;
  TRY(problem_create(config, &problem));
  Status status = STATUS_OK;
  for (int r = 0; r < study_replicates(study) && status == STATUS_OK; r++) {
    Belief belief;
    char path[4096];
    StoreFile *file;
    double value;
    status = belief_create(config, &study->file->policies[policy], &problem, (uint32_t)r, &belief);
    if (status != STATUS_OK || belief.kind != BELIEF_FITTED) continue;
    belief_path(&belief, directory, sizeof path, path);
    if (store_open(path, &file) != STATUS_OK) continue; /* not fitted yet: the study is unfinished */
    if (store_get_real_attribute(file, NULL, "seconds_fit", &value) == STATUS_OK) sum += value, fitted++;
    store_abandon(file);
  }
  problem_destroy(&problem);
  *seconds = fitted ? sum : NAN;
  return status;
}

Status cell_load(const Study *study, const char *directory, const signed char *state, int setting, int policy,
                 Cell *cell, ReduceCounts *counts) {
  int blocks = study->task_count / (study->file->setting_count * study->file->policy_count);
  const Task *tasks = study->tasks + (size_t)(setting * study->file->policy_count + policy) * (size_t)blocks;
  clear(study, cell);
  for (int i = 0; i < blocks; i++) {
    signed char found = state[tasks[i].index];
    if (found == RUN_NOT_RUN)
      counts->missing++;
    else
      TRY(load_task(study, directory, &tasks[i], found == RUN_FAILED, cell, counts));
  }
  return train_seconds(study, directory, setting, policy, &cell->seconds_train);
}

void cell_mean(const Study *study, const double *values, const double *base, double *mean, double *se) {
  int64_t runs = study->runs, points = study->points;
  for (int64_t i = 0; i < points; i++) {
    double sum = 0, squares = 0;
    int64_t n = 0;
    for (int64_t r = 0; r < runs; r++) {
      double value = values[r * points + i] - (base ? base[r * points + i] : 0);
      if (!isnan(value)) sum += value, n++;
    }
    mean[i] = n > 0 ? sum / (double)n : NAN;
    for (int64_t r = 0; r < runs; r++) {
      double value = values[r * points + i] - (base ? base[r * points + i] : 0);
      if (!isnan(value)) squares += (value - mean[i]) * (value - mean[i]);
    }
    se[i] = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : NAN;
  }
}

void cell_replicate_se(const Study *study, const double *values, double *se) {
  int64_t points = study->points;
  for (int64_t i = 0; i < points; i++) {
    double sum = 0, squares = 0;
    int count = 0;
    for (int64_t r = 0; r < study->runs;) { /* Welford's update over the means of replicates */
      uint32_t replicate = study_replicate(study, r);
      double part = 0;
      int64_t n = 0;
      for (; r < study->runs && study_replicate(study, r) == replicate; r++)
        if (!isnan(values[r * points + i])) part += values[r * points + i], n++;
      if (n == 0) continue;
      double step = part / (double)n - sum;
      sum += step / ++count;
      squares += step * (part / (double)n - sum);
    }
    se[i] = count > 1 ? sqrt(squares / (count - 1) / count) : NAN;
  }
}

void cell_completed(const Study *study, const double *values, int *n) {
  for (int64_t i = 0; i < study->points; i++) {
    n[i] = 0;
    for (int64_t r = 0; r < study->runs; r++) n[i] += !isnan(values[r * study->points + i]);
  }
}
