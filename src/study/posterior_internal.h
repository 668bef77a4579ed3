/* Internal to the posterior study: what its ordinary settings (posterior_block.c) and its large ones
 * (posterior_large.c) share. */
#pragma once

#include "metric/metrics.h"
#include "study/study.h"

#define POSTERIOR_CURVE(name, word, text) CURVE_##name,
#define POSTERIOR_CURVE_AND_FLOOR(name, word, text) CURVE_##name, CURVE_##name##_floor,
/* What is measured, in the order of study_posterior.curves. */
enum {
  METRIC_LIST(POSTERIOR_CURVE_AND_FLOOR, POSTERIOR_CURVE, POSTERIOR_CURVE) CURVE_log_concavity,
  CURVE_log_concavity_bound,
  CURVE_log_concavity_sharp,
  CURVE_ess,
  CURVES
};
#undef POSTERIOR_CURVE
#undef POSTERIOR_CURVE_AND_FLOOR

/* Returns M. Returns R. */
int posterior_draws(const Config *setting);
int posterior_reference_draws(const Config *setting);
/* Exact draws that a curve is measured of: R, and R others. */
enum { POSTERIOR_NEEDS_REFERENCE = 1, POSTERIOR_NEEDS_FLOOR = 2 };
int posterior_curve_needs(const StudyCurve *curve);
/* Returns how many sample sizes there are. Returns the number of observations of one. Returns the number
 * of observations of the last. */
int posterior_points(const Config *setting);
int64_t posterior_size(const Config *setting, int point);
int posterior_last_size(const Config *setting);

/* Runs a block (StudyOps.run). */
Status posterior_run_block(const Study *study, const Task *task, const Prior *prior, Tick tick,
                           TaskResult *result);

/* Checks large settings (study.h). */
Status posterior_check_large(const Study *study, const Config *setting, const Problem *problem);
Status posterior_run_large(const Study *study, const StudyLarge *large, int count, const Task *const *tasks,
                           TaskResult *results);
double posterior_cost_large(const Study *study, const Task *task);
