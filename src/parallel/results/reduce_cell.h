/* One cell of the results: all runs of one policy in one setting, read from the finished tasks, and its
 * statistics. */
#pragma once

#include "parallel/tasks/finished.h"
#include "study/estimates.h"

typedef struct {
  int ok, failed, missing; /* tasks */
  int damaged; /* unreadable records of tasks that are therefore missing */
} ReduceCounts;

typedef struct {
  int64_t runs;
  double *curves; /* [along, runs, places], NaN where the run is missing or the setting lacks the point */
  Columns columns;
  signed char *status; /* [runs], RunStatus */
  /* CPU seconds of the fits that the policy used, over all replicates; NaN if it uses none. */
  double seconds_train;
} Cell;

Status reduce_cell_create(Arena *memory, const Study *study, int64_t runs, Cell *out);
/* Reads the first `blocks` blocks of a cell; its other runs count as not run. Records that cannot be read are
 * reported on stderr. Adds to `counts`. */
Status reduce_cell_load(Finished *finished, int setting, int policy, int blocks, Cell *cell,
                        ReduceCounts *counts);
/* Sums the CPU seconds of a cell's fitted priors, which are read from the prior files; `problem` is that of
 * the setting. */
Status reduce_cell_sum_fit_seconds(const Study *study, const char *directory, int setting, int policy,
                                   const Problem *problem, double *seconds);

/* Completes the curves of the world, which belong to the first policy: those of runs that `first` lacks are
 * copied from the cell of another policy. */
void reduce_cell_complete_world(const Study *study, const Cell *cell, Cell *first);

/* What results.nc holds of a curve: its values, and statistics over runs. From PART_DIFF_MEAN to
 * PART_DIFF_REPLICATE_SE they are of the paired difference to the first policy of the setting, whose number
 * is not stored; curves that all policies share have none of these. */
enum {
  PART_VALUES,
  PART_MEAN,
  PART_SE,
  PART_COUNT,
  PART_REPLICATE_SE,
  PART_DIFF_MEAN,
  PART_DIFF_SE,
  PART_DIFF_COUNT,
  PART_DIFF_REPLICATE_SE,
  PART_QUANTILES, /* of curves with tails */
  PARTS
};

/* The statistics of a cell: one row for each part, and one for each quantile. */
enum { SUMMARY_ROWS = PART_QUANTILES - PART_MEAN + STUDY_QUANTILES };

/* Summarises the first `curves` curves of a cell: out[curves, SUMMARY_ROWS, places]. Curves of the world are
 * taken from `first`, the first policy's cell in the same setting. */
Status reduce_cell_summarise(const Study *study, const Cell *cell, const Cell *first, int curves,
                             double *out);
/* Returns the first row of a part. */
double *reduce_cell_summary_part(const Study *study, double *summary, int curve, int part);

/* An estimate of a policy's value: the numbers of results.nc, and why they are not to be trusted. */
typedef struct {
  double value[ESTIMATES_COUNT];
  Doubt doubt;
} CellEstimate;

/* Computes the estimate of a curve of a study of estimates. */
void reduce_cell_estimate(const Cell *cell, int curve, CellEstimate *out);
