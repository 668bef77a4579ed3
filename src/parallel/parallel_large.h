/* The large settings of a study (problem/problem.h): all ranks work together on one task after another,
 * before the shared queue of the other tasks opens. */
#pragma once

#include "parallel/tasks.h"

/* Runs the unfinished tasks of large settings, which belong to shard 0. Works like tasks_run, which leaves
 * them out; without large settings it does nothing. Collective. */
Status parallel_large_run(const Parallel *parallel, const Finished *finished, const TasksOptions *options,
                          TasksOutcome *outcome);
