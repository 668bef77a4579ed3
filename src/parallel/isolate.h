/* A task in a separate process, so that one that hangs, crashes or uses up the memory harms no other. The
 * process is forked from the rank, never calls MPI, and dies with the rank. */
#pragma once

#include "study/study.h"

/* Runs a task as study_run_task does, but in a separate process. If it is not done after `timeout` seconds
 * (time during which the rank itself was suspended does not count), it is killed. A task whose process was
 * killed or died is RUN_FAILED with a message. STATUS_STOPPED when `tick`, which is called about every 20 ms,
 * returned false. */
Status isolate_run_task(const Study *study, const Task *task, const char *directory, double timeout,
                        Tick tick, TaskResult *result);
