/* The family `auto` of priors: none of its own, but the choice among these by held-out tasks
 * (parallel/auto.h), each with the sampler that draws under it. */
#pragma once

#include "model/prior/prior.h"

enum { CANDIDATES = 4, CANDIDATE_MIXTURE = 1, CANDIDATE_CHAIN = 3 /* their places */, CANDIDATE_SIZES = 3 };
/* From the least to the most expensive draw. */
extern const struct Candidate { const char *family, *sampler; } candidates[CANDIDATES];

/* Outside of the registry: its files are of the families that were chosen. */
extern const PriorOps prior_auto;
/* Returns the family of this name, prior_auto among them; NULL: there is none. */
const PriorOps *candidates_family(const char *name);

/* Returns how a candidate is fitted in d dimensions: with as many components as predict best, and
 * with more training of a chain than its family takes by itself. */
PriorFit candidates_fit(const PriorFit *fit, int candidate, int d);

/* Finds after how many observations posterior draws of a study are judged, rising: the first, middle and last
 * of the sample sizes, or a tenth and half of the rounds of a bandit. Returns their number. */
int candidates_sizes(const Config *setting, int size[CANDIDATE_SIZES]);
