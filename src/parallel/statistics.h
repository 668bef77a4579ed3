/* Statistics of values[runs, points] over runs, of which some may be missing (NaN). Sums are taken in run
 * order. */
#pragma once

#include "study/study.h"

/* Computes mean[points], standard error[points] and number n[points] of values[runs, points] (minus base,
 * when given) over the runs that have both. NaN where there are too few. */
void statistics_mean(int64_t runs, int points, const double *values, const double *base, double *mean,
                     double *se, double *n);
/* Computes quantiles[STUDY_QUANTILES, points] of values[runs, points] over the runs that have a value, linear
 * between order statistics (type 7 of Hyndman and Fan 1996, NumPy's default); NaN where no run has one. */
Status statistics_quantiles(int64_t runs, int points, const double *values, double *quantiles);
/* Computes the standard error[points] of values[runs, points] (minus base, when given) over the means of
 * replicates, each taken over those of its runs that have both; NaN with fewer than two replicates. */
Status statistics_replicate_se(const Study *study, int64_t runs, const double *values, const double *base,
                               double *se);
