#include "parallel/bundle.h"

#include "core/arena.h"
#include "core/memory.h"
#include "io/digest.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bundle_is_for(const Study *study) { return study->task_count > BUNDLE_FROM; }

size_t bundle_entry_bytes(const Study *study, const Task *task) {
  const size_t values = (size_t)study->curve_count * (size_t)study->points + 2;
  return sizeof(BundleEntry) + (size_t)task->runs * values * sizeof(double);
}

/* The first 64 bits of a SHA-256. */
static Status end_digest(Digest *digest, uint64_t *out) {
  char hex[DIGEST_SIZE];
  TRY(digest_end(digest, hex));
  hex[16] = '\0';
  *out = strtoull(hex, NULL, 16);
  return STATUS_OK;
}

/* Of all that is kept of a task. */
static Status checksum_of(const Study *study, const Task *task, const TaskResult *result, double finished,
                          int64_t *out) {
  Digest digest;
  const int64_t numbers[] = {task->index, task->first_run, task->runs, result->points};
  const size_t runs = (size_t)task->runs;
  digest_begin(&digest);
  digest_add(&digest, study->file->sha256, strlen(study->file->sha256));
  digest_add(&digest, numbers, sizeof numbers);
  digest_add(&digest, &finished, sizeof finished);
  digest_add(&digest, result->seconds, runs * sizeof *result->seconds);
  digest_add(&digest, result->fallbacks, runs * sizeof *result->fallbacks);
  digest_add(&digest, result->curves,
             (size_t)study->curve_count * runs * (size_t)result->points * sizeof *result->curves);
  uint64_t checksum;
  TRY(end_digest(&digest, &checksum));
  *out = (int64_t)checksum;
  return STATUS_OK;
}

/* Writing. */

enum { TASK, FIRST_RUN, RUNS, CHECKSUM, FINISHED, SECONDS, FALLBACKS, CURVES };

typedef struct {
  const Study *study;
  int count;
  const BundleEntry *entries; /* [count], by task */
  StoreFile *file;
  int *id; /* [CURVES + curve_count] */
} Writer;

static int by_task(const void *a, const void *b) {
  return ((const BundleEntry *)a)->task.index - ((const BundleEntry *)b)->task.index;
}

static Status define_all(const Writer *writer) {
  const Study *study = writer->study;
  StoreFile *file = writer->file;
  int *id = writer->id, axes[3], runs = 0;
  for (int k = 0; k < writer->count; k++)
    if (writer->entries[k].task.runs > runs) runs = writer->entries[k].task.runs;
  TRY(store_dimension(file, "task", (size_t)writer->count, &axes[0]));
  TRY(store_dimension(file, "run", (size_t)runs, &axes[1]));
  TRY(store_dimension(file, study->ops->axis, (size_t)study->points, &axes[2]));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_int_attribute(file, NULL, "seed", (int64_t)study->seed));
  TRY(store_variable(file, "task", STORE_INT64, 1, axes,
                     "number of the task: setting slowest, then policy, then block", NULL, &id[TASK]));
  TRY(store_variable(file, "first_run", STORE_INT64, 1, axes, "first run of the block", NULL,
                     &id[FIRST_RUN]));
  TRY(store_variable(file, "runs", STORE_INT64, 1, axes, "runs of the block", NULL, &id[RUNS]));
  TRY(store_variable(file, "checksum", STORE_INT64, 1, axes,
                     "first 64 bits of a SHA-256 of what is kept of the task", NULL, &id[CHECKSUM]));
  TRY(store_variable(file, "finished", STORE_DOUBLE, 1, axes, "when the task was finished",
                     "seconds since 1970-01-01", &id[FINISHED]));
  TRY(store_variable(file, "seconds", STORE_DOUBLE, 2, axes, "CPU seconds of a run", "s", &id[SECONDS]));
  TRY(store_variable(file, "fallbacks", STORE_INT64, 2, axes, "numerical fallbacks", "1", &id[FALLBACKS]));
  for (int c = 0; c < study->curve_count; c++)
    TRY(store_variable(file, study->curves[c]->name, STORE_DOUBLE, 3, axes, study->curves[c]->long_name,
                       study->curves[c]->units, &id[CURVES + c]));
  return STATUS_OK;
}

static Status put_index(const Writer *writer) {
  SCRATCH_ARENA(scratch);
  int64_t *numbers; /* [TASK .. CHECKSUM, count] */
  double *finished;
  const size_t count = (size_t)writer->count;
  ALLOCATE(&scratch, numbers, FINISHED * count);
  ALLOCATE(&scratch, finished, count);
  for (size_t k = 0; k < count; k++) {
    const BundleEntry *entry = &writer->entries[k];
    numbers[TASK * count + k] = entry->task.index;
    numbers[FIRST_RUN * count + k] = entry->task.first_run;
    numbers[RUNS * count + k] = entry->task.runs;
    TRY(checksum_of(writer->study, &entry->task, &entry->result, entry->finished,
                    &numbers[CHECKSUM * count + k]));
    finished[k] = entry->finished;
  }
  for (int i = TASK; i < FINISHED; i++)
    TRY(store_put(writer->file, writer->id[i], numbers + (size_t)i * count));
  return store_put(writer->file, writer->id[FINISHED], finished);
}

