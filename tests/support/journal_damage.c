#include "journal_damage.h"

#include "store_damage.h"
#include "study/keys.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

void journal_fixture_study(const char *seed, Study *out) {
  char text[300];
  StudyFile *file = NULL;
  snprintf(text, sizeof text,
           "{name: t, study: bandit, seed: %s, runs: 11, block: 2, policies: [random], "
           "problem: {rounds: 3, arms: 2}}\n",
           seed);
  if (config_study_parse("test", text, &study_schema, 0, NULL, &file) != STATUS_OK ||
      study_create(file, out) != STATUS_OK || out->task_count != JOURNAL_TASKS)
    abort();
}

void journal_fixture_result(const Study *study, int index, bool failed, Task *task, TaskResult *result) {
  *task = study_task(study, index);
  if (study_result_create(study, task, result) != STATUS_OK) abort();
  for (size_t i = 0; i < result->size; i++) result->curves[i] = i == 1 ? NAN : index + 0.25 * (double)i;
  for (int b = 0; b < task->runs; b++) {
    result->columns.seconds[b] = 1e-3 * index;
    result->columns.fallbacks[b] = index + b;
  }
  result->status = RUN_OK;
  if (failed && study_result_fail(study, "a reason", result) != STATUS_OK) abort();
}

/* Tells whether the numbers of a loaded task are the made-up ones. */
static bool journal_fixture_same(const Study *study, int index, const TaskResult *found) {
  Task task;
  TaskResult made;
  journal_fixture_result(study, index, found->status == RUN_FAILED, &task, &made);
  const size_t runs = (size_t)task.runs, values = (size_t)study->curve_count * runs * (size_t)study->points;
  bool same = found->recorded == COLUMN_KINDS &&
              memcmp(made.curves, found->curves, values * sizeof *made.curves) == 0 &&
              strcmp(made.message, found->message) == 0;
  for (int c = 0; c < COLUMN_KINDS; c++)
    same &= memcmp(columns_values(&made.columns, c), columns_values(&found->columns, c),
                   runs * COLUMN_BYTES) == 0;
  study_result_destroy(&made);
  return same;
}

void journal_fixture_append(const Study *study, Journal *journal, int index, bool failed) {
  Task task;
  TaskResult result;
  journal_fixture_result(study, index, failed, &task, &result);
  if (journal_append(journal, &task, &result) != STATUS_OK) abort();
  study_result_destroy(&result);
}

/* Finds the one journal in a folder. */
static void journal_fixture_path(const char *folder, size_t size, char *path) {
  snprintf(path, size, "%s/tasks", folder);
  DIR *entries = opendir(path);
  path[0] = '\0';
  for (struct dirent *entry; entries && (entry = readdir(entries));)
    if (folder_is_journal_name(entry->d_name)) snprintf(path, size, "%s/tasks/%s", folder, entry->d_name);
  if (entries) closedir(entries);
}

void journal_fixture_write(const char *folder, const Study *study, int count, const int *tasks, size_t size,
                           char *path) {
  SCRATCH_ARENA(memory);
  Journal *journal;
  snprintf(path, size, "%s/tasks", folder);
  mkdir(path, 0700);
  if (journal_create(&memory, folder, study, &journal) != STATUS_OK) abort();
  for (int k = 0; k < count; k++) journal_fixture_append(study, journal, tasks[k], false);
  if (journal_sync(journal) != STATUS_OK) abort();
  journal_close(journal);
  journal_fixture_path(folder, size, path);
}

void journal_fixture_put(const char *path, const char *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0) abort();
}

JournalRead journal_damage_read(const char *folder, const Study *study, bool repair) {
  SCRATCH_ARENA(memory);
  JournalRead read = {.broken = NULL};
  Finished finished;
  if (finished_open(&memory, folder, study, repair, &finished) != STATUS_OK) {
    read.broken = "damage is no error of the folder";
    return read;
  }
  for (int j = 0; j < finished.journals; j++)
    read.damage += finished.journal[j].damaged + (finished.journal[j].rest > 0);
  for (int i = 0; i < JOURNAL_TASKS; i++) {
    const Task task = study_task(study, i);
    TaskResult result;
    if (finished.state[i] == RUN_NOT_RUN) continue;
    if (study_result_create(study, &task, &result) != STATUS_OK) abort();
    const Status status = finished_load(&finished, &task, &result);
    read.loads[i] = status == STATUS_OK;
    if (status == STATUS_OK && !journal_fixture_same(study, i, &result))
      read.broken = "a task is as it was, or refused";
    if (status != STATUS_OK && status != STATUS_INPUT) read.broken = "a damaged record is bad input";
    study_result_destroy(&result);
  }
  finished_close(&finished);
  return read;
}

const char *journal_damage_check(const char *folder, const char *path, const Study *study, const char *bytes,
                                 size_t size) {
  char bad[4200];
  journal_fixture_put(path, bytes, size);
  const JournalRead first = journal_damage_read(folder, study, false),
                    repaired = journal_damage_read(folder, study, true),
                    after = journal_damage_read(folder, study, false);
  snprintf(bad, sizeof bad, "%s.bad", path);
  remove(bad);
  remove(path);
  if (first.broken || repaired.broken || after.broken)
    return first.broken ? first.broken : repaired.broken ? repaired.broken : after.broken;
  if (memcmp(first.loads, repaired.loads, sizeof first.loads) != 0 ||
      memcmp(first.loads, after.loads, sizeof first.loads) != 0)
    return "repair costs no task that could be read";
  return after.damage == 0 ? NULL : "damage is reported once";
}

const char *journal_damage_run(const char *folder, const uint8_t *data, size_t length) {
  static const int all[JOURNAL_TASKS] = {5, 1, 0, 2, 4, 3};
  static Study study;
  static char *whole, path[4096];
  static size_t whole_size;
  if (!study.ops) {
    journal_fixture_study("5", &study);
    journal_fixture_write(folder, &study, JOURNAL_TASKS, all, sizeof path, path);
    if (store_read_text(path, SIZE_MAX, &whole, &whole_size) != STATUS_OK) abort();
  }
  size_t size = whole_size;
  char *bytes = malloc(size + DAMAGE_MOST_APPENDED);
  if (!bytes) abort();
  memcpy(bytes, whole, size);
  for (int s = 0; s < DAMAGE_MOST_STEPS && 4 * (size_t)s + 4 <= length; s++)
    damage_step(data + 4 * s, whole_size, bytes, &size);
  const char *broken = journal_damage_check(folder, path, &study, bytes, size);
  free(bytes);
  return broken;
}
