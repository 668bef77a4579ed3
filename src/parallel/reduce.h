/* From finished tasks to results.nc: gathered in task order, means taken in run order, so the bytes do not
 * depend on ranks or interruptions. Rank 0 writes; the others, when there are any, read the files for it.
 * Memory: the runs of two policies in one setting on rank 0, of one on the others. */
#ifndef PARALLEL_REDUCE_H
#define PARALLEL_REDUCE_H

#include "parallel/parallel.h"
#include "study/study.h"

typedef struct {
  int ok, failed, missing; /* tasks */
  int set_aside; /* of the missing: their files could not be used */
} ReduceCounts;

/* Write DIR/results.nc and DIR/prior_samples.nc from the tasks that are there; others are NaN with status
 * not_run or failed. With an adaptive number of runs the dimension run is the largest that any setting has; a
 * setting that ended earlier has not_run behind its end. Task files that cannot be used are set aside,
 * reported on stderr, and count as missing. `counts` is of rank 0. Collective. */
Status reduce_study(const Parallel *parallel, const Study *study, const char *directory,
                    ReduceCounts *counts);

#endif
