#include "parallel/tasks/finished.h"

#include "core/clock.h"
#include "io/durable.h"
#include "study/study_names.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static void finished_journal_path(const Finished *finished, int number, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/tasks/%s", finished->directory, finished->journal[number].name);
}

/* Scanning the journals. */

/* The context of the scan of one journal. */
typedef struct {
  Finished *finished;
  int journal;
} Look;

/* Notes a record of a task of the study. */
static Status finished_note_task(const Look *look, int task, const JournalRecord *record) {
  Finished *finished = look->finished;
  signed char *state = &finished->state[task];
  FinishedPlace *kept = &finished->place[task], place = {task, look->journal, record->at, record->finished};
  const bool again = record->status == (RunStatus)*state; /* with the same outcome */
  if (record->status == RUN_OK) {
    finished->first = fmin(finished->first, record->finished);
    finished->last = fmax(finished->last, record->finished);
  }
  if (again && *state == RUN_OK) {
    GROW(finished->memory, finished->copy, finished->copies);
    finished->copy[finished->copies++] = record->finished > kept->finished ? *kept : place;
  }
  if (*state == RUN_NOT_RUN || (again ? record->finished > kept->finished : record->status == RUN_OK)) {
    *state = (signed char)record->status;
    *kept = place;
  }
  return STATUS_OK;
}

/* Notes a record. A success counts before a failure, and a later record before an earlier one. */
static Status finished_note_record(void *context, const JournalRecord *record) {
  const Look *look = context;
  Finished *finished = look->finished;
  const TasksAlike alike = study_find_tasks(finished->study, &record->task);
  for (int i = 0; i < alike.count; i++)
    TRY(finished_note_task(look, study_task_alike(finished->study, &alike, i), record));
  finished->unused += alike.count == 0;
  finished->unused_bytes += alike.count == 0 ? record->length : 0;
  return STATUS_OK;
}

static int finished_is_journal(const struct dirent *entry) { return folder_is_journal_name(entry->d_name); }

