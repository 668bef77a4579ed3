/* The file of one finished task, DIR/tasks/000042.nc, or 000042.failed.nc of one that raised an error. */
#ifndef PARALLEL_TASK_FILE_H
#define PARALLEL_TASK_FILE_H

#include "study/study.h"

/* STATUS_FILE when the path is too long. */
Status task_file_path(const char *directory, int task, bool failed, size_t size, char *path);

/* Write it durably. An earlier failure of the task is history: replaced by a new one, or removed. */
Status task_file_save(const char *directory, const Study *study, const Task *task, const TaskResult *result);
/* Remove the file of an earlier failure of a task that has succeeded. */
Status task_file_forget_failure(const char *directory, const Study *study, const Task *task);

/* Read it into `result`, which has room. STATUS_INPUT when the file is damaged, or of another study. */
Status task_file_load(const char *directory, const Study *study, const Task *task, bool failed,
                      TaskResult *result);

#endif
