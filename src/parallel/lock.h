/* One job at a time writes to a folder; shards, each with a lock of its own, may write at once.
 *
 * DIR/lock (DIR/lock.I for shard I) is held in two ways. The system's own lock (flock) is freed when the job
 * dies, whatever way it dies. Where that lock does not reach other machines (some network file systems), the
 * text in the file counts: it names the job, and a thread changes it every few seconds. A job that finds the
 * text of another machine's job watches it: while it changes, that job lives. No clock is compared with
 * another. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

typedef struct Lock Lock;

/* Locks the folder, for shard `shard`, or for the whole study when negative (then no shard may hold it
 * either). STATUS_FILE naming the other job when one lives. Takes a few seconds when one holds the lock,
 * in case it is just dying; and 20 s when a job on another machine ended without freeing it. One rank
 * calls this; end with lock_release. */
Status lock_take(const char *directory, int shard, Lock **out);

/* Returns whether another job has taken the lock over (after this one was frozen for long) or the folder
 * is gone: it must end. NULL is a lock never lost. */
bool lock_lost(const Lock *lock);

/* Frees the lock. NULL is allowed. */
void lock_release(Lock *lock);
