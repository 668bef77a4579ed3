/* Internal to the reducer: what the layout of results.nc (reduce_layout.c) and the values in it (reduce.c)
 * share. */
#ifndef PARALLEL_REDUCE_INTERNAL_H
#define PARALLEL_REDUCE_INTERNAL_H

#include "io/store.h"
#include "parallel/finished.h"
#include "parallel/former.h"
#include "parallel/reduce.h"

typedef struct {
  const Parallel *parallel;
  const Study *study;
  const char *directory;
  const ReduceOptions *options;
  Former former; /* the results that are replaced, on rank 0 */
  int64_t lost; /* runs that those have and the tasks lack */
  StoreFile *file; /* on rank 0 */
  Finished finished;
  int *blocks; /* [setting_count], of each setting that count */
  int64_t runs; /* the most of any setting */
  int setting, policy, run, axis; /* dimensions */
  int *curve_ids; /* [curve_count, PER_CURVE] variable ids */
  int seconds, seconds_train, fallbacks, status;
} Reducer;

/* The variables of a curve; those from DIFF_MEAN on are of paired differences. */
enum { VALUES, MEAN, SE, COUNT, REPLICATE_SE, DIFF_MEAN, DIFF_SE, DIFF_REPLICATE_SE, PER_CURVE };

/* Define every dimension and variable of results.nc, and write what is known before the first cell: the axes,
 * labels, provenance. On rank 0. */
Status reduce_define(Reducer *reducer);

#endif
