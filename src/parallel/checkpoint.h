/* The folder of a study: what is finished, durably, one small file for each task.
 *
 *   DIR/study.yaml          the resolved study
 *   DIR/tasks/000042.nc     a finished task; 000042.failed.nc one that raised an error
 *   DIR/priors/             fitted priors (study/belief.h)
 *   .bad, .bad.2, ...       behind the name of a file that could not be used
 *   DIR/lock, lock.I        held by the jobs that write here (parallel/lock.h)
 *   DIR/results.nc, DIR/prior_samples.nc     by the reducer
 */
#ifndef PARALLEL_CHECKPOINT_H
#define PARALLEL_CHECKPOINT_H

#include "parallel/lock.h"
#include "study/study.h"

typedef enum { CHECKPOINT_FRESH, CHECKPOINT_RESUME, CHECKPOINT_OVERWRITE } CheckpointMode;

/* Make the folder ready and lock it; the caller ends with lock_release(*lock). One rank calls this. FRESH: a
 * folder that holds a study is refused (STATUS_FILE). RESUME: another configuration is refused, naming the
 * key (STATUS_RESUME); an empty or missing folder starts from nothing; this is how a shard begins, too.
 * OVERWRITE: removes the study in it. In every mode a folder is refused (STATUS_FILE) in which something that
 * is not the study's own (parallel/folder.h) stands in its way: results without a study, links in the place
 * of files. `shard` is the number of the shard, negative for the whole study. */
Status checkpoint_open(const char *directory, const Study *study, CheckpointMode mode, int shard,
                       Lock **lock);

/* state[task_count]: RUN_NOT_RUN, RUN_OK or RUN_FAILED by the names of the files. */
Status checkpoint_scan(const char *directory, const Study *study, signed char *state);

/* STATUS_RESUME when the finished tasks in state[task_count] are of another study: study.yaml was changed. */
Status checkpoint_check_tasks(const char *directory, const Study *study, const signed char *state);

Status checkpoint_save(const char *directory, const Study *study, const Task *task, const TaskResult *result);
/* Read a finished task into `result`, which has room. STATUS_INPUT when the file is damaged, or of another
 * study. */
Status checkpoint_load(const char *directory, const Study *study, const Task *task, bool failed,
                       TaskResult *result);
/* Take the curves that all policies share from a finished task of the same setting and runs, if there is one
 * whose file can be used. */
Status checkpoint_share(const char *directory, const Study *study, const Task *task, TaskResult *result);
/* Put a file that cannot be used out of the way (000042.nc.bad, replacing nothing), so that the task counts
 * as not run. */
Status checkpoint_set_aside(const char *directory, const Task *task, bool failed);

/* The resolved study of a folder as text; free() it. STATUS_INPUT when the folder holds none. */
Status checkpoint_study(const char *directory, char **text);

#endif
