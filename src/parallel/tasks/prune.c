#include "parallel/tasks/prune.h"

#include "io/durable.h"
#include "io/io_lock.h"
#include "parallel/tasks/finished.h"
#include "study/study_names.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* A journal that is written again. */
typedef struct {
  const Study *study;
  FILE *from, *to; /* `to` is NULL while records are only counted */
  PruneCounts kept, dropped;
} Prune;

/* Copies the bytes of a record. */
static bool prune_copy(Prune *prune, int64_t at, int64_t length) {
  char bytes[1 << 14];
  bool good = fseeko(prune->from, (off_t)at, SEEK_SET) == 0;
  while (good && length > 0) {
    const size_t part = length < (int64_t)sizeof bytes ? (size_t)length : sizeof bytes;
    good = fread(bytes, 1, part, prune->from) == part && fwrite(bytes, 1, part, prune->to) == part;
    length -= (int64_t)part;
  }
  return good;
}

static Status prune_take_record(void *context, const JournalRecord *record) {
  Prune *prune = context;
  const bool used = study_find_tasks(prune->study, &record->task).count > 0;
  PruneCounts *counts = used ? &prune->kept : &prune->dropped;
  counts->records++;
  counts->bytes += record->length;
  if (!used || !prune->to || prune_copy(prune, record->at, record->length)) return STATUS_OK;
  return status_set(STATUS_FILE, "cannot write the journal again: %s", strerror(errno));
}

/* Copies what the study has of a journal to `temporary`. */
static Status prune_write(const char *path, const char *temporary, Prune *prune) {
  JournalScan scan = {.record = prune_take_record, .context = prune};
  Status status = STATUS_OK;
  prune->from = fopen(path, "rbe");
  prune->to = fopen(temporary, "wbe");
  if (!prune->from || !prune->to)
    status = status_set(STATUS_FILE, "cannot open %s: %s", prune->from ? temporary : path, strerror(errno));
  if (status == STATUS_OK) status = journal_scan(path, &scan);
  if (prune->from) fclose(prune->from);
  if (prune->to && fclose(prune->to) != 0 && status == STATUS_OK)
    status = status_set(STATUS_FILE, "cannot write %s: %s", temporary, strerror(errno));
  return status;
}

static Status prune_journal(const char *path, const Study *study, PruneCounts *counts) {
  Prune prune = {.study = study};
  JournalScan scan = {.record = prune_take_record, .context = &prune};
  SCOPED(char *, temporary, memory_free_text);
  TRY(journal_scan(path, &scan));
  if (prune.dropped.records == 0) return STATUS_OK;
  if (prune.kept.records == 0) {
    if (unlink(path) != 0) return status_set(STATUS_FILE, "cannot remove %s: %s", path, strerror(errno));
  } else {
    Prune again = {.study = study};
    TRY(durable_begin(path, &temporary));
    const Status status = prune_write(path, temporary, &again);
    if (status != STATUS_OK) unlink(temporary);
    TRY(status);
    TRY(durable_publish(temporary, path, true));
  }
  counts->records += prune.dropped.records;
  counts->bytes += prune.dropped.bytes;
  return STATUS_OK;
}

Status prune_folder(const char *directory, const Study *study, PruneCounts *counts) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close);
  Lock *lock;
  *counts = (PruneCounts){0};
  TRY(io_lock_take(directory, -1, &lock));
  Status status = finished_open(&scratch, directory, study, true, &finished);
  for (int i = 0; i < finished.journals && status == STATUS_OK; i++) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/tasks/%s", directory, finished.journal[i].name);
    if (finished.journal[i].end > 0) status = prune_journal(path, study, counts);
  }
  io_lock_release(lock);
  return status;
}
