/* How the results of a rank reach the disk. In a small study each task is saved by itself. In one that is
 * kept in bundles (parallel/bundle.h) tasks are saved together, as databases commit in groups (DeWitt et al.,
 * SIGMOD 1984): work of about a second is one durable file, so that a save is not paid for each short task,
 * and a kill loses no more than that second, none of which counts as done yet.
 *
 * A rank merges its files as they become many, eight of about the same age into one, up to a minute's or 64
 * MB; a merged file is durable before the others are removed. */
#ifndef PARALLEL_COMMIT_H
#define PARALLEL_COMMIT_H

#include "study/study.h"

typedef struct Commit Commit;

enum { COMMIT_BYTES = 64 << 20 }; /* of results that wait in memory, and of a file that is merged */

/* Called for each task that is on disk, with the seconds that it took. */
typedef struct {
  void (*saved)(void *context, const Task *task, const TaskResult *result, double seconds);
  void *context;
} CommitNotice;

/* `directory` is not copied. The caller ends with commit_destroy. */
Status commit_create(const char *directory, const Study *study, CommitNotice notice, Commit **out);
/* Drops what is not saved. NULL is allowed. */
void commit_destroy(Commit *commit);

/* Take over the result of a task that took `seconds` and has just ended, also after a failure. One that is
 * saved by itself is saved at once: of a small study, or a task that failed. */
Status commit_add(Commit *commit, const Task *task, TaskResult *result, double seconds);
/* Whether what is not saved should be, before `ahead` more seconds are spent; infinite before a wait. */
bool commit_is_due(const Commit *commit, double ahead);
/* Save it. What a failure leaves may be tried again. */
Status commit_save(Commit *commit);
/* Merge the files of this rank that are not large yet, at its end. */
Status commit_merge(Commit *commit);

#endif
