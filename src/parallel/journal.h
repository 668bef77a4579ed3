/* Journals: what the ranks of a study's jobs have finished. Each rank of each job appends to a journal of its
 * own, DIR/tasks/HEX.journal (16 random digits), one record after the other:
 *
 *   header    mark, SHA-256 of the study, task, outcome, time, length of the payload, SHA-256 of the payload,
 *             checksum of the header
 *   payload   seconds[runs], fallbacks[runs], curves[curve_count, runs, points], after a failure its
 *             message, then watched[2, runs], which records of earlier versions lack
 *
 * in the byte order of the machine. A record counts when its header and its payload fit their checksums. So a
 * reader finds its way by headers alone, a record that is torn or damaged costs its own task, and no two
 * processes ever write to one file. */
#pragma once

#include "study/study.h"

/* Writing. */

typedef struct Journal Journal;

/* Prepares a journal in DIR/tasks; the file is made by the first record. The caller ends with
 * journal_close. */
Status journal_create(Arena *memory, const char *directory, const Study *study, Journal **out);
/* Appends a task that has ended, failures too. It outlives this process; journal_sync makes it durable. What
 * a full disk has cut off is taken back. */
Status journal_append(Journal *journal, const Task *task, const TaskResult *result);
Status journal_sync(Journal *journal);
/* Frees a posterior; NULL is allowed. */
void journal_close(Journal *journal);

/* Reading. */

typedef struct {
  int task;
  RunStatus status;
  int64_t at; /* byte where the record begins */
  double finished; /* seconds since 1970 */
} JournalRecord;

/* What a scan meets from byte `end` of a journal on. */
typedef struct {
  void (*record)(void *context, const JournalRecord *record);
  void *context;
  bool repair; /* damaged bytes are made void, a torn end is cut off: nobody else may have the file open */
  int64_t end; /* behind the last whole header whose payload is there: where the next scan begins */
  int64_t rest; /* bytes behind `end` */
  int damaged; /* stretches before it that are no records */
} JournalScan;

/* Reads the headers from scan->end on. STATUS_RESUME naming the file when a record is of another study. */
Status journal_scan(const char *path, const Study *study, JournalScan *scan);

/* Opens a journal for journal_load; close() it. STATUS_FILE when it cannot be read. */
Status journal_open(const char *path, int *file);
/* Reads the record at byte `at` of an open journal, which must be that of `task`, into `result`, which has
 * room. STATUS_INPUT when it is damaged. */
Status journal_load(int file, const char *path, const Study *study, const Task *task, int64_t at,
                    TaskResult *result);
