#include "parallel/tasks/journal.h"

#include "core/clock.h"
#include "io/durable.h"
#include "parallel/tasks/folder.h"
#include "study/study_names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

const char journal_mark[] = "thompso2";
static const char old_mark[] = "thompson"; /* of versions that named tasks by their place in the study */
enum { MARK = sizeof journal_mark - 1, CHECK_SIZE = 16, WHOLE_DIGEST = DIGEST_SIZE - 1 };

typedef struct {
  char mark[MARK];
  TaskName name;
  int64_t place, status, length; /* length of the payload; status RUN_NOT_RUN: a void record */
  int64_t constant; /* bit c: column c is stored once */
  double finished;
  char digest[WHOLE_DIGEST]; /* of the payload */
  char check[CHECK_SIZE]; /* first digits of the SHA-256 of everything before it */
} Header;

_Static_assert(sizeof(Header) + JOURNAL_FIRST_COLUMNS * COLUMN_BYTES == JOURNAL_RECORD, "a record's size");

/* Adds the checksum to a header. */
static Status journal_seal_header(Header *header) {
  char digest[DIGEST_SIZE];
  TRY(digest_hex(header, offsetof(Header, check), digest));
  memcpy(header->check, digest, CHECK_SIZE);
  return STATUS_OK;
}

static bool journal_header_is_whole(const Header *header) {
  Header again = *header;
  return memcmp(header->mark, journal_mark, MARK) == 0 && journal_seal_header(&again) == STATUS_OK &&
         memcmp(header->check, again.check, CHECK_SIZE) == 0 && header->length >= 0;
}

static bool journal_is_constant(int64_t constant, int c) { return constant >> c & 1; }

/* Returns the columns that are the same in all runs. */
static int64_t journal_find_constant(const TaskResult *result) {
  int64_t constant = 0;
  for (int c = 0; c < COLUMN_KINDS; c++) {
    const char *values = columns_values(&result->columns, c);
    int b = 1;
    while (b < result->runs && memcmp(values, values + b * COLUMN_BYTES, COLUMN_BYTES) == 0) b++;
    if (b == result->runs) constant |= 1LL << c;
  }
  return constant;
}

/* Gives all runs the numbers of the constant columns, which the first run has. */
static void journal_spread_constant(int64_t constant, TaskResult *result) {
  for (int c = 0; c < COLUMN_KINDS; c++) {
    char *values = columns_values(&result->columns, c);
    for (int b = 1; b < result->runs && journal_is_constant(constant, c); b++)
      memcpy(values + b * COLUMN_BYTES, values, COLUMN_BYTES);
  }
}

static JournalPart journal_column(const TaskResult *result, int64_t constant, int c) {
  const size_t numbers = journal_is_constant(constant, c) ? 1 : (size_t)result->runs;
  return (JournalPart){columns_values(&result->columns, c), numbers * COLUMN_BYTES};
}

int64_t journal_list_payload(RunStatus status, int64_t constant, const TaskResult *result,
                             JournalPart parts[JOURNAL_PARTS]) {
  int64_t length = 0;
  int count = 0;
  for (int c = 0; c < JOURNAL_FIRST_COLUMNS; c++) parts[count++] = journal_column(result, constant, c);
  parts[count++] = (JournalPart){result->curves, result->size * sizeof *result->curves};
  parts[count++] =
      (JournalPart){(char *)(uintptr_t)result->message, status == RUN_FAILED ? sizeof result->message : 0};
  for (int c = JOURNAL_FIRST_COLUMNS; c < COLUMN_KINDS; c++)
    parts[count++] = journal_column(result, constant, c);
  for (int i = 0; i < JOURNAL_PARTS; i++) length += (int64_t)parts[i].size;
  return length;
}

