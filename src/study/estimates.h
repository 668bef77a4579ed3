/* Estimates with bootstrap intervals, from the curves of a study of estimates (study/replay.c): all runs of a
 * policy are of the same events, so that their mean is taken in every bootstrap sample apart. */
#pragma once

#include "core/status.h"

#include <stdint.h>

enum { ESTIMATES_RESAMPLES = 1000 };

/* The points of a curve. */
enum {
  ESTIMATES_VALUE, /* from all events */
  ESTIMATES_SIZE, /* the effective sample size */
  ESTIMATES_WEIGHT, /* the mean weight of an event; NaN where there are no weights */
  ESTIMATES_FIRST, /* of those from bootstrap samples */
  ESTIMATES_POINTS = ESTIMATES_FIRST + ESTIMATES_RESAMPLES
};

/* What results.nc has of each estimator, in this order: name of the variable, and what it is. */
#define ESTIMATES_LIST(ENTRY)                                                                                \
  ENTRY(value, "mean reward of an event, mean over completed runs")                                          \
  ENTRY(value_se, "standard error of value, by the bootstrap over events")                                   \
  ENTRY(value_low, "lower end of the 95% interval of value, by the bootstrap over events")                   \
  ENTRY(value_high, "upper end of the 95% interval of value, by the bootstrap over events")                  \
  ENTRY(effective_sample_size, "number of events that say as much when they all count the same")             \
  ENTRY(mean_weight, "mean weight of an event; 1 where the log takes what the policy takes")

enum {
#define ESTIMATES_ENUM(name, text) ESTIMATES_of_##name,
  ESTIMATES_LIST(ESTIMATES_ENUM)
#undef ESTIMATES_ENUM
      ESTIMATES_COUNT
};

/* Summarises curve[runs, ESTIMATES_POINTS], over the runs where it is there: out[ESTIMATES_COUNT], NaN where
 * there is none. The interval is that of percentiles. */
Status estimates_summarise(int64_t runs, const double *curve, double *out);