/* Variable by variable, in the order in which they stand in the file. */
static Status put_values(const Writer *writer) {
  const Study *study = writer->study;
  const size_t points = (size_t)study->points;
  for (int v = SECONDS; v < CURVES + study->curve_count; v++)
    for (int k = 0; k < writer->count; k++) {
      const TaskResult *result = &writer->entries[k].result;
      const size_t runs = (size_t)result->runs;
      const void *values = v == SECONDS     ? (const void *)result->seconds
                           : v == FALLBACKS ? (const void *)result->fallbacks
                                            : result->curves + (size_t)(v - CURVES) * runs * points;
      TRY(store_put_part(writer->file, writer->id[v], (size_t[]){(size_t)k, 0, 0},
                         (size_t[]){1, runs, points}, values));
    }
  return STATUS_OK;
}

static Status write_all(Writer *writer) {
  SCRATCH_ARENA(scratch);
  ALLOCATE(&scratch, writer->id, CURVES + writer->study->curve_count);
  TRY(define_all(writer));
  TRY(put_index(writer));
  return put_values(writer);
}

static Status name_bundle(int count, const BundleEntry *entries, char name[FOLDER_NAME]) {
  Digest digest;
  digest_begin(&digest);
  for (int k = 0; k < count; k++) {
    const int64_t task = entries[k].task.index;
    digest_add(&digest, &task, sizeof task);
  }
  uint64_t hash;
  TRY(end_digest(&digest, &hash));
  folder_bundle_name(entries[0].task.index, entries[count - 1].task.index, hash, name);
  return STATUS_OK;
}

Status bundle_write(const char *directory, const Study *study, int count, BundleEntry *entries,
                    char name[FOLDER_NAME]) {
  char path[4096];
  Writer writer = {.study = study, .count = count, .entries = entries};
  ASSERT(count > 0);
  qsort(entries, (size_t)count, sizeof *entries, by_task);
  TRY(name_bundle(count, entries, name));
  snprintf(path, sizeof path, "%s/tasks/%s", directory, name);
  if (ownership_of(AT_FDCWD, path) == OWNERSHIP_UNKNOWN) TRY(durable_set_aside(path));
  TRY(store_create(path, STORE_CLASSIC, &writer.file));
  return store_finish(writer.file, write_all(&writer));
}

/* Reading. */

struct Bundle {
  StoreFile *file;
  int count;
  int64_t *task, *checksum; /* [count] */
  double *finished; /* [count] */
  bool fits; /* it was found to be of the study */
};

static Status read_index(Bundle *bundle) {
  StoreFile *file = bundle->file;
  size_t count = SIZE_MAX;
  TRY(store_shape(file, "task", 1, &count));
  TRY(store_shape(file, "checksum", 1, &count));
  TRY(store_shape(file, "finished", 1, &count));
  if (count == 0 || count > INT32_MAX) return status_set(STATUS_INPUT, "%s has no tasks", store_path(file));
  bundle->count = (int)count;
  NEW(bundle->task, count);
  NEW(bundle->checksum, count);
  NEW(bundle->finished, count);
  TRY(store_get_int64s(file, "task", bundle->task));
  TRY(store_get_int64s(file, "checksum", bundle->checksum));
  TRY(store_get_doubles(file, "finished", bundle->finished));
  for (size_t k = 0; k < count; k++)
    if (bundle->task[k] < 0 || (k > 0 && bundle->task[k] <= bundle->task[k - 1]))
      return status_set(STATUS_INPUT, "%s is damaged: the numbers of its tasks do not rise",
                        store_path(file));
  return STATUS_OK;
}

static Status open_by(Status (*open)(const char *path, StoreFile **out), const char *path, Bundle **out) {
  Bundle *bundle;
  *out = NULL;
  NEW(bundle, 1);
  Status status = open(path, &bundle->file);
  if (status == STATUS_OK) status = read_index(bundle);
  if (status == STATUS_OK)
    *out = bundle;
  else
    bundle_close(bundle);
  return status;
}

Status bundle_open(const char *path, Bundle **out) { return open_by(store_open_parts, path, out); }

void bundle_close(Bundle *bundle) {
  if (!bundle) return;
  store_abandon(bundle->file);
  free(bundle->task);
  free(bundle->checksum);
  free(bundle->finished);
  free(bundle);
}

int bundle_count(const Bundle *bundle) { return bundle->count; }
const int64_t *bundle_tasks(const Bundle *bundle) { return bundle->task; }
const double *bundle_finished(const Bundle *bundle) { return bundle->finished; }

