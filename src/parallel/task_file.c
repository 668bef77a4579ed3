#include "parallel/task_file.h"

#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"
#include "parallel/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

Status task_file_path(const char *directory, int task, bool failed, size_t size, char *path) {
  char name[FOLDER_NAME];
  folder_task_name(task, failed, name);
  const int length = snprintf(path, size, "%s/tasks/%s", directory, name);
  if (length < 0 || (size_t)length >= size)
    return status_set(STATUS_FILE, "%s: the path is too long", directory);
  return STATUS_OK;
}

static Status write_task(StoreFile *file, const Study *study, const Task *task, const TaskResult *result) {
  int run, point, dimensions[2], seconds, fallbacks;
  TRY(store_dimension(file, "run", (size_t)result->runs, &run));
  TRY(store_dimension(file, study->ops->axis, (size_t)result->points, &point));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_int_attribute(file, NULL, "task", task->index));
  TRY(store_int_attribute(file, NULL, "first_run", task->first_run));
  TRY(store_int_attribute(file, NULL, "status", result->status));
  TRY(store_text_attribute(file, NULL, "message", result->message));
  TRY(store_int_attribute(file, NULL, "seed", (int64_t)study->seed));
  dimensions[0] = run, dimensions[1] = point;
  TRY(store_variable(file, "seconds", STORE_DOUBLE, 1, &run, "CPU seconds of a run", "s", &seconds));
  TRY(store_variable(file, "fallbacks", STORE_INT64, 1, &run, "numerical fallbacks", "1", &fallbacks));
  TRY(store_put(file, seconds, result->seconds));
  TRY(store_put(file, fallbacks, result->fallbacks));
  for (int c = 0; c < study->curve_count; c++) {
    const StudyCurve *curve = study->curves[c];
    int id;
    TRY(store_variable(file, curve->name, STORE_DOUBLE, 2, dimensions, curve->long_name, curve->units, &id));
    TRY(store_put(file, id, result->curves + (size_t)c * (size_t)result->runs * (size_t)result->points));
  }
  return STATUS_OK;
}

/* What is damaged is set aside. */
static Status make_room(const char *path) {
  return ownership_of(AT_FDCWD, path) == OWNERSHIP_UNKNOWN ? durable_set_aside(path) : STATUS_OK;
}

Status task_file_forget_failure(const char *directory, const Study *study, const Task *task) {
  char path[PATH_SIZE];
  TRY(task_file_path(directory, task->index, true, sizeof path, path));
  if (ownership_carries(AT_FDCWD, path, study->file->sha256)) unlink(path);
  return STATUS_OK;
}

Status task_file_save(const char *directory, const Study *study, const Task *task, const TaskResult *result) {
  char path[PATH_SIZE];
  const bool failed = result->status != RUN_OK;
  TRY(task_file_path(directory, task->index, failed, sizeof path, path));
  TRY(make_room(path));
  StoreFile *file;
  TRY(store_create(path, STORE_CLASSIC, &file));
  TRY(store_finish(file, write_task(file, study, task, result)));
  return failed ? STATUS_OK : task_file_forget_failure(directory, study, task);
}

static Status read_task(StoreFile *file, const Study *study, const Task *task, TaskResult *result) {
  char *sha = NULL;
  int64_t index, first_run, state;
  TRY(store_get_text_attribute(file, NULL, "config_sha256", &sha));
  bool same = strcmp(sha, study->file->sha256) == 0;
  free(sha);
  TRY(store_get_int_attribute(file, NULL, "task", &index));
  TRY(store_get_int_attribute(file, NULL, "first_run", &first_run));
  TRY(store_get_int_attribute(file, NULL, "status", &state));
  if (!same || index != task->index || first_run != task->first_run)
    return status_set(STATUS_INPUT, "%s: a task of another study", store_path(file));
  char *message = NULL;
  TRY(store_get_text_attribute(file, NULL, "message", &message));
  snprintf(result->message, sizeof result->message, "%s", message);
  free(message);
  result->status = (RunStatus)state;
  size_t shape[2] = {(size_t)task->runs, (size_t)result->points};
  TRY(store_shape(file, "seconds", 1, shape));
  TRY(store_get_doubles(file, "seconds", result->seconds));
  TRY(store_shape(file, "fallbacks", 1, shape));
  TRY(store_get_int64s(file, "fallbacks", result->fallbacks));
  for (int c = 0; c < study->curve_count; c++) {
    TRY(store_shape(file, study->curves[c]->name, 2, shape));
    TRY(store_get_doubles(file, study->curves[c]->name,
                          result->curves + (size_t)c * (size_t)task->runs * (size_t)result->points));
  }
  return STATUS_OK;
}

Status task_file_load(const char *directory, const Study *study, const Task *task, bool failed,
                      TaskResult *result) {
  char path[PATH_SIZE];
  StoreFile *file;
  TRY(task_file_path(directory, task->index, failed, sizeof path, path));
  TRY(store_open_own(path, &file));
  Status status = read_task(file, study, task, result);
  store_abandon(file);
  return status;
}
