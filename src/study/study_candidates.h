/* The prior family `auto`: not a family itself, but the choice among these candidates by held-out tasks
 * (parallel/priors/auto.h), each with the sampler that draws under it. */
#pragma once

#include "model/prior/prior.h"
#include "problem/problem.h"

enum { CANDIDATES = 4, CANDIDATE_MIXTURE = 1, CANDIDATE_CHAIN = 3 /* their places */, CANDIDATE_SIZES = 3 };
/* Ordered from the cheapest to the most expensive draw. */
extern const struct Candidate { const char *family, *sampler; } candidates[CANDIDATES];

/* Not in the registry: its files belong to the families that were chosen. */
extern const PriorOps prior_auto;
/* Returns the family of this name, prior_auto included; NULL if there is none. */
const PriorOps *study_candidates_family(const char *name);

/* Returns how a candidate is fitted in d dimensions: with the number of components that predicts best, and
 * with longer training of a chain than its family's default. */
PriorFit study_candidates_fit(const PriorFit *fit, int candidate, int d);

/* Returns the most steps of training in a fit of this family, prior_auto included. */
int study_candidates_steps(const PriorOps *family, const PriorFit *fit, int d);

/* Finds the numbers of observations, rising, after which posterior draws of a study are judged: the first,
 * middle and last of the sample sizes, or a tenth and half of the rounds of a bandit. Returns how many there
 * are. */
int study_candidates_sizes(const Config *setting, const Problem *problem, int size[CANDIDATE_SIZES]);
