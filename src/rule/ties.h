/* Ties: of several arms with the largest index each is taken with the same probability, so that the order in
 * which arms are numbered means nothing. Each arm has a random ticket in each round of a run, and of arms
 * that tie the one with the largest ticket is taken. Tickets are looked at only if there is a tie. */
#pragma once

#include "core/rng.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the ticket of `arm` is larger than that of `other`, in the stream of a lane of `ties`. */
bool ties_arm_wins(const RngLanes *ties, uint32_t lane, int arm, int other);
/* Returns the arm with the largest index[arms], whose entries are `stride` apart. */
int ties_best_arm(const RngLanes *ties, uint32_t lane, int arms, const double *index, size_t stride);
/* Computes the probabilities with which ties_best_arm takes each arm: share[arms] is 1 / n for n arms with
 * the largest index, and 0 for all others; the same for all arms if no index is a number. `share` may be
 * `index` if the stride is 1. */
void ties_share(int arms, const double *index, size_t stride, double *share);
