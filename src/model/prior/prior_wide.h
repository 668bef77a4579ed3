/* The wide Gaussian that guards a learned prior which may be wrong (sampler/guard.h), and how much weight it
 * deserves, learned from tasks other than those of the prior.
 *
 * Each task comes from the learned prior or, with probability g, from the wide Gaussian. g is Beta(g0, 1 -
 * g0), of mean g0 and worth one task, because a wrong prior is wrong for most tasks. The weight for the next
 * task is the posterior mean of g, given the marginal likelihoods of the tasks under both. */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/mixture.h"

static const double WIDE_WIDTH = 2; /* unless a study says otherwise (guard_width) */

/* Creates a wide Gaussian about the mean of the mixture, with independent coordinates and `width` times
 * its standard deviations; prepared. */
Status prior_wide_create(Arena *memory, const Mixture *mixture, double width, Mixture *out);
/* Learns the weight from the tasks: *weight is g0 > 0 on entry, and the posterior mean of g on return. */
Status prior_wide_learn(const Mixture *mixture, double width, const Logs *tasks, double *weight);
/* Returns the posterior mean of g, from log_ratio[tasks]: each task's log marginal likelihood under the wide
 * Gaussian minus that under the learned prior. share[tasks + 1] is scratch. */
double prior_wide_posterior_mean(double weight, int tasks, const double *log_ratio, double *share);
