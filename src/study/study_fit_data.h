/* What a fitted prior is learned from: samples of theta, given or guessed from past tasks, or the logs of
 * these tasks, if the family can be fitted to those. */
#pragma once

#include "study/study_belief.h"

/* Creates the data for a fitted belief, which must outlive them. `base` is the prior of
 * study_belief_prerequisite, or NULL if there is none. */
Status study_fit_data_create(Arena *memory, const Belief *belief, const Problem *problem, const Prior *base,
                             FitSource *out);
/* Does the same, but fits the base itself first. */
Status study_fit_data_create_alone(Arena *memory, const Config *setting, const Belief *belief,
                                   const Problem *problem, FitSource *out);
