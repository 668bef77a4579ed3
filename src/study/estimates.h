/* Estimates with bootstrap intervals, from the curves of a study of estimates (study/replay.c): all runs of a
 * policy use the same events, so the mean over runs is taken separately for each bootstrap sample. */
#pragma once

enum { ESTIMATES_RESAMPLES = 1000 };

/* The points of a curve. */
enum {
  ESTIMATES_VALUE, /* from all events */
  ESTIMATES_SIZE, /* the effective sample size */
  ESTIMATES_WEIGHT, /* the mean weight of an event, */
  ESTIMATES_WEIGHT_SE, /* its standard error if it should be 1, */
  ESTIMATES_WEIGHT_LOW, /* and what it is then between */
  ESTIMATES_WEIGHT_HIGH,
  ESTIMATES_ARM, /* the arm whose propensities are most in doubt; NaN: none */
  ESTIMATES_ARM_WEIGHT, /* the sum of 1 / propensity over its events, divided by the number of all events */
  ESTIMATES_ARM_0_ABSENT, /* 1: arm 0 is never played, and nothing says that there is such an arm */
  ESTIMATES_LOW, /* an interval that does not rest on the bootstrap */
  ESTIMATES_HIGH,
  ESTIMATES_RARE, /* the number of 0/1 rewards of the rarer kind that would say as much */
  ESTIMATES_LOGGED, /* the mean reward of all events of the log, */
  ESTIMATES_LOGGED_SE, /* its standard error, and an interval */
  ESTIMATES_LOGGED_LOW,
  ESTIMATES_LOGGED_HIGH,
  ESTIMATES_FIRST, /* the first of those from bootstrap samples */
  ESTIMATES_POINTS = ESTIMATES_FIRST + ESTIMATES_RESAMPLES
};

/* With fewer rare events the interval is widened by ESTIMATES_LOW and ESTIMATES_HIGH; with fewer events in
 * all the estimate is in doubt. */
enum { ESTIMATES_FEW_RARE = 30, ESTIMATES_FEW_EVENTS = 50 };

/* What results.nc stores for each estimator, in this order: the name of the variable, and its meaning. */
#define ESTIMATES_LIST(ENTRY)                                                                                \
  ENTRY(value, "mean reward per event, mean over completed runs")                                            \
  ENTRY(value_se, "standard error of value, from a bootstrap over events")                                   \
  ENTRY(value_low, "lower end of the 95% interval of value")                                                 \
  ENTRY(value_high, "upper end of the 95% interval of value")                                                \
  ENTRY(effective_sample_size, "number of equally weighted events that would carry the same information")    \
  ENTRY(mean_weight, "mean weight of an event, which should be 1")                                           \
  ENTRY(mean_weight_se, "standard error of mean_weight if it should be 1")                                   \
  ENTRY(doubtful_arm, "arm whose propensities are most in doubt")                                            \
  ENTRY(doubtful_arm_weight, "mean over all events of 1 / propensity if they played this arm, else 0: 1 if " \
                             "the propensities are right and the arm is always possible")                    \
  ENTRY(logged_value, "mean reward per event of the whole log, the value of the policy that left it")        \
  ENTRY(logged_value_se, "standard error of logged_value")                                                   \
  ENTRY(logged_value_low, "lower end of the 95% interval of logged_value")                                   \
  ENTRY(logged_value_high, "upper end of the 95% interval of logged_value")

enum {
#define ESTIMATES_ENUM(name, text) ESTIMATES_of_##name,
  ESTIMATES_LIST(ESTIMATES_ENUM)
#undef ESTIMATES_ENUM
      ESTIMATES_COUNT
};

/* Why an estimate is not to be trusted: the values of the variable `doubt`, the gravest if there are several.
 */
typedef enum {
  DOUBT_NONE,
  DOUBT_FEW_EVENTS,
  DOUBT_WEIGHT_LOW,
  DOUBT_WEIGHT_HIGH,
  DOUBT_ARM_WEIGHT_HIGH,
  DOUBT_ARM_0_ABSENT,
  DOUBTS
} Doubt;
#define ESTIMATES_DOUBTS                                                                                     \
  "none few_events mean_weight_below_1 mean_weight_above_1 propensities_of_an_arm_too_small "                \
  "arm_0_never_played"
