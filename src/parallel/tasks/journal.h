/* Journals: the tasks that the ranks of a study's jobs have finished. Each rank of each job appends to its
 * own journal, DIR/tasks/HEX.journal (16 random digits), one record after another:
 *
 *   header    mark; name of the task (study/study_names.h); its place in the study that ran it; outcome;
 *             time; the columns that are the same in all runs; length of the payload; SHA-256 of the
 *             payload; checksum of the header
 *   payload   the first columns of the list (study/columns.h), [runs] each; the curves of the task
 *             (study/study.h); the message of a failure; and the other columns, of which records of
 *             earlier versions lack some
 *
 * in the byte order of the machine. A column that is the same in all runs is stored once. A record counts if
 * its header and its payload match their checksums. So a reader finds its way by headers alone, a torn or
 * damaged record loses only its own task, and no two processes ever write to the same file. Records of tasks
 * that the study does not have, because it was edited or they are of another study, are not used. */
#pragma once

#include "study/study.h"

/* The parts of a payload, in order. */
typedef struct {
  void *bytes;
  size_t size;
} JournalPart;

enum {
  JOURNAL_RECORD = 176, /* bytes of a header and the columns that are the same in all runs of a block */
  JOURNAL_FIRST_COLUMNS = 2, /* columns before the curves */
  JOURNAL_FEWEST_PARTS = JOURNAL_FIRST_COLUMNS + 2, /* those that all records have */
  JOURNAL_PARTS = COLUMN_KINDS + 2
};

/* Lists the parts of a payload; returns their total length. Only that of a failed task has a message, and
 * columns in the set `constant` have a single number. */
int64_t journal_list_payload(RunStatus status, int64_t constant, const TaskResult *result,
                             JournalPart parts[JOURNAL_PARTS]);

/* Writing. */

typedef struct Journal Journal;

/* The word with which every record begins, and with it every journal. */
extern const char journal_mark[];

/* Prepares a journal of a study whose tasks have names in DIR/tasks; the first record creates the file. The
 * caller must call journal_close. */
Status journal_create(Arena *memory, const char *directory, const Study *study, Journal **out);
/* Appends a task that has ended, even by failing. The record outlives this process; journal_sync makes it
 * durable. A record cut off by a full disk is taken back. */
Status journal_append(Journal *journal, const Task *task, const TaskResult *result);
Status journal_sync(Journal *journal);
/* Closes a journal; NULL is allowed. */
void journal_close(Journal *journal);

/* Reading. */

typedef struct {
  TaskName task;
  RunStatus status;
  int64_t at, length; /* byte where the record begins; bytes with its payload */
  double finished; /* seconds since 1970 */
} JournalRecord;

/* A scan of a journal from byte `end` on, and what it finds. */
typedef struct {
  Status (*record)(void *context, const JournalRecord *record);
  void *context;
  bool repair; /* voids damaged bytes and cuts off a torn end: nobody else may have the file open */
  int64_t end; /* after the last whole header whose payload is there: where the next scan begins */
  int64_t rest; /* bytes after `end` */
  int damaged; /* stretches before `end` that are not records */
} JournalScan;

/* Reads the headers from scan->end on. STATUS_RESUME naming the file when an earlier version of this program
 * wrote it. */
Status journal_scan(const char *path, JournalScan *scan);

/* Opens a journal for journal_load, or to repair it; the caller must call close(). STATUS_FILE when it cannot
 * be read. */
Status journal_open(const char *path, bool repair, int *file);
/* Reads the record at byte `at` of an open journal, which must be that of `task`, into `result`, which is
 * allocated. STATUS_INPUT when it is damaged. */
Status journal_load(int file, const char *path, const Study *study, const Task *task, int64_t at,
                    TaskResult *result);
