/* What a study needs: priors, memory, files, and CPU time as far as it was measured (app_plan_calibrate.h).
 */
#pragma once

#include "app/app_plan_calibrate.h"

/* Bytes of the files of a study. */
typedef struct {
  double journals, results, logs; /* the tasks, results.nc, and DIR/events */
  const char *heaviest; /* the key that weighs most */
  double share; /* of all bytes that are due to it */
} PlanFiles;

typedef struct {
  /* CPU time of the simulation, in core-hours: if every setting needs its maximum of runs, and if the first
   * wave is enough; NAN: not measured. */
  double hours, least_hours;
  double training_hours; /* of the distinct priors; NAN: there are some, which were not measured */
  double longest_task; /* seconds */
  int priors; /* distinct fits */
  int prior_parts; /* of all of them, which ranks share */
  int arms; /* the most of a setting */
  double memory; /* bytes per rank: one block and the arrays of the reducer */
  double networks; /* the part of `memory` for Gaussians on the weights of a network */
  double task; /* and for what else a task holds */
  double spread; /* bytes of the matrices of the largest setting that spreads them, over its ranks */
  PlanFiles files;
} Estimate;

/* Estimates what a study needs; `times` may be NULL. */
Status app_plan_estimate_study(const Study *study, const PlanTimes *times, Estimate *out);
