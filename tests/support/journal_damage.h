/* Damage to a journal of finished tasks, described by a few bytes: for fuzz_journal.c, and for
 * test_journal.c, which walks its corpus and tries much more. The steps are those of store_damage.h: flip a
 * byte, fill everything behind a place, cut it off, append. */
#pragma once

#include "parallel/tasks/finished.h"

enum { JOURNAL_TASKS = 6 };

/* Creates a study of JOURNAL_TASKS tasks with that seed. */
void journal_fixture_study(const char *seed, Study *out);

/* Makes up numbers, one of them missing; `failed` with a message. The last task has one run, the others
 * two. */
void journal_fixture_result(const Study *study, int index, bool failed, Task *task, TaskResult *result);

/* Appends the made-up result of a task. */
void journal_fixture_append(const Study *study, Journal *journal, int index, bool failed);

/* Writes tasks[count] into a new journal; its path goes to path[size], if it is the only one. */
void journal_fixture_write(const char *folder, const Study *study, int count, const int *tasks, size_t size,
                           char *path);

/* Writes a file of these bytes. */
void journal_fixture_put(const char *path, const char *bytes, size_t size);

/* What can still be read in a folder after damage. */
typedef struct {
  bool loads[JOURNAL_TASKS]; /* tasks that can be read */
  int damage; /* damaged stretches and torn ends that a scan finds */
  const char *broken; /* a promise that was broken; NULL */
} JournalRead;

/* Reads all tasks. A task must either be as it was made, or be refused. */
JournalRead journal_damage_read(const char *folder, const Study *study, bool repair);

/* Tells whether the reader keeps its promises for these bytes: NULL, or the promise that was broken. */
const char *journal_damage_check(const char *folder, const char *path, const Study *study, const char *bytes,
                                 size_t size);

/* Damages the journal of a folder as the bytes say, and checks it. */
const char *journal_damage_run(const char *folder, const uint8_t *data, size_t length);
