/* The folder of a study, which keeps finished work durably.
 *
 *   DIR/study.yaml          the resolved study
 *   DIR/tasks/HEX.journal   the tasks that one rank of one job finished (parallel/journal.h)
 *   DIR/priors/             fitted priors (study/study_belief.h)
 *   .bad, .bad.2, ...       appended to the name of a file that could not be used
 *   DIR/lock, lock.I        held by the jobs that write here (io/io_lock.h)
 *   DIR/results.nc, DIR/prior_samples.nc     written by the reducer */
#pragma once

#include "io/io_lock.h"
#include "study/study.h"

typedef enum { CHECKPOINT_FRESH, CHECKPOINT_RESUME, CHECKPOINT_OVERWRITE } CheckpointMode;

/* Prepares the folder and locks it; the caller must call io_lock_release(*lock). Called on one rank. FRESH
 * refuses a folder that holds a study (STATUS_FILE). RESUME refuses another configuration and names the key
 * that differs (STATUS_RESUME); an empty or missing folder starts a new study, and shards begin in this mode,
 * too. OVERWRITE removes the study in the folder. Every mode refuses a folder (STATUS_FILE) where something
 * that is not the study's own (parallel/parallel_folder.h) is in the way: results without a study, links in
 * place of files. `shard` is the number of the shard, negative for the whole study. */
Status parallel_checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                                Lock **lock);

/* Reads the resolved study of a folder as text, which the caller frees. STATUS_INPUT when the folder holds
 * none. */
Status parallel_checkpoint_study(const char *directory, char **text);
