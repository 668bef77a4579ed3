/* One cell of the results: all runs of one policy in one setting, read from the finished tasks, and its
 * statistics. Sums are taken in run order. */
#pragma once

#include "parallel/finished.h"
#include "parallel/reduce.h"

typedef struct {
  int64_t runs;
  double
      *curves; /* [curve_count, runs, places], NaN where the run is missing or the setting lacks the point */
  double *seconds; /* [runs] */
  int64_t *fallbacks; /* [runs] */
  double *watched; /* [2, runs] */
  signed char *status; /* [runs], RunStatus */
  /* CPU seconds of the fits that the policy used, over all replicates; NaN if it uses none. */
  double seconds_train;
} Cell;

Status cell_create(Arena *memory, const Study *study, int64_t runs, Cell *out);
/* Reads the first `blocks` blocks of a cell; its other runs count as not run. Records that cannot be read are
 * reported on stderr. Adds to `counts`. */
Status cell_load(Finished *finished, int setting, int policy, int blocks, Cell *cell, ReduceCounts *counts);

/* Completes the curves of the world, which belong to the first policy: those of runs that `first` lacks are
 * copied from the cell of another policy. */
void cell_complete_world(const Study *study, const Cell *cell, Cell *first);

/* Sends the curves of a cell to another rank or, unless `send`, receives them from it into a cell that
 * cell_create made with the same size. cell_pass does the same for everything but the curves. */
void cell_pass_curves(const Study *study, bool send, int other, Cell *cell);
void cell_pass(bool send, int other, Cell *cell);

/* Computes mean[points], standard error[points] and number n[points] of values[runs, points] (minus base,
 * when given) over the runs that have both. NaN where there are too few. */
void cell_mean(int64_t runs, int points, const double *values, const double *base, double *mean, double *se,
               int *n);
/* Computes quantiles[STUDY_QUANTILES, points] of values[runs, points] over the runs that have a value, linear
 * between order statistics (type 7 of Hyndman and Fan 1996, NumPy's default); NaN where no run has one. */
Status cell_quantiles(int64_t runs, int points, const double *values, double *quantiles);
/* Computes the standard error[points] of values[runs, points] (minus base, when given) over the means of
 * replicates, each taken over those of its runs that have both; NaN with fewer than two replicates. */
Status cell_replicate_se(const Study *study, int64_t runs, const double *values, const double *base,
                         double *se);

/* From DIFF_MEAN on, the statistics are of the paired difference to the first policy of the setting; curves
 * that all policies share have none of these. */
enum {
  SUMMARY_MEAN,
  SUMMARY_SE,
  SUMMARY_REPLICATE_SE,
  SUMMARY_DIFF_MEAN,
  SUMMARY_DIFF_SE,
  SUMMARY_DIFF_REPLICATE_SE,
  SUMMARY_COUNT
};

/* The statistics of a cell, at every point of every curve. */
typedef struct {
  double *values; /* [curve_count, SUMMARY_COUNT, points] */
  double *quantiles; /* [curve_count, STUDY_QUANTILES, points], of curves with tails */
  int *n; /* [curve_count, points], runs in the mean */
  int *n_scratch; /* [points] */
} Summary;

Status summary_create(Arena *memory, const Study *study, Summary *out);
/* Summarises a cell. Curves of the world are taken from `first`, the first policy's cell in the same setting.
 */
Status summary_compute(const Study *study, const Cell *cell, const Cell *first, Summary *out);
double *summary_quantiles(const Study *study, const Summary *summary, int curve);
double *summary_part(const Study *study, const Summary *summary, int curve, int part);
/* Sends a summary to another rank, or receives it. */
void summary_pass(const Study *study, bool send, int other, Summary *summary);
