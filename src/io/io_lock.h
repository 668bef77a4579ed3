/* One job at a time writes to a folder; shards, each with its own lock, may write at the same time.
 *
 * DIR/lock (DIR/lock.I for shard I) is held in two ways. The system's lock (flock) is freed when the job
 * dies, however it dies. If that lock does not reach other machines (some network file systems), the text in
 * the file counts: it names the job, and a thread changes it every few seconds. A job that finds the text of
 * a job on another machine watches it: while the text changes, that job is alive. No two clocks are ever
 * compared. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Lock Lock;

/* Locks the folder, for shard `shard`, or for the whole study when negative (then no shard may hold it
 * either). STATUS_FILE naming the other job when one is alive. Takes a few seconds when another job holds the
 * lock, in case it is just dying, and 20 s when a job on another machine ended without freeing it. Called on
 * one rank, which ends with io_lock_release. */
Status io_lock_take(const char *directory, int shard, Lock **out);

/* Finds which job writes to the folder now: writes its description to text[size], which is empty if there is
 * none, and returns whether it is certain that the job runs; from another machine that can be unknown. If
 * several shards write, it describes one of them. */
bool io_lock_holder(const char *directory, size_t size, char *text);

/* Returns whether another job has taken over the lock (after this one was frozen for a long time) or the
 * folder is gone: this job must then end. NULL counts as a lock that is never lost. */
bool io_lock_lost(const Lock *lock);

/* Frees the lock. NULL is allowed. */
void io_lock_release(Lock *lock);
