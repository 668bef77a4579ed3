/* One cell of the results: all runs of one policy in one setting, read from the finished tasks, and its
 * statistics. Sums go in run order. */
#ifndef PARALLEL_CELL_H
#define PARALLEL_CELL_H

#include "parallel/reduce.h"
#include "study/study.h"

typedef struct {
  double *curves; /* [curve_count, runs, points], NaN where a run is missing */
  double *seconds; /* [runs] */
  int64_t *fallbacks; /* [runs] */
  signed char *status; /* [runs], RunStatus */
  double
      seconds_train; /* CPU seconds of the fits that the policy used, all replicates; NaN when it uses none */
} Cell;

Status cell_create(const Study *study, Cell *out);
void cell_destroy(Cell *cell);
/* Read the tasks of a cell; unusable files are set aside and reported on stderr. Adds to counts. */
Status cell_load(const Study *study, const char *directory, const signed char *state, int setting, int policy,
                 Cell *cell, ReduceCounts *counts);

/* mean[points] and standard error[points] of values[runs, points] (minus base, when given) over the runs
 * where both are there. NaN where too few. */
void cell_mean(const Study *study, const double *values, const double *base, double *mean, double *se);
/* Standard error[points] over the means of replicates; NaN with fewer than two. */
void cell_replicate_se(const Study *study, const double *values, double *se);
/* Number of runs that are there: n[points]. */
void cell_completed(const Study *study, const double *values, int *n);

#endif
