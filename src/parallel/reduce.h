/* From finished tasks to results.nc: gathered in task order, means taken in run order, so the bytes do not
 * depend on ranks or interruptions. Memory: the runs of two policies in one setting. */
#ifndef PARALLEL_REDUCE_H
#define PARALLEL_REDUCE_H

#include "study/study.h"

typedef struct {
  int ok, failed, missing; /* tasks */
} ReduceCounts;

/* Write DIR/results.nc and DIR/prior_samples.nc from the tasks that are there; others are NaN with status
 * not_run or failed. One rank calls this. Task files that cannot be used are set aside, reported on stderr,
 * and count as missing. */
Status reduce_study(const Study *study, const char *directory, ReduceCounts *counts);

#endif
