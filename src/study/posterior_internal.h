/* Internal to the posterior study: what its settings (posterior.c), a task on one rank (posterior_block.c)
 * and tasks whose matrices are spread over ranks (posterior_spread.c) have in common. */
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
  CURVE_distinct,
  CURVE_oracle_calls,
  CURVE_log_evidence,
  CURVE_log_evidence_se,
  CURVES
};
#undef POSTERIOR_CURVE
#undef POSTERIOR_CURVE_AND_FLOOR

/* Returns M; study_posterior_reference_draws returns R. */
int study_posterior_draws(const Config *setting);
int study_posterior_reference_draws(const Config *setting);
/* The exact draws that a curve is computed from: the R reference draws, and R others for the floor. */
enum { POSTERIOR_NEEDS_REFERENCE = 1, POSTERIOR_NEEDS_FLOOR = 2 };
/* Returns which of them the curves of a study need; `has_shared`: except its shared curves. */
int study_posterior_needs(const Study *study, bool has_shared);
/* Returns the number of sample sizes; study_posterior_size returns the number of observations at one of them,
 * study_posterior_last_size at the last. */
int study_posterior_points(const Config *setting);
int64_t study_posterior_size(const Config *setting, const Problem *problem, int point);
int study_posterior_last_size(const Config *setting, const Problem *problem);

/* Returns how many of this many runs a task takes side by side: as many as have small matrices together. */
int study_posterior_together(int d, int runs);
/* Returns, roughly, the bytes that a task holds (study.h). */
double study_posterior_bytes(const Study *study, const Config *setting, const Problem *problem);
/* Runs a task on one rank (study.h). */
Status study_posterior_run(const TaskRun *run);

/* Checks settings that are spread over ranks, and runs their tasks (study.h). */
Status study_posterior_check_spread(const Study *study, const Config *setting, const Problem *problem);
Status study_posterior_run_spread(const Study *study, const StudySpread *spread, int count, const Task *tasks,
                                  TaskResult *results);
double study_posterior_spread_bytes(const Config *setting, const Problem *problem);
