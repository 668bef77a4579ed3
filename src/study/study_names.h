/* The names of tasks. A task is named by what its numbers depend on, not by its place in a study: so an
 * edited study finds the tasks that it still has. The name is a digest of the resolved keys that the task
 * uses, of the policy and its options, without the label, of its prior, its runs and replicate, of the points
 * that are kept, and of the contents of files that keys name. */
#pragma once

#include "study/study.h"

/* Names the tasks of a setting: study->names. STATUS_FILE when a file cannot be read. */
Status study_name_setting(Study *study, int s, const Problem *problem);

/* Sorts the tasks by their names: study->by_name. */
void study_sort_names(Study *study);

/* Finds the tasks of a study with this name, of which there may be several, such as those of a policy that
 * does not use the swept key: study->by_name[first .. first + count - 1]. Returns their number. */
int study_find_tasks(const Study *study, const TaskName *name, int *first);

/* Returns whether an earlier task of the shard has the name of a task, so that one record serves both. Where
 * the number of runs is adaptive each setting runs its own. */
bool study_repeats_task(const Study *study, int index, int shard, int shards);
