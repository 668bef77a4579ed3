/* Estimates with bootstrap intervals, from the curves of a study of estimates (study/replay.c): all runs of a
 * policy use the same events, so the mean over runs is taken separately for each bootstrap sample. */
#pragma once

enum { ESTIMATES_RESAMPLES = 1000 };

/* The points of a curve. */
enum {
  ESTIMATES_VALUE, /* from all events */
  ESTIMATES_SIZE, /* the effective sample size */
  ESTIMATES_WEIGHT, /* the mean weight of an event; NaN where there are no weights */
  ESTIMATES_FIRST, /* the first of those from bootstrap samples */
  ESTIMATES_POINTS = ESTIMATES_FIRST + ESTIMATES_RESAMPLES
};

/* What results.nc stores for each estimator, in this order: the name of the variable, and its meaning. */
#define ESTIMATES_LIST(ENTRY)                                                                                \
  ENTRY(value, "mean reward per event, mean over completed runs")                                            \
  ENTRY(value_se, "standard error of value, from a bootstrap over events")                                   \
  ENTRY(value_low, "lower end of the 95% interval of value, from a bootstrap over events")                   \
  ENTRY(value_high, "upper end of the 95% interval of value, from a bootstrap over events")                  \
  ENTRY(effective_sample_size, "number of equally weighted events that would carry the same information")    \
  ENTRY(mean_weight, "mean weight of an event; 1 if the log and the policy take the same arms")

enum {
#define ESTIMATES_ENUM(name, text) ESTIMATES_of_##name,
  ESTIMATES_LIST(ESTIMATES_ENUM)
#undef ESTIMATES_ENUM
      ESTIMATES_COUNT
};
