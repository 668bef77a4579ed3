/* Checks whether the draws of a study are where the posterior is, with one or more draws per run in a few
 * rounds.
 *
 * The moments m and S = L L' of the posterior are in closed form if the prior is a mixture of Gaussians and
 * rewards are Gaussian (mixture_posterior.h), and approximately known, by expectation propagation, with
 * clicks and counts. Where that is not to be trusted, JUDGES more draws of each run say where the posterior
 * is (sampler/mixture/slice.h); where there are none, because the history forgets, the run is not checked in
 * that round. A draw theta from the posterior has e = L^-1 (theta - m) with E e = 0 and E |e|^2 = d, whatever
 * the shape of the posterior. Two numbers are averaged: u' e, where the unit vector u points from
 * the prior's mean to the posterior's, the direction in which an approximation goes wrong first; and |e|^2 /
 * d. A single draw says nothing; means over rounds and runs say much (study/columns.h has them for each run).
 */
#pragma once

#include "sampler/sampler.h"

typedef struct DrawsCheck DrawsCheck;

/* Tolerances of the means over runs: of the first in standard deviations, of the root of the second as a
 * factor, and the number of standard errors that is allowed on top. */
#define DRAWS_CHECK_OFFSET 0.25
#define DRAWS_CHECK_FACTOR 1.25
#define DRAWS_CHECK_ERRORS 4
/* Standard deviations that the means of a run count for at most, so that a run that is far off does not hide
 * itself in the standard error; and beyond which no draw of the posterior is. */
#define DRAWS_CHECK_MOST 5
#define DRAWS_CHECK_BEYOND 20

/* Creates the check of a sampler's draws for histories like this one; *out is NULL if the moments are not
 * known or the target is not the posterior. The sampler must outlive it. */
Status draws_check_create(Arena *memory, const Sampler *sampler, const History *history, DrawsCheck **out);
/* Adds the draws theta[d, B M], made given `history`, M = draws for each run. */
void draws_check_add(DrawsCheck *self, const History *history, int draws, const double *theta);
/* Computes offset[B] and spread[B], B = runs: the means of u' e and of |e|^2 / d over all checked draws of a
 * run so far; NaN if there are none. */
void draws_check_means(const DrawsCheck *self, int runs, double *offset, double *spread);
