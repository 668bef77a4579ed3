/* thompson verify: run random finished tasks again and compare every byte with what the folder holds. */
#include "app/app.h"
#include "core/memory.h"
#include "parallel/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *directory;
  int tasks;
} Arguments;

enum { KEY_TASKS = 256 };
static const struct argp_option options[] = {{"tasks", KEY_TASKS, "N", 0, "how many tasks (default: 5)", 0},
                                             {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_TASKS: arguments->tasks = (int)app_integer(state, "--tasks", text, 1, 1000000000); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Run a task again and compare it with its file; `same` tells the outcome. */
static Status verify_task(const Study *study, const Task *task, const char *directory, bool *same) {
  TaskResult kept = {0}, again = {0};
  size_t size = (size_t)study->curve_count * (size_t)task->runs * (size_t)study->points * sizeof(double);
  Status status = task_result_create(study, task, &kept);
  if (status == STATUS_OK) status = task_result_create(study, task, &again);
  if (status == STATUS_OK) status = checkpoint_load(directory, study, task, false, &kept);
  if (status == STATUS_OK) status = study_run_task(study, task, directory, (StudyTick){NULL, NULL}, &again);
  if (status == STATUS_OK)
    *same = kept.status == again.status && memcmp(kept.curves, again.curves, size) == 0 &&
            memcmp(kept.fallbacks, again.fallbacks, (size_t)task->runs * sizeof *kept.fallbacks) == 0;
  task_result_destroy(&kept);
  task_result_destroy(&again);
  return status;
}

/* The finished tasks in random order (Fisher-Yates): order[*count]. */
static Status shuffle_finished(const Study *study, const char *directory, int *order, int *count) {
  signed char *state;
  NEW(state, study->task_count);
  Status status = checkpoint_scan(directory, study, state);
  *count = 0;
  for (int i = 0; i < study->task_count && status == STATUS_OK; i++) {
    Task task = study_task(study, i);
    if (state[i] == RUN_OK && !study_task_is_large(study, &task)) order[(*count)++] = i;
  }
  free(state);
  Rng rng = {.key = rng_key(study->seed, RNG_VERIFY)};
  for (int i = *count - 1; i > 0; i--) {
    int j = (int)rng_index(&rng, (uint64_t)i + 1), kept = order[i];
    order[i] = order[j], order[j] = kept;
  }
  return status;
}

static Status verify(const Study *study, const Arguments *arguments, int *order) {
  int count, different = 0;
  TRY(shuffle_finished(study, arguments->directory, order, &count));
  if (count == 0)
    return status_set(STATUS_INPUT,
                      "%s: no finished task to verify (those of large settings are not run again)",
                      arguments->directory);
  if (arguments->tasks < count) count = arguments->tasks;
  for (int i = 0; i < count; i++) {
    const Task task = study_task(study, order[i]);
    bool same = false;
    TRY(verify_task(study, &task, arguments->directory, &same));
    printf("task %d (setting %s, policy %s, runs %u to %u): %s\n", task.index,
           study->file->setting_labels[task.setting], study->file->policies[task.policy].label,
           task.first_run, task.first_run + (unsigned)task.runs - 1, same ? "same" : "DIFFERENT");
    different += !same;
  }
  if (different)
    return status_set(STATUS_DIFFERENT, "%d of %d tasks differ from what %s holds", different, count,
                      arguments->directory);
  return STATUS_OK;
}

Status app_verify(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "DIR", "Run random finished tasks again and compare every byte.", NULL, NULL, NULL};
  Arguments arguments = {.tasks = 5};
  Study study;
  int *order;
  app_parse(&argp, argc, argv, &arguments);
  TRY(app_study_of_folder(arguments.directory, &study));
  Status status = memory_new((void **)&order, (size_t)study.task_count, sizeof *order);
  if (status == STATUS_OK) status = verify(&study, &arguments, order);
  free(order);
  study_destroy(&study);
  return status;
}
