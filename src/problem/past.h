/* Past tasks of a problem: what people have in place of samples of theta*, each task a few observations of
 * arms taken at random. Their theta* are the samples that priors are otherwise fitted to, and never those of
 * runs; arms and noise are the problem's own, of streams that no run has. */
#pragma once

#include "model/logs/logs.h"
#include "problem/problem.h"

/* Returns STATUS_INPUT, with a message, if the arms are constructed from theta*, since then none can be taken
 * at random. */
Status past_check(const Problem *problem);

/* Play the past tasks first, first + 1, .. of a replicate, at most as many as a finite set has samples to
 * learn from, and give each observation, phi[d] and y, to `take`; tasks are numbered from 0 and come up in
 * this order. A task depends neither on how many there are nor, in its first observations, on how many these
 * are. */
typedef Status (*PastTake)(void *self, int task, const double *phi, double y);
Status past_play(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                 PastTake take, void *self);
/* Plays past tasks as past_play does, into logs that have no tasks yet. */
Status past_logs(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                 Logs *logs);
