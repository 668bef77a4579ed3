/* A task in a process of its own, so that one that hangs, crashes or uses up the memory costs no other. The
 * process is forked from the rank, never calls MPI, and dies with the rank. */
#pragma once

#include "study/study.h"

/* Runs a task as study_run_task does, in a process of its own. One that is not done after `timeout` seconds
 * (time during which the rank itself was suspended does not count) is killed; that, or its own death, gives
 * RUN_FAILED with a message. STATUS_STOPPED when `tick` returned false: it is called about every 20 ms. */
Status isolate_run_task(const Study *study, const Task *task, const char *directory, double timeout,
                        Tick tick, TaskResult *result);
