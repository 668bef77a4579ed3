/* What a fitted prior is learned from: samples of theta, given or guessed from past tasks, or, by a family
 * that takes them, the logs of these tasks. */
#pragma once

#include "model/prior/fit_source.h"
#include "study/belief.h"

typedef struct {
  Samples samples; /* else n = 0 */
  Arena memory; /* of logs */
  Logs logs; /* else tasks = 0 */
} FitData;

/* Creates the data of a belief that is fitted; it must outlive them. `base` is the prior of
 * belief_prerequisite, where it has one; else NULL. The caller ends with fit_data_free, also after an error.
 */
Status fit_data_create(const Belief *belief, const Problem *problem, const Prior *base, FitData *out);
/* Creates the same, and fits the base here first. */
Status fit_data_create_alone(const Config *setting, const Belief *belief, const Problem *problem,
                             FitData *out);
/* Returns what of the data a prior is fitted to; they must outlive that. */
FitSource fit_data_source(const FitData *data);
void fit_data_free(FitData *data);
