/* A guard where all draws are of one history (sampler/observed.h): what is seen of theta are the r products x
 * = V' theta with the directions of the history, so that weights and draws need only matrices of r x r. The
 * wide Gaussian has independent coordinates, N(m, D); given x, Matheron's rule gives the rest of a draw from
 * theta_0 ~ N(m, D),
 *
 *     theta = theta_0 + D V (V' D V)^-1 (x - V' theta_0). */
#pragma once

#include "sampler/sampler.h"

/* g, and the factors on the widths of the wide Gaussian and on the spread of its draws. */
typedef struct {
  double weight, width, shrink;
} GuardChoice;

typedef struct {
  SamplerSetup setup; /* without temper: histories include it */
  GuardChoice choice;
  int components; /* of the prior; the wide Gaussian is the one after them */
  Isotropic isotropic; /* the prior, if its components are isotropic; `d` is 0 otherwise */
  double *mean, *variance; /* [d], [d]: of the wide Gaussian */
} GuardSeen;

/* Creates what does not depend on the history, for a prior that is a mixture, with matrices or isotropic. */
Status guard_seen_create(Arena *memory, const SamplerSetup *setup, GuardChoice choice, GuardSeen *out);
/* Does the work of guard_replace. Draws for which there was no memory are NAN. */
void guard_seen_replace(const GuardSeen *self, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks);
/* Does the work of mixture_posterior_evidence: evidence[components + 1, B], NAN if there was no memory. */
void guard_seen_evidence(const GuardSeen *self, const History *history, double *evidence, int64_t *fallbacks);
