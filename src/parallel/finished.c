#include "parallel/finished.h"

#include "core/arena.h"
#include "core/clock.h"
#include "core/memory.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"
#include "parallel/task_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static void bundle_path(const Finished *finished, int bundle, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/tasks/%s", finished->directory, finished->name[bundle]);
}

static bool is_gone(const char *path) {
  struct stat info;
  return lstat(path, &info) != 0 && errno == ENOENT;
}

/* Seeing what is there. */

static Status allocate(const char *directory, const Study *study, Finished *out) {
  *out = (Finished){.directory = directory, .study = study, .first = INFINITY, .last = -INFINITY};
  NEW(out->state, study->task_count);
  NEW(out->bundle, study->task_count);
  for (int i = 0; i < study->task_count; i++) out->bundle[i] = -1;
  return STATUS_OK;
}

void finished_destroy(Finished *finished) {
  for (int i = 0; i < FINISHED_OPEN; i++) bundle_close(finished->open[i]);
  free(finished->state);
  free(finished->bundle);
  free(finished->name);
  free(finished->size);
  *finished = (Finished){0};
}

static void note_task(Finished *finished, int task, bool failed) {
  if (task >= finished->study->task_count) return;
  if (!failed)
    finished->state[task] = RUN_OK;
  else if (finished->state[task] != RUN_OK)
    finished->state[task] = RUN_FAILED;
}

static Status note_name(Finished *finished, const char *name) {
  const int room = finished->bundles;
  if ((room & (room - 1)) == 0) { /* full: room is for powers of 2 */
    void *larger = realloc(finished->name, (size_t)(room > 0 ? 2 * room : 1) * sizeof *finished->name);
    if (!larger) return status_set(STATUS_INTERNAL, "out of memory for the names of bundles");
    finished->name = larger;
  }
  strcpy(finished->name[finished->bundles++], name); /* its length is that of our names */
  return STATUS_OK;
}

static Status read_names(Finished *finished) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/tasks", finished->directory);
  DIR *folder = opendir(path);
  if (!folder) return status_set(STATUS_FILE, "%s: cannot read the folder: %s", path, strerror(errno));
  Status status = STATUS_OK;
  for (struct dirent *entry; status == STATUS_OK && (entry = readdir(folder));) {
    int task;
    bool failed;
    if (folder_is_task_name(entry->d_name, &task, &failed))
      note_task(finished, task, failed);
    else if (folder_is_bundle_name(entry->d_name))
      status = note_name(finished, entry->d_name);
  }
  closedir(folder);
  return status;
}

