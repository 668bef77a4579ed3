#include "parallel/checkpoint.h"

#include "core/arena.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"
#include "parallel/folder.h"
#include "parallel/former.h"
#include "study/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static Status path_of(size_t size, char *path, const char *directory, const char *name) {
  int length = snprintf(path, size, "%s/%s", directory, name);
  if (length < 0 || (size_t)length >= size)
    return status_set(STATUS_FILE, "%s: the path is too long", directory);
  return STATUS_OK;
}

static Status task_path(size_t size, char *path, const char *directory, const Task *task, bool failed) {
  char name[FOLDER_NAME], below[FOLDER_NAME + 8];
  folder_task_name(task->index, failed, name);
  snprintf(below, sizeof below, "tasks/%s", name);
  return path_of(size, path, directory, below);
}

/* mkdir -p */
static Status make_folder(const char *path) {
  char part[PATH_SIZE];
  for (size_t i = 1; i <= strlen(path); i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    if (i >= sizeof part) return status_set(STATUS_FILE, "%s: the path is too long", path);
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return status_set(STATUS_FILE, "%s: cannot make the folder: %s", part, strerror(errno));
  }
  struct stat info;
  if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
    return status_set(STATUS_FILE, "%s: cannot make the folder: a file stands there", path);
  return STATUS_OK;
}

static Status check_same(const char *directory, const char *old, const Study *study) {
  char difference[1024];
  if (!config_first_difference(old, study->file->resolved, sizeof difference, difference)) return STATUS_OK;
  return status_set(STATUS_RESUME, "%s holds another study; %s", directory, difference);
}

/* The folder of an unfinished or new study, with all that belongs in it. Of several shards that begin at once
 * one writes the study. */
static Status make_ready(const char *directory, const Study *study, bool exists) {
  char path[PATH_SIZE];
  TRY(path_of(sizeof path, path, directory, "tasks"));
  TRY(make_folder(path));
  TRY(path_of(sizeof path, path, directory, "priors"));
  TRY(make_folder(path));
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  return exists ? STATUS_OK : store_write_text_first(path, study->file->resolved);
}

/* Whether the folder holds a study; STATUS_FILE when it does and must not, and when it holds what is not the
 * program's to touch. The search for work comes first: a shard that begins meanwhile writes the study before
 * it. */
static Status inspect(const char *directory, CheckpointMode mode, bool *exists) {
  char path[PATH_SIZE], work[PATH_SIZE];
  TRY(folder_check(directory));
  TRY(folder_find_work(directory, sizeof work, work));
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  *exists = access(path, F_OK) == 0;
  if (!*exists && work[0] != '\0')
    return status_set(
        STATUS_FILE,
        "%s holds %s but no study.yaml that says of what; move it away, or use -o for another folder",
        directory, work);
  if (!*exists || mode != CHECKPOINT_FRESH) return STATUS_OK;
  return status_set(STATUS_FILE,
                    "%s already holds a study; use --resume to go on with it, --overwrite to replace it, "
                    "or -o for another folder",
                    directory);
}

static Status compare(const char *directory, const Study *study) {
  char *old;
  TRY(checkpoint_study(directory, &old));
  Status status = check_same(directory, old, study);
  free(old);
  return status;
}

/* Remove the study in the folder. Its study.yaml must be as this program writes it, with every value filled
 * in: what a user wrote by hand is not ours. */
static Status remove_study(const char *directory) {
  char *text;
  StudyFile *file;
  TRY(checkpoint_study(directory, &text));
  Status status = config_study_parse(directory, text, &study_schema, 0, NULL, &file);
  if (status != STATUS_OK || strcmp(file->resolved, text) != 0)
    status =
        status_set(STATUS_FILE,
                   "%s/study.yaml is not as this program writes it and will not be removed; move it away "
                   "or use another folder",
                   directory);
  else
    status = folder_remove_study(directory, file->sha256);
  config_study_free(file);
  free(text);
  return status;
}

/* What a study that goes on finds must be its own: study.yaml, finished tasks, results. */
static Status check_own(const char *directory, const Study *study) {
  SCRATCH_ARENA(scratch);
  Former former;
  TRY(compare(directory, study));
  Status status = former_read(directory, study, &former);
  former_destroy(&former);
  TRY(status);
  TRY(folder_make_room(directory, "prior_samples.nc", study->file->sha256));
  signed char *state;
  ALLOCATE(&scratch, state, study->task_count);
  status = checkpoint_scan(directory, study, state);
  if (status == STATUS_OK) status = checkpoint_check_tasks(directory, study, state);
  return status;
}