/* Is it of this study, and are its variables as long as the study's? */
static Status check_fit(Bundle *bundle, const Study *study) {
  char *sha;
  if (bundle->fits) return STATUS_OK;
  TRY(store_get_text_attribute(bundle->file, NULL, "config_sha256", &sha));
  const bool same = strcmp(sha, study->file->sha256) == 0;
  free(sha);
  if (!same) return status_set(STATUS_INPUT, "%s: tasks of another study", store_path(bundle->file));
  size_t shape[3] = {(size_t)bundle->count, SIZE_MAX, (size_t)study->points};
  TRY(store_shape(bundle->file, "seconds", 2, shape));
  TRY(store_shape(bundle->file, "fallbacks", 2, shape));
  for (int c = 0; c < study->curve_count; c++)
    TRY(store_shape(bundle->file, study->curves[c]->name, 3, shape));
  bundle->fits = true;
  return STATUS_OK;
}

static int compare_numbers(const void *a, const void *b) {
  const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
  return (first > second) - (first < second);
}

static Status read_values(StoreFile *file, const Study *study, size_t at, TaskResult *result) {
  const size_t start[3] = {at, 0, 0}, runs = (size_t)result->runs, points = (size_t)result->points,
               count[3] = {1, runs, points};
  TRY(store_get_doubles_part(file, "seconds", start, count, result->seconds));
  TRY(store_get_int64s_part(file, "fallbacks", start, count, result->fallbacks));
  for (int c = 0; c < study->curve_count; c++)
    TRY(store_get_doubles_part(file, study->curves[c]->name, start, count,
                               result->curves + (size_t)c * runs * points));
  return STATUS_OK;
}

Status bundle_load(Bundle *bundle, const Study *study, const Task *task, TaskResult *result) {
  const int64_t wanted = task->index;
  const int64_t *found =
      bsearch(&wanted, bundle->task, (size_t)bundle->count, sizeof wanted, compare_numbers);
  if (!found) return status_set(STATUS_INPUT, "%s has no task %d", store_path(bundle->file), task->index);
  const size_t at = (size_t)(found - bundle->task);
  TRY(check_fit(bundle, study));
  TRY(read_values(bundle->file, study, at, result));
  int64_t checksum;
  TRY(checksum_of(study, task, result, bundle->finished[at], &checksum));
  if (checksum != bundle->checksum[at])
    return status_set(STATUS_INPUT, "%s is damaged: the checksum of task %d does not fit",
                      store_path(bundle->file), task->index);
  result->status = RUN_OK;
  result->message[0] = '\0';
  return STATUS_OK;
}

Status bundle_load_entry(Bundle *bundle, const Study *study, int at, BundleEntry *out) {
  const int64_t number = bundle->task[at];
  if (number >= study->task_count)
    return status_set(STATUS_INPUT, "%s: the study has no task %jd", store_path(bundle->file),
                      (intmax_t)number);
  *out = (BundleEntry){.task = study_task(study, (int)number), .finished = bundle->finished[at]};
  TRY(task_result_create(study, &out->task, &out->result));
  const Status status = bundle_load(bundle, study, &out->task, &out->result);
  if (status != STATUS_OK) task_result_destroy(&out->result);
  return status;
}

/* Damaged ones. */

static Status load_whole(Bundle *bundle, const Study *study, BundleEntry *entries, int *kept) {
  for (int at = 0; at < bundle->count; at++) {
    const Status status = bundle_load_entry(bundle, study, at, &entries[*kept]);
    if (status == STATUS_OK)
      ++*kept;
    else if (status != STATUS_INPUT)
      return status;
  }
  return STATUS_OK;
}

/* Where all are whole, the new file takes the name of the old one. */
static Status replace(const char *directory, const Study *study, const char *path, int count, int kept,
                      BundleEntry *entries) {
  char name[FOLDER_NAME];
  if (kept == count) TRY(durable_set_aside(path));
  if (kept > 0) TRY(bundle_write(directory, study, kept, entries, name));
  return kept < count ? durable_set_aside(path) : STATUS_OK;
}

static Status rescue(Bundle *bundle, const char *directory, const Study *study, const char *path, int *kept) {
  SCRATCH_ARENA(scratch);
  BundleEntry *entries;
  ALLOCATE(&scratch, entries, bundle->count);
  Status status = load_whole(bundle, study, entries, kept);
  if (status == STATUS_OK) status = replace(directory, study, path, bundle->count, *kept, entries);
  for (int k = 0; k < *kept; k++) task_result_destroy(&entries[k].result);
  return status;
}

Status bundle_set_aside(const char *directory, const char *name, const Study *study, int *kept) {
  char path[4096];
  Bundle *bundle;
  *kept = 0;
  snprintf(path, sizeof path, "%s/tasks/%s", directory, name);
  if (open_by(store_open_remains, path, &bundle) != STATUS_OK) return durable_set_aside(path);
  const Status status = rescue(bundle, directory, study, path, kept);
  bundle_close(bundle);
  return status;
}
