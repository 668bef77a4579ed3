/* What a fitted prior is learned from: samples of theta, given or guessed from past tasks, or the logs of
 * these tasks, if the family can be fitted to those. */
#pragma once

#include "model/prior/prior.h"
#include "study/belief.h"

typedef struct {
  Samples samples; /* n = 0 if there are logs */
  Arena memory; /* owns the samples and logs */
  Logs logs; /* tasks = 0 if there are samples */
} FitData;

/* Creates the data for a fitted belief, which must outlive them. `base` is the prior of belief_prerequisite,
 * or NULL if there is none. The caller must call study_fit_data_free, also after an error. */
Status study_fit_data_create(const Belief *belief, const Problem *problem, const Prior *base, FitData *out);
/* Does the same, but fits the base itself first. */
Status study_fit_data_create_alone(const Config *setting, const Belief *belief, const Problem *problem,
                                   FitData *out);
/* Returns a view of the part of the data that a prior is fitted to; the data must outlive it. */
FitSource study_fit_data_source(const FitData *data);
void study_fit_data_free(FitData *data);