Status checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                       Lock **lock) {
  bool exists;
  *lock = NULL;
  TRY(make_folder(directory));
  TRY(inspect(directory, mode, &exists));
  TRY(lock_take(directory, shard, lock));
  TRY(inspect(directory, mode, &exists)); /* another job may have come and gone while this one waited */
  if (exists && mode == CHECKPOINT_OVERWRITE) {
    TRY(remove_study(directory));
    exists = false;
  }
  TRY(make_ready(directory, study, exists));
  TRY(check_own(directory, study));
  if (shard < 0) folder_sweep(directory); /* nobody else is writing */
  return STATUS_OK;
}

Status checkpoint_study(const char *directory, char **text) {
  char path[PATH_SIZE];
  TRY(path_of(sizeof path, path, directory, "study.yaml"));
  if (access(path, F_OK) != 0)
    return status_set(STATUS_INPUT, "%s holds no study (no study.yaml in it)", directory);
  return config_study_text(path, text);
}

Status checkpoint_scan(const char *directory, const Study *study, signed char *state) {
  char path[PATH_SIZE];
  TRY(path_of(sizeof path, path, directory, "tasks"));
  memset(state, RUN_NOT_RUN, (size_t)study->task_count);
  DIR *folder = opendir(path);
  if (!folder) return status_set(STATUS_FILE, "%s: cannot read the folder: %s", path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(folder));) {
    int task;
    bool failed;
    if (!folder_is_task_name(entry->d_name, &task, &failed) || task >= study->task_count) continue;
    if (!failed)
      state[task] = RUN_OK;
    else if (state[task] != RUN_OK)
      state[task] = RUN_FAILED;
  }
  closedir(folder);
  return STATUS_OK;
}

/* The first task of this study ends the search: none can have been added since the study was changed. */
Status checkpoint_check_tasks(const char *directory, const Study *study, const signed char *state) {
  char path[PATH_SIZE];
  bool others = false;
  for (int i = 0; i < study->task_count; i++) {
    if (state[i] == RUN_NOT_RUN) continue;
    const Task task = study_task(study, i);
    TRY(task_path(sizeof path, path, directory, &task, state[i] == RUN_FAILED));
    if (ownership_carries(AT_FDCWD, path, study->file->sha256)) return STATUS_OK;
    others = others || ownership_carries(AT_FDCWD, path, "config_sha256");
  }
  if (!others) return STATUS_OK;
  return status_set(STATUS_RESUME,
                    "%s: its finished tasks are of another study than study.yaml, which was changed; put it "
                    "back as it was, or use another folder",
                    directory);
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

/* An earlier failure of the task is history: replaced by a new one, or removed. What is damaged is set
 * aside. */
static Status make_room(const char *path) {
  return ownership_of(AT_FDCWD, path) == OWNERSHIP_UNKNOWN ? durable_set_aside(path) : STATUS_OK;
}

static Status forget_failure(const char *directory, const Study *study, const Task *task) {
  char path[PATH_SIZE];
  TRY(task_path(sizeof path, path, directory, task, true));
  if (ownership_carries(AT_FDCWD, path, study->file->sha256)) unlink(path);
  return STATUS_OK;
}

Status checkpoint_save(const char *directory, const Study *study, const Task *task,
                       const TaskResult *result) {
  char path[PATH_SIZE];
  bool failed = result->status != RUN_OK;
  TRY(task_path(sizeof path, path, directory, task, failed));
  TRY(make_room(path));
  StoreFile *file;
  TRY(store_create(path, STORE_CLASSIC, &file));
  TRY(store_finish(file, write_task(file, study, task, result)));
  return failed ? STATUS_OK : forget_failure(directory, study, task);
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

Status checkpoint_load(const char *directory, const Study *study, const Task *task, bool failed,
                       TaskResult *result) {
  char path[PATH_SIZE];
  StoreFile *file;
  TRY(task_path(sizeof path, path, directory, task, failed));
  TRY(store_open_own(path, &file));
  Status status = read_task(file, study, task, result);
  store_abandon(file);
  return status;
}

static bool is_finished(const char *directory, const Task *task) {
  char path[PATH_SIZE];
  return task_path(sizeof path, path, directory, task, false) == STATUS_OK && access(path, F_OK) == 0;
}

Status checkpoint_share(const char *directory, const Study *study, const Task *task, TaskResult *result) {
  if (!study_has_shared(study)) return STATUS_OK;
  TaskResult found;
  TRY(task_result_create(study, task, &found));
  for (int p = 0; p < study->file->policy_count && !result->has_shared; p++) {
    const Task other =
        study_task(study, study_task_index(study, task->setting, p, task->index % study->runs.blocks));
    if (is_finished(directory, &other) &&
        checkpoint_load(directory, study, &other, false, &found) == STATUS_OK)
      task_result_share(study, &found, result);
  }
  task_result_destroy(&found);
  return STATUS_OK;
}

Status checkpoint_set_aside(const char *directory, const Task *task, bool failed) {
  char path[PATH_SIZE];
  TRY(task_path(sizeof path, path, directory, task, failed));
  return durable_set_aside(path);
}
