/* Whether the draws of a study are where the posterior is, one or more for each run at a few rounds.
 *
 * The moments m and S = L L' of the posterior are in closed form where the prior is a mixture of Gaussians
 * and rewards are Gaussian (mixture_posterior.h), and nearly known, by expectation propagation, with clicks
 * and counts. A draw theta from the posterior has e = L^-1 (theta - m) with E e = 0 and E |e|^2 = d, of
 * whatever shape the posterior is. Watched are u' e, where the unit vector u points from the prior's mean to
 * the posterior's, along which an approximation is off first, and |e|^2 / d. One draw says nothing; means
 * over rounds and runs say much (study.h has them for each run). */
#pragma once

#include "sampler/sampler.h"

typedef struct Watch Watch;

/* What the means over runs may be off by: the first in standard deviations, the root of the second by a
 * factor, and the standard errors granted beside. */
#define WATCH_OFFSET 0.25
#define WATCH_FACTOR 1.25
#define WATCH_ERRORS 4

/* Creates the watch over a sampler's draws for histories like this one; *out is NULL where the moments are
 * not known, or the target is not the posterior. The sampler outlives it. */
Status watch_create(Arena *memory, const Sampler *sampler, const History *history, Watch **out);
/* Takes in theta[d, B M], drawn given `history`, M = draws for each run. */
void watch_add(Watch *self, const History *history, int draws, const double *theta);
/* Computes out[2, B], B = runs: the means of u' e and of |e|^2 / d over all draws of a run so far. */
void watch_means(const Watch *self, int runs, double *out);