/* Lists the journals that were not there before, sorted by name. */
static Status finished_list_journals(Finished *finished) {
  char path[PATH_SIZE];
  struct dirent **entries;
  snprintf(path, sizeof path, "%s/tasks", finished->directory);
  const int count = scandir(path, &entries, finished_is_journal, alphasort);
  if (count < 0) return status_set(STATUS_FILE, "%s: cannot read the folder: %s", path, strerror(errno));
  Status status = STATUS_OK;
  for (int i = 0, known = finished->journals; i < count; i++) {
    const char *name = entries[i]->d_name;
    int same = 0;
    while (same < known && strcmp(finished->journal[same].name, name) != 0) same++;
    if (same == known && status == STATUS_OK) {
      status = arena_grow(finished->memory, (void **)&finished->journal, (size_t)finished->journals,
                          sizeof *finished->journal);
      if (status == STATUS_OK)
        strcpy(finished->journal[finished->journals++].name, name); /* our names have the same length */
    }
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* Looks for new journals, and reads what was added to all of them since the last look. */
static Status finished_scan_journals(Finished *finished, bool repair) {
  const double begin = clock_wall();
  TRY(finished_list_journals(finished));
  for (int i = 0; i < finished->journals; i++) {
    FinishedJournal *journal = &finished->journal[i];
    char path[PATH_SIZE];
    Look look = {finished, i};
    JournalScan scan = {
        .record = finished_note_record, .context = &look, .repair = repair, .end = journal->end};
    finished_journal_path(finished, i, path);
    journal->gone = journal->gone || (access(path, F_OK) != 0 && errno == ENOENT);
    if (journal->gone) continue;
    TRY(journal_scan(path, &scan));
    journal->end = scan.end;
    journal->rest = scan.rest;
    journal->damaged += scan.damaged;
  }
  finished->looked_at = clock_wall();
  finished->look_seconds = finished->looked_at - begin;
  return STATUS_OK;
}

Status finished_look(Finished *finished) { return finished_scan_journals(finished, false); }

static Status finished_tasks_create(Arena *memory, const char *directory, const Study *study, Finished *out) {
  *out = (Finished){
      .directory = directory, .study = study, .memory = memory, .first = INFINITY, .last = -INFINITY};
  for (int i = 0; i < FINISHED_OPEN; i++) out->open[i] = -1;
  ALLOCATE(memory, out->state, study->task_count);
  ALLOCATE(memory, out->place, study->task_count);
  return STATUS_OK;
}

Status finished_open(Arena *memory, const char *directory, const Study *study, bool repair, Finished *out) {
  TRY(finished_tasks_create(memory, directory, study, out));
  TRY(folder_check(directory));
  TRY(finished_scan_journals(out, repair));
  if (!repair) return STATUS_OK;
  for (int i = 0; i < out->journals; i++) {
    const FinishedJournal *journal = &out->journal[i];
    char path[PATH_SIZE];
    if (journal->damaged == 0 && journal->rest == 0) continue;
    finished_journal_path(out, i, path);
    fprintf(stderr, "%s: %s; lost tasks run again\n", path,
            journal->end == 0       ? "no record can be read, so the file is set aside"
            : journal->damaged == 0 ? "its last record is torn and is dropped"
                                    : "damaged records are dropped");
    if (journal->end == 0) TRY(durable_set_aside(path)); /* as NAME.bad, replacing nothing */
  }
  return STATUS_OK;
}

void finished_close(Finished *finished) {
  if (!finished->study) return; /* it was never opened */
  for (int i = 0; i < FINISHED_OPEN; i++) {
    if (finished->open[i] >= 0) close(finished->file[i]);
    finished->open[i] = -1;
  }
}

/* Sends to all ranks what rank 0 has seen. Collective. */
static Status finished_broadcast(Finished *finished) {
  if (parallel_size() == 1) return STATUS_OK;
  const size_t tasks = (size_t)finished->study->task_count;
  int counts[] = {finished->journals, finished->copies};
  parallel_broadcast(counts, sizeof counts);
  Status status = STATUS_OK;
  if (parallel_rank() > 0) {
    finished_close(finished); /* the numbers of the journals change */
    finished->journals = counts[0];
    finished->copies = counts[1];
    status = arena_new(finished->memory, (void **)&finished->journal, 2 * (size_t)counts[0] + 1,
                       sizeof *finished->journal);
    if (status == STATUS_OK)
      status = arena_new(finished->memory, (void **)&finished->copy, 2 * (size_t)counts[1] + 1,
                         sizeof *finished->copy);
  }
  TRY(parallel_agree(status));
  parallel_broadcast(finished->state, tasks);
  parallel_broadcast(finished->place, tasks * sizeof *finished->place);
  parallel_broadcast(finished->journal, (size_t)counts[0] * sizeof *finished->journal);
  parallel_broadcast(finished->copy, (size_t)counts[1] * sizeof *finished->copy);
  parallel_broadcast(&finished->look_seconds, sizeof finished->look_seconds);
  finished->looked_at = clock_wall();
  return STATUS_OK;
}

Status finished_open_all(Arena *memory, const char *directory, const Study *study, Finished *out) {
  TRY(parallel_agree(parallel_rank() == 0 ? finished_open(memory, directory, study, false, out)
                                          : finished_tasks_create(memory, directory, study, out)));
  return finished_broadcast(out);
}

Status finished_look_all(Finished *finished) {
  TRY(parallel_agree(parallel_rank() == 0 ? finished_look(finished) : STATUS_OK));
  return finished_broadcast(finished);
}

int finished_report_damage(const Finished *finished) {
  int damaged = 0;
  for (int i = 0; i < finished->journals; i++) {
    const FinishedJournal *journal = &finished->journal[i];
    char path[PATH_SIZE];
    if (journal->damaged == 0 && journal->rest == 0) continue;
    finished_journal_path(finished, i, path);
    fprintf(stderr, "%s is damaged or torn; what cannot be read counts as not run\n", path);
    damaged += journal->damaged + (journal->rest > 0);
  }
  return damaged;
}

/* Reading. */

static Status finished_load_record(Finished *finished, const FinishedPlace *place, const Task *task,
                                   TaskResult *result) {
  const int slot = place->journal % FINISHED_OPEN;
  char path[PATH_SIZE];
  finished_journal_path(finished, place->journal, path);
  if (finished->open[slot] != place->journal) {
    if (finished->open[slot] >= 0) close(finished->file[slot]);
    finished->open[slot] = -1;
    if (access(path, F_OK) != 0 && errno == ENOENT)
      return status_set(STATUS_INPUT, "%s is gone: task %d cannot be read", path, task->index);
    TRY(journal_open(path, false, &finished->file[slot]));
    finished->open[slot] = place->journal;
  }
  return journal_load(finished->file[slot], path, finished->study, task, place->at, result);
}

Status finished_load(Finished *finished, const Task *task, TaskResult *result) {
  Status status = finished_load_record(finished, &finished->place[task->index], task, result);
  for (int i = 0; status == STATUS_INPUT && i < finished->copies; i++)
    if (finished->copy[i].task == task->index)
      status = finished_load_record(finished, &finished->copy[i], task, result);
  return status;
}

Status finished_share(Finished *finished, const Task *task, TaskResult *result) {
  const Study *study = finished->study;
  if (!study_has_shared(study)) return STATUS_OK;
  if (clock_wall() - finished->looked_at > 50 * finished->look_seconds) TRY(finished_look(finished));
  SCOPED(TaskResult, found, study_result_destroy);
  TRY(study_result_create(study, task, &found));
  for (int p = 0; p < study->file->policy_count; p++) {
    const Task other =
        study_task(study, study_task_index(study, task->setting, p, task->index % study->runs.blocks));
    if (finished->state[other.index] != RUN_OK) continue;
    if (finished_load(finished, &other, &found) != STATUS_OK) continue;
    study_result_share(study, &found, result);
    break;
  }
  return STATUS_OK;
}

Status finished_try(Finished *finished, const Task *task, bool *usable) {
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(finished->study, task, &result));
  const Status status = finished_load(finished, task, &result);
  *usable = status == STATUS_OK;
  return status == STATUS_INPUT ? STATUS_OK : status;
}

Status finished_check(int shard, int shards, Finished *finished) {
  SCRATCH_ARENA(scratch);
  const int tasks = finished->study->task_count;
  signed char *bad;
  Status status = arena_new(&scratch, (void **)&bad, (size_t)tasks, sizeof *bad);
  for (int i = 0, part = 0; i < tasks && status == STATUS_OK; i++) {
    if (finished->state[i] == RUN_NOT_RUN || study_shard(finished->study, i, shards) != shard ||
        part++ % parallel_size() != parallel_rank())
      continue;
    const Task task = study_task(finished->study, i);
    bool usable = false;
    status = finished_try(finished, &task, &usable);
    if (status != STATUS_OK || usable) continue;
    fprintf(stderr, "%s; it runs again\n", status_message());
    bad[i] = 1;
  }
  TRY(parallel_agree(status));
  parallel_collect(bad, (size_t)tasks);
  for (int i = 0; i < tasks; i++)
    if (bad[i]) finished->state[i] = RUN_NOT_RUN;
  return STATUS_OK;
}
