/* The wide Gaussian that stands beside a learned prior which may be wrong (sampler/guard.h), and how much
 * weight it deserves, learned from other tasks than those of the prior.
 *
 * Each task is of the learned prior, or with probability g of the wide Gaussian; g is Beta(g0, 1 - g0), of
 * mean g0 and worth one task, for a prior that is wrong is so for most tasks. The next task's weight is the
 * posterior mean of g, given the marginal likelihoods of the tasks under both. */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/mixture.h"

static const double WIDE_WIDTH = 2; /* where no study says otherwise (guard_width) */

/* Creates a wide Gaussian about the mean of the mixture, with independent coordinates and `width` times
 * its standard deviations; prepared. */
Status wide_create(Arena *memory, const Mixture *mixture, double width, Mixture *out);
/* Learns the weight: *weight is g0 > 0 at first, and then what the tasks make of it. */
Status wide_learn(const Mixture *mixture, double width, const Logs *tasks, double *weight);
/* Returns the posterior mean from the logarithm of the marginal likelihood of each task under the wide
 * Gaussian over that under the learned prior, log_ratio[tasks]. share[tasks + 1] is scratch. */
double wide_posterior_mean(double weight, int tasks, const double *log_ratio, double *share);
