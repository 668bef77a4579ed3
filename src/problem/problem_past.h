/* Past tasks of a problem: what people have instead of samples of theta*, each task a few observations of
 * arms taken at random. Their theta* are the samples that priors would otherwise be fitted to, never those of
 * runs; arms and noise are the problem's own, from streams that no run uses. */
#pragma once

#include "problem/problem.h"

/* Returns STATUS_INPUT, with a message, if the arms are made from theta*, since then they cannot be taken at
 * random. */
Status problem_past_check(const Problem *problem);

/* Plays the past tasks first, first + 1, .. of a replicate, but at most as many as a finite set has samples
 * to learn from, into logs that have no tasks yet; there they are numbered from 0, for `first`. Neither a
 * task nor its first observations depend on how many tasks or observations there are. */
Status problem_past_logs(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                         Logs *logs);
