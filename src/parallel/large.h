/* The large settings of a study (problem/problem.h): all ranks work on one task after the other, before the
 * shared counter opens. */
#pragma once

#include "parallel/tasks.h"

/* Runs what is not finished yet of the large settings; they belong to shard 0. As tasks_run, which leaves
 * them out; without any, nothing is done. Collective. */
Status large_run(const Parallel *parallel, const Finished *finished, const TasksOptions *options,
                 TasksOutcome *outcome);
