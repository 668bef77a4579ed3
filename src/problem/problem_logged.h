/* What the replay study needs from a log. */
#pragma once

#include "problem/problem.h"

#include <math.h>

/* Returns the events of a problem of family `logged` or `table`, which owns them. */
const EventLog *problem_logged_events(const Problem *problem);
/* Returns the event that a run meets in a round, counted from 1: each run meets all events in its own random
 * order. Streams: (EVENTS, run). */
int problem_logged_event(const Problem *problem, uint32_t run, uint32_t round);

/* Returns whether it is a log that has the probabilities of a policy `target`. */
bool problem_logged_has_target(const Problem *problem);
/* Returns the probability with which that policy takes an arm in an event; NaN if the log has only that of
 * the arm which was played. */
static inline double logged_target(const EventLog *log, int event, int arm) {
  const double *probability = log->target + (size_t)event * (size_t)log->target_columns;
  if (log->target_columns == 1) return arm == log->arm[event] ? probability[0] : NAN;
  return arm < log->target_columns ? probability[arm] : 0;
}

/* Returns the features of an arm in an event, [d]. */
static inline const double *logged_features(const EventLog *log, int event, int arm) {
  const size_t row = log->has_features ? (size_t)event * (size_t)log->arms + (size_t)arm : (size_t)event;
  return log->x + row * (size_t)log->d;
}

/* Fits the rewards of the listed events by ridge regression, theta = (X'X + I)^-1 X'y: theta[models, d], one
 * model for all arms if an event has features for each arm, and one model per arm if it has a context. A
 * model is fitted to the rewards that the log has of its arms: in a table those of all events. square[d, d]
 * is scratch. */
void problem_logged_ridge(const EventLog *log, int count, const int *events, double *square, double *theta);
/* Returns the reward that such a fit predicts for an arm in an event. */
double problem_logged_predict(const EventLog *log, const double *theta, int event, int arm);
