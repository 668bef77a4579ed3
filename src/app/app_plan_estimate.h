/* What a study will cost: floating-point operations by the cost model of its kind, turned into time by an
 * assumed speed or by one measured in a short calibration (app/plan.c). */
#pragma once

#include "study/study.h"

/* Seconds per modelled operation, where they were measured; 0: as assumed. */
typedef struct {
  bool measured; /* all of them */
  double training; /* of networks */
  double *policy; /* [policy_count], of simulation; NULL: none was measured */
} Speed;

typedef struct {
  /* The simulation: if every setting needs its maximum of runs, and if the first wave is enough. */
  double hours, least_hours;
  double training_hours; /* of the distinct priors */
  double longest_task; /* seconds */
  int priors; /* distinct fits */
  double training_operations; /* of all fits */
  double memory; /* bytes per rank: one block and the arrays of the reducer */
  double networks; /* the part of `memory` for Gaussians on the weights of a network */
  double large; /* bytes of the shared matrices of the largest setting that has them, over all ranks */
  bool large_is_spread; /* whether all settings that share matrices spread them over the ranks */
  double bytes; /* of results.nc before compression, and the journals */
} Estimate;

/* Estimates the cost of a study, with CPU time in core-hours. */
Status app_plan_estimate_study(const Study *study, const Speed *speed, Estimate *out);
/* Returns the CPU seconds of one run of a policy in a setting. */
double app_plan_estimate_run(const Study *study, const Speed *speed, int setting, int policy);
