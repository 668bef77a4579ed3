/* Internal to the posterior study: what its ordinary settings (posterior.c) and its large ones
 * (posterior_large.c) share. */
#ifndef STUDY_POSTERIOR_INTERNAL_H
#define STUDY_POSTERIOR_INTERNAL_H

#include "study/study.h"

/* What is measured, in the order of study_posterior.curves. */
enum {
  EMD,
  EMD_FLOOR,
  SLICED,
  SLICED_FLOOR,
  MAX_SLICED,
  MAX_SLICED_FLOOR,
  SD_RATIO,
  SD_RATIO_FLOOR,
  MODE_WEIGHT,
  MODE_WEIGHT_FLOOR,
  LARGEST_MODE,
  MEAN,
  MEAN_FLOOR,
  COVARIANCE,
  COVARIANCE_FLOOR,
  DISTANCE,
  DISTANCE_FLOOR,
  RANK,
  CONCAVITY,
  CONCAVITY_BOUND,
  CONCAVITY_SHARP,
  ESS
};

/* M and R. */
int posterior_draws(const Config *setting);
int posterior_reference_draws(const Config *setting);
/* Number of observations at a point of the axis. */
int64_t posterior_size(const Config *setting, int point);

/* Large settings (study.h). */
Status posterior_check_large(const Study *study, const Config *setting, const Problem *problem);
Status posterior_run_large(const Study *study, const StudyLarge *large, int count, const Task *const *tasks,
                           TaskResult *results);
double posterior_cost_large(const Study *study, const Task *task);

#endif
