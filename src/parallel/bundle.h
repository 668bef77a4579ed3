/* Many finished tasks in one file, DIR/tasks/FIRST-LAST-HASH.nc, so that a study of a million tasks is not a
 * million files: variables as in the file of one task, with a dimension `task` before the others.
 *
 * Each task has a checksum of its own, so a reader that wants one task of a bundle reads and checks no other;
 * the one at the end of the file is for whoever reads it all. */
#ifndef PARALLEL_BUNDLE_H
#define PARALLEL_BUNDLE_H

#include "parallel/folder.h"
#include "study/study.h"

/* Studies of more tasks than this are kept in bundles, others in a file for each task. */
enum { BUNDLE_FROM = 1024 };
bool bundle_is_for(const Study *study);

/* A task that succeeded. */
typedef struct {
  Task task;
  TaskResult result;
  double finished; /* when, in seconds since 1970 */
  double seconds; /* that it took; not kept */
} BundleEntry;

/* Bytes of an entry in memory. */
size_t bundle_entry_bytes(const Study *study, const Task *task);

/* Write entries[count] to a durable file; its name goes to `name`. The entries are sorted by task. Of the
 * same tasks the name is the same. */
Status bundle_write(const char *directory, const Study *study, int count, BundleEntry *entries,
                    char name[FOLDER_NAME]);

typedef struct Bundle Bundle;

/* Open a bundle and read which tasks it has; ended by bundle_close. STATUS_INPUT when it is damaged where
 * that is said; what a task gave is checked when it is loaded. */
Status bundle_open(const char *path, Bundle **out);
/* NULL is allowed. */
void bundle_close(Bundle *bundle);

int bundle_count(const Bundle *bundle);
/* Numbers of its tasks, rising, and when each was finished: [count]. */
const int64_t *bundle_tasks(const Bundle *bundle);
const double *bundle_finished(const Bundle *bundle);

/* Read a task that is in it into `result`, which has room. STATUS_INPUT when it is damaged, or of another
 * study. */
Status bundle_load(Bundle *bundle, const Study *study, const Task *task, TaskResult *result);
/* Read number `at` of its tasks; the caller ends with task_result_destroy of what is loaded. Errors: as
 * bundle_load. */
Status bundle_load_entry(Bundle *bundle, const Study *study, int at, BundleEntry *out);

/* Put a damaged bundle out of the way (durable_set_aside), after those of its tasks that are whole have been
 * written to one of their own, if it can be opened. *kept: how many those are. */
Status bundle_set_aside(const char *directory, const char *name, const Study *study, int *kept);

#endif
