/* The folder of a study: what is finished, durably.
 *
 *   DIR/study.yaml          the resolved study
 *   DIR/tasks/HEX.journal   the tasks that one rank of one job finished (parallel/journal.h)
 *   DIR/priors/             fitted priors (study/belief.h)
 *   .bad, .bad.2, ...       behind the name of a file that could not be used
 *   DIR/lock, lock.I        held by the jobs that write here (parallel/lock.h)
 *   DIR/results.nc, DIR/prior_samples.nc     by the reducer */
#pragma once

#include "parallel/lock.h"
#include "study/study.h"

typedef enum { CHECKPOINT_FRESH, CHECKPOINT_RESUME, CHECKPOINT_OVERWRITE } CheckpointMode;

/* Makes the folder ready and locks it; the caller ends with lock_release(*lock). One rank calls this.
 * FRESH: a folder that holds a study is refused (STATUS_FILE). RESUME: another configuration is refused,
 * naming the key (STATUS_RESUME); an empty or missing folder starts from nothing; this is how a shard
 * begins, too. OVERWRITE: removes the study in it. In every mode a folder is refused (STATUS_FILE) in
 * which something that is not the study's own (parallel/folder.h) stands in its way: results without a
 * study, links in the place of files. `shard` is the number of the shard, negative for the whole study. */
Status checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                       Lock **lock);

/* Reads the resolved study of a folder as text; free() it. STATUS_INPUT when the folder holds none. */
Status checkpoint_study(const char *directory, char **text);
