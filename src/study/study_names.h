/* The names of tasks. A task is named by what its numbers depend on, not by its place in a study: so an
 * edited study finds the tasks that it still has. The name is its first and last run, and a digest of the
 * resolved keys that the task uses, of the policy and its options, without the label, of its prior and
 * replicate, of the points that are kept, and of the contents of files that keys name. Only the digests are
 * kept, of which there are as many as cells and replicates: a study may have many more tasks. */
#pragma once

#include "study/study.h"

/* Allocates the names of a study whose runs are known. */
Status study_names_create(Study *study);
/* Names the cells of a setting. STATUS_FILE when a file cannot be read. */
Status study_name_setting(Study *study, int s, const Problem *problem);
/* Sorts the names, when all settings have theirs. */
void study_sort_names(Study *study);

/* Returns the name of task number `index`. */
TaskName study_task_name(const Study *study, int index);

/* The tasks of a study that have the same name, such as those of a policy that does not use the swept key. */
typedef struct {
  int count;
  int first, block; /* private: place in study->by_name, and the block of all these tasks */
} TasksAlike;

/* Finds the tasks with a name; there may be none. */
TasksAlike study_find_tasks(const Study *study, const TaskName *name);
/* Returns the number of task `i` of those, in the order of the study. */
int study_task_alike(const Study *study, const TasksAlike *alike, int i);

/* Returns whether an earlier task of the shard has the name of a task, so that one record serves both. Where
 * the number of runs is adaptive each setting runs its own. */
bool study_repeats_task(const Study *study, int index, int shard, int shards);