static Status journal_digest_payload(int count, const JournalPart parts[], char out[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  for (int i = 0; i < count; i++) digest_add(&digest, parts[i].bytes, parts[i].size);
  return digest_end(&digest, out);
}

/* Writing. */

struct Journal {
  const char *directory;
  const Study *study;
  const char *path; /* of the file, once it exists */
  FILE *file; /* NULL before the first record */
  Arena *memory;
  off_t end; /* of the last record */
  int error; /* of a failed sync: a later one would not report it */
};

Status journal_create(Arena *memory, const char *directory, const Study *study, Journal **out) {
  ALLOCATE(memory, *out, 1);
  **out = (Journal){.directory = directory, .study = study, .memory = memory};
  return STATUS_OK;
}

static Status journal_cannot(const char *verb, const char *path) {
  return status_set(STATUS_FILE, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* Creates the file under a name that no other journal has. */
static Status journal_make_file(Journal *journal) {
  int file = -1;
  for (int attempt = 0; file < 0 && attempt < 100; attempt++) {
    uint64_t number;
    char name[FOLDER_NAME];
    if (getrandom(&number, sizeof number, 0) != sizeof number)
      return status_set(STATUS_INTERNAL, "cannot get random numbers from the system: %s", strerror(errno));
    folder_journal_name(number, name);
    TRY(arena_print(journal->memory, &journal->path, "%s/tasks/%s", journal->directory, name));
    file = open(journal->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file < 0) return journal_cannot("write", journal->path);
  journal->file = fdopen(file, "wb");
  if (!journal->file) return journal_cannot("write", journal->path);
  return durable_sync_folder_of(journal->path);
}

Status journal_append(Journal *journal, const Task *task, const TaskResult *result) {
  JournalPart parts[JOURNAL_PARTS];
  char digest[DIGEST_SIZE];
  Header header = {.name = study_task_name(journal->study, task->index),
                   .place = task->index,
                   .status = result->status,
                   .constant = journal_find_constant(result),
                   .finished = clock_date()};
  memcpy(header.mark, journal_mark, sizeof header.mark);
  header.length = journal_list_payload(result->status, header.constant, result, parts);
  TRY(journal_digest_payload(JOURNAL_PARTS, parts, digest));
  memcpy(header.digest, digest, sizeof header.digest);
  TRY(journal_seal_header(&header));
  if (!journal->file) TRY(journal_make_file(journal));
  bool good = fwrite(&header, sizeof header, 1, journal->file) == 1;
  for (int i = 0; i < JOURNAL_PARTS; i++)
    good = good && fwrite(parts[i].bytes, 1, parts[i].size, journal->file) == parts[i].size;
  if (good && fflush(journal->file) == 0) {
    journal->end += (off_t)sizeof header + header.length;
    return STATUS_OK;
  }
  const Status status = journal_cannot("write", journal->path);
  if (ftruncate(fileno(journal->file), journal->end) != 0) return status; /* its end stays torn */
  return status;
}

Status journal_sync(Journal *journal) {
  if (!journal->file) return STATUS_OK;
  if (journal->error == 0 && fdatasync(fileno(journal->file)) != 0) journal->error = errno;
  errno = journal->error;
  return journal->error == 0 ? STATUS_OK : journal_cannot("write", journal->path);
}

void journal_close(Journal *journal) {
  if (journal && journal->file) fclose(journal->file);
}

/* Reading. */

/* Reads `size` bytes from byte `at` on; STATUS_INPUT when the file ends too early. */
static Status journal_read_bytes(int file, const char *path, int64_t at, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = pread(file, (char *)bytes + done, size - done, (off_t)at + (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return journal_cannot("read", path);
    if (n == 0) return status_set(STATUS_INPUT, "%s is damaged: it ends in the middle of a record", path);
    done += (size_t)n;
  }
  return STATUS_OK;
}

Status journal_open(const char *path, bool repair, int *file) {
  *file = open(path, (repair ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  return *file >= 0 ? STATUS_OK : journal_cannot("read", path);
}

/* Finds the first whole header in [from, size) of a file; *at is `size` when there is none. */
static Status journal_find_header(int file, const char *path, int64_t from, int64_t size, int64_t *at) {
  enum { WINDOW = 1 << 16 };
  char bytes[WINDOW];
  Header header;
  for (*at = from; *at + (int64_t)sizeof header <= size;) {
    const size_t length = size - *at < WINDOW ? (size_t)(size - *at) : WINDOW;
    TRY(journal_read_bytes(file, path, *at, bytes, length));
    for (const char *mark = bytes; (mark = memmem(mark, length - (size_t)(mark - bytes), journal_mark, MARK));
         mark++) {
      const int64_t found = *at + (mark - bytes);
      if (found + (int64_t)sizeof header > size) break;
      TRY(journal_read_bytes(file, path, found, &header, sizeof header));
      if (!journal_header_is_whole(&header)) continue;
      *at = found;
      return STATUS_OK;
    }
    *at += (int64_t)(length - MARK + 1);
  }
  *at = size;
  return STATUS_OK;
}

/* Turns the damaged bytes [at, end) into a void record, so that they are reported only once. */
static Status journal_void_bytes(int file, const char *path, int64_t at, int64_t end) {
  Header header = {.place = -1, .status = RUN_NOT_RUN, .length = end - at - (int64_t)sizeof header};
  if (header.length < 0) return STATUS_OK;
  memcpy(header.mark, journal_mark, sizeof header.mark);
  TRY(journal_seal_header(&header));
  return pwrite(file, &header, sizeof header, (off_t)at) == (ssize_t)sizeof header && fdatasync(file) == 0
             ? STATUS_OK
             : journal_cannot("write", path);
}

/* Reads the headers of an open journal of `size` bytes, and passes the whole ones on. */
static Status journal_scan_file(int file, const char *path, int64_t size, JournalScan *scan) {
  Header header;
  while (scan->end + (int64_t)sizeof header <= size) {
    TRY(journal_read_bytes(file, path, scan->end, &header, sizeof header));
    if (!journal_header_is_whole(&header)) {
      int64_t next;
      if (memcmp(header.mark, old_mark, MARK) == 0)
        return status_set(
            STATUS_RESUME,
            "%s was written by an earlier version of this program; use another folder, or finish "
            "with that version",
            path);
      TRY(journal_find_header(file, path, scan->end + 1, size, &next));
      if (next == size) break;
      if (scan->repair) TRY(journal_void_bytes(file, path, scan->end, next));
      scan->damaged++;
      scan->end = next;
      continue;
    }
    if (header.length > size - scan->end - (int64_t)sizeof header) break; /* torn, or being written */
    const JournalRecord record = {.task = header.name,
                                  .status = (RunStatus)header.status,
                                  .at = scan->end,
                                  .length = (int64_t)sizeof header + header.length,
                                  .finished = header.finished};
    if (record.status != RUN_NOT_RUN) TRY(scan->record(scan->context, &record));
    scan->end += (int64_t)sizeof header + header.length;
  }
  scan->rest = size - scan->end;
  if (!scan->repair || scan->rest == 0 || scan->end == 0) return STATUS_OK;
  return ftruncate(file, (off_t)scan->end) == 0 ? STATUS_OK : journal_cannot("write", path);
}

Status journal_scan(const char *path, JournalScan *scan) {
  int file;
  struct stat info;
  TRY(journal_open(path, scan->repair, &file));
  Status status = fstat(file, &info) == 0 ? STATUS_OK : journal_cannot("read", path);
  if (status == STATUS_OK) status = journal_scan_file(file, path, info.st_size, scan);
  close(file);
  return status;
}

Status journal_load(int file, const char *path, const Study *study, const Task *task, int64_t at,
                    TaskResult *result) {
  Header header;
  JournalPart parts[JOURNAL_PARTS];
  char digest[DIGEST_SIZE];
  TRY(journal_read_bytes(file, path, at, &header, sizeof header));
  int64_t length = journal_list_payload((RunStatus)header.status, header.constant, result, parts);
  const TaskName name = study_task_name(study, task->index);
  int count = JOURNAL_PARTS; /* of these the record has; earlier versions knew fewer columns */
  while (length > header.length && count > JOURNAL_FEWEST_PARTS) length -= (int64_t)parts[--count].size;
  columns_clear((size_t)result->runs, &result->columns);
  bool whole = journal_header_is_whole(&header) && memcmp(&header.name, &name, sizeof name) == 0 &&
               length == header.length;
  if (whole) {
    at += (int64_t)sizeof header;
    for (int i = 0; i < count; at += (int64_t)parts[i++].size)
      TRY(journal_read_bytes(file, path, at, parts[i].bytes, parts[i].size));
    TRY(journal_digest_payload(count, parts, digest));
    whole = memcmp(digest, header.digest, sizeof header.digest) == 0;
  }
  if (!whole) return status_set(STATUS_INPUT, "%s is damaged: task %d cannot be read", path, task->index);
  journal_spread_constant(header.constant, result);
  result->recorded = count - (JOURNAL_PARTS - COLUMN_KINDS);
  result->status = (RunStatus)header.status;
  if (result->status == RUN_OK) result->message[0] = '\0';
  result->message[sizeof result->message - 1] = '\0';
  return STATUS_OK;
}
