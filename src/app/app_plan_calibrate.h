/* The times of a study, measured by a short run of each policy and short fits of its priors (thompson plan
 * --calibrate). What is measured of a policy does not depend on the other policies of the study. */
#pragma once

#include "app/app.h"

/* CPU seconds; NAN: unknown. */
typedef struct {
  double *run; /* [settings, policies], a run, without the curves that all policies share */
  double *shared; /* [settings], those curves in a run */
  double
      *fit; /* [settings, policies], the fit of a prior, including that of a prior it is based on; 0: none */
  int *measured; /* [measured_count], the settings that were measured; the others are like the nearest one */
  int measured_count;
} PlanTimes;

/* How far work was after some seconds. */
typedef struct {
  double seconds, fraction; /* 0 .. 1 */
} PlanReport;

/* Reports of work that may be stopped before its end. */
typedef struct {
  PlanReport first; /* its preparations end here */
  PlanReport middle; /* less than half of the way from the first to the last, if there are enough reports */
  PlanReport next; /* the next `middle` */
  PlanReport last;
} PlanTrial;

/* Adds a report, with a higher fraction than those before, to a trial, which is zero at first. */
void app_plan_trial_add(PlanTrial *trial, PlanReport report);
/* Returns the seconds of the whole work. From the first report on they are taken to grow with a power of the
 * fraction, from 1 to 2: a round may take longer the more observations there are, but at most in proportion
 * to them. */
double app_plan_trial_whole(const PlanTrial *trial);

/* A study, and what it was made from. */
typedef struct {
  const char *path, *text; /* of its file */
  const AppTexts *sets; /* --set */
  const Study *study;
} PlanSource;

/* Measures the times of a study. A policy whose block fails has none, and stderr says why; nor have
 * settings spread over ranks, whose policies share their work. Collective, for one rank. */
Status app_plan_calibrate(Arena *memory, const PlanSource *source, PlanTimes *out);