/* Of two bundles that have a task the larger one; of equal ones the first by name. */
static void note_bundle(Finished *finished, int number, const Bundle *bundle) {
  const int64_t *tasks = bundle_tasks(bundle);
  const double *times = bundle_finished(bundle);
  finished->size[number] = bundle_count(bundle);
  for (int k = 0; k < bundle_count(bundle); k++) {
    if (tasks[k] >= finished->study->task_count) return;
    int *at = &finished->bundle[tasks[k]];
    if (*at < 0 || finished->size[number] > finished->size[*at]) *at = number;
    finished->state[tasks[k]] = RUN_OK;
    finished->first = fmin(finished->first, times[k]);
    finished->last = fmax(finished->last, times[k]);
  }
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* *moved: a bundle was removed meanwhile, since what it had is in a larger one now. */
static Status read_bundles(Finished *finished, bool *moved) {
  if (finished->bundles > 0)
    qsort(finished->name, (size_t)finished->bundles, sizeof *finished->name, by_name);
  NEW(finished->size, finished->bundles);
  for (int i = 0; i < finished->bundles; i++) {
    char path[PATH_SIZE];
    Bundle *bundle;
    bundle_path(finished, i, path);
    Status status = bundle_open(path, &bundle);
    if (status == STATUS_OK) note_bundle(finished, i, bundle);
    bundle_close(bundle);
    if (status != STATUS_OK && is_gone(path))
      *moved = true;
    else if (status != STATUS_OK && status != STATUS_INPUT)
      return status;
  }
  return STATUS_OK;
}

Status finished_scan(const char *directory, const Study *study, Finished *out) {
  *out = (Finished){0};
  const double begin = clock_wall();
  bool moved = true;
  for (int attempt = 0; moved && attempt < 10; attempt++) {
    moved = false;
    finished_destroy(out);
    TRY(allocate(directory, study, out));
    TRY(read_names(out));
    TRY(read_bundles(out, &moved));
  }
  out->scanned_at = clock_wall();
  out->scan_seconds = out->scanned_at - begin;
  return STATUS_OK;
}

Status finished_broadcast(const Parallel *parallel, const char *directory, const Study *study,
                          Finished *finished) {
  if (parallel->size == 1) return STATUS_OK;
  Status status = parallel->rank == 0 ? STATUS_OK : allocate(directory, study, finished);
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(&finished->bundles, sizeof finished->bundles);
  const size_t names = (size_t)finished->bundles * sizeof *finished->name;
  if (parallel->rank > 0) status = memory_new((void **)&finished->name, names, 1);
  if (parallel->rank > 0 && status == STATUS_OK)
    status = memory_new((void **)&finished->size, (size_t)finished->bundles, sizeof *finished->size);
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(finished->state, (size_t)study->task_count);
  parallel_broadcast(&finished->scan_seconds, sizeof finished->scan_seconds);
  finished->scanned_at = clock_wall();
  if (finished->bundles == 0) return STATUS_OK;
  parallel_broadcast(finished->bundle, (size_t)study->task_count * sizeof *finished->bundle);
  parallel_broadcast(finished->name, names);
  parallel_broadcast(finished->size, (size_t)finished->bundles * sizeof *finished->size);
  return STATUS_OK;
}

Status finished_scan_all(const Parallel *parallel, const char *directory, const Study *study, Finished *out) {
  *out = (Finished){0};
  TRY(parallel_agree(parallel, parallel->rank == 0 ? finished_scan(directory, study, out) : STATUS_OK));
  return finished_broadcast(parallel, directory, study, out);
}

static bool is_whole(const char *path) {
  StoreFile *file;
  if (store_open_own(path, &file) != STATUS_OK) return false;
  store_abandon(file);
  return true;
}

/* The first file of this study ends the search: none can have been added since the study was changed. A
 * damaged one says nothing. */
Status finished_check_study(const Finished *finished) {
  const Study *study = finished->study;
  char path[PATH_SIZE], other[PATH_SIZE] = "";
  for (int i = -finished->bundles; i < study->task_count; i++) {
    if (i >= 0 && (finished->state[i] == RUN_NOT_RUN || finished->bundle[i] >= 0)) continue;
    if (i < 0)
      bundle_path(finished, i + finished->bundles, path);
    else
      TRY(task_file_path(finished->directory, i, finished->state[i] == RUN_FAILED, sizeof path, path));
    if (ownership_carries(AT_FDCWD, path, study->file->sha256)) return STATUS_OK;
    if (!other[0] && ownership_carries(AT_FDCWD, path, "config_sha256") && is_whole(path))
      strcpy(other, path);
  }
  if (!other[0]) return STATUS_OK;
  return status_set(STATUS_RESUME,
                    "%s: its finished tasks are of another study than study.yaml; move that file away, put "
                    "study.yaml back if it was changed, or use another folder",
                    other);
}

/* Reading. */

static Status open_bundle(Finished *finished, int number, Bundle **out) {
  const int slot = number % FINISHED_OPEN;
  char path[PATH_SIZE];
  *out = finished->open[slot];
  if (*out && finished->opened[slot] == number) return STATUS_OK;
  bundle_close(*out);
  bundle_path(finished, number, path);
  const Status status = bundle_open(path, out);
  finished->open[slot] = *out;
  finished->opened[slot] = number;
  return status;
}

/* See what is there now; what was seen before stays after a failure. */
static Status scan_again(Finished *finished) {
  Finished now;
  Status status = finished_scan(finished->directory, finished->study, &now);
  finished_destroy(status == STATUS_OK ? finished : &now);
  if (status == STATUS_OK) *finished = now;
  return status;
}

/* *gone: its bundle is not there any more; what it had may be in a larger one. */
static Status load_from_bundle(Finished *finished, const Task *task, TaskResult *result, bool *gone) {
  char path[PATH_SIZE];
  Bundle *bundle;
  const int number = finished->bundle[task->index];
  *gone = false;
  Status status = open_bundle(finished, number, &bundle);
  if (status == STATUS_OK) return bundle_load(bundle, finished->study, task, result);
  bundle_path(finished, number, path);
  *gone = is_gone(path);
  return status;
}

/* A task that others finished since the folder was scanned has a file of its own, or is not found. */
static bool can_be_read(const Finished *finished, int task) {
  char path[PATH_SIZE];
  if (finished->bundle[task] >= 0) return true;
  return task_file_path(finished->directory, task, false, sizeof path, path) == STATUS_OK &&
         access(path, F_OK) == 0;
}

Status finished_load(Finished *finished, const Task *task, bool failed, TaskResult *result) {
  bool gone = false;
  for (int attempt = 0; !failed && finished->bundle[task->index] >= 0 && attempt < 10; attempt++) {
    const Status status = load_from_bundle(finished, task, result, &gone);
    if (!gone) return status;
    TRY(scan_again(finished));
  }
  if (gone || (!failed && bundle_is_for(finished->study) && !can_be_read(finished, task->index)))
    return status_set(STATUS_INPUT, "%s: task %d is not there any more", finished->directory, task->index);
  return task_file_load(finished->directory, finished->study, task, failed, result);
}

/* Others write bundles meanwhile. */
static Status look_again(Finished *finished) {
  const double interval = fmax(1, 50 * finished->scan_seconds);
  if (!bundle_is_for(finished->study) || clock_wall() - finished->scanned_at < interval) return STATUS_OK;
  return scan_again(finished);
}

Status finished_share(Finished *finished, const Task *task, TaskResult *result) {
  const Study *study = finished->study;
  if (!study_has_shared(study)) return STATUS_OK;
  TRY(look_again(finished));
  TaskResult found;
  TRY(task_result_create(study, task, &found));
  for (int p = 0; p < study->file->policy_count && !result->has_shared; p++) {
    const Task other =
        study_task(study, study_task_index(study, task->setting, p, task->index % study->runs.blocks));
    if (can_be_read(finished, other.index) && finished_load(finished, &other, false, &found) == STATUS_OK)
      task_result_share(study, &found, result);
  }
  task_result_destroy(&found);
  return STATUS_OK;
}

/* Files that cannot be used. */

/* Put a bundle out of the way and say what is kept of it, if no other rank has done so. */
static Status set_aside_bundle(const Finished *finished, int number) {
  char path[PATH_SIZE];
  int kept;
  bundle_path(finished, number, path);
  if (is_gone(path)) return STATUS_OK;
  TRY(bundle_set_aside(finished->directory, finished->name[number], finished->study, &kept));
  fprintf(stderr, "%s: %d of its tasks are whole and are kept, the others count as not run\n", path, kept);
  return STATUS_OK;
}

Status finished_set_aside(Finished *finished, const Task *task, bool failed) {
  char path[PATH_SIZE];
  const int number = failed ? -1 : finished->bundle[task->index];
  if (number >= 0) {
    TRY(set_aside_bundle(finished, number));
    return scan_again(finished);
  }
  TRY(task_file_path(finished->directory, task->index, failed, sizeof path, path));
  finished->state[task->index] = RUN_NOT_RUN;
  return durable_set_aside(path);
}

Status finished_report_unreadable(const Finished *finished, bool set_aside, int *damaged) {
  for (int i = 0; i < finished->bundles; i++) {
    char path[PATH_SIZE];
    Bundle *bundle;
    if (finished->size[i] > 0) continue;
    bundle_path(finished, i, path);
    const Status status = bundle_open(path, &bundle);
    bundle_close(bundle);
    if (status == STATUS_OK || is_gone(path)) continue;
    if (status != STATUS_INPUT) return status;
    fprintf(stderr, "%s; %s\n", status_message(),
            set_aside ? "the file is set aside"
                      : "its tasks, of the first and the last number in its name, count as not run");
    ++*damaged;
    if (set_aside) TRY(set_aside_bundle(finished, i));
  }
  return STATUS_OK;
}

/* Whether all tasks of a bundle are taken from others, which can be read whole. sound[bundles]: not known,
 * whole or damaged. */
static bool is_superseded(const Finished *finished, const Bundle *bundle, int number, signed char *sound) {
  enum { UNKNOWN, WHOLE, DAMAGED };
  for (int k = 0; k < bundle_count(bundle); k++) {
    const int64_t task = bundle_tasks(bundle)[k];
    const int other = task < finished->study->task_count ? finished->bundle[task] : number;
    if (other == number || sound[other] == DAMAGED) return false;
    if (sound[other] == WHOLE) continue;
    char path[PATH_SIZE];
    bundle_path(finished, other, path);
    sound[other] = is_whole(path) ? WHOLE : DAMAGED;
    if (sound[other] == DAMAGED) return false;
  }
  return true;
}

Status finished_remove_superseded(const Finished *finished) {
  SCRATCH_ARENA(scratch);
  signed char *sound;
  int *taken;
  ALLOCATE(&scratch, sound, finished->bundles);
  ALLOCATE(&scratch, taken, finished->bundles);
  for (int i = 0; i < finished->study->task_count; i++)
    if (finished->bundle[i] >= 0) taken[finished->bundle[i]]++;
  for (int i = 0; i < finished->bundles; i++) {
    char path[PATH_SIZE];
    Bundle *bundle;
    if (taken[i] > 0 || finished->size[i] == 0) continue;
    bundle_path(finished, i, path);
    if (bundle_open(path, &bundle) != STATUS_OK) continue;
    const bool superseded = is_superseded(finished, bundle, i, sound) &&
                            ownership_carries(AT_FDCWD, path, finished->study->file->sha256);
    bundle_close(bundle);
    if (superseded) unlink(path);
  }
  return STATUS_OK;
}
