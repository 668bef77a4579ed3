/* Weighted particles: weights from log weights, effective sample size, systematic resampling, random streams.
 * Pure functions on the arrays of one cloud of n particles, particle last: x[d, n]. */
#pragma once

#include "core/arena.h"
#include "core/rng.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns STATUS_INPUT with a message if the particles of all clouds are too many to be counted in an int.
 * `of` says what has one cloud each, in the plural. */
Status particles_check_size(const char *sampler, int64_t particles, int64_t clouds, const char *of);

/* Returns the stream of RESAMPLING that belongs to a run's particles in a round, for draws that concern the
 * cloud as a whole. */
Rng particles_cloud_stream(RngKey key, uint32_t run, uint32_t round);

/* Computes weight[n], proportional to exp(log_weight[n]) and of sum 1. A log weight that is NaN or +infinity
 * counts as -infinity, weight 0. If no weight is above 0, sets all weights to 1 / n and returns false. May
 * work in place. */
bool particles_weigh(int n, const double *log_weight, double *weight);

/* Returns the effective sample size, (sum w)^2 / sum w^2 (Kong, Liu and Wong 1994): between 1 and n. */
double particles_ess(int n, const double *weight);

/* Returns the largest log weight that counts, or (below) the effective sample size for weights proportional
 * to exp(factor log_weight[n]), factor > 0, where `largest` is that log weight. Scratch: weight[n]. */
double particles_largest(int n, const double *log_weight);
double particles_ess_at(int n, const double *log_weight, double largest, double factor, double *weight);

/* Chooses particles by systematic resampling (Carpenter, Clifford and Fearnhead 1999): chosen[picks] in [0,
 * n), in ascending order. With `offset` uniform in (0, 1), particle j is chosen picks * w_j times on average,
 * and always that number rounded down or up. The weights have sum 1. */
void particles_resample(int n, const double *weight, double offset, int picks, int *chosen);

/* Picks particles with replacement, each by its uniform number, and copies them to to[d, picks], whose rows
 * are `stride` apart. `uniform` may be the last row of `to`. */
void particles_pick(int d, int n, const double *x, int picks, const double *uniform, size_t stride,
                    double *to);

/* The evidence that a cloud of n particles estimates: the product over weightings of the mean weight. Each
 * weighting but the last is followed by systematic resampling, which adds next to no noise of its own. The
 * relative variance is the sum of squares of how the last weight is spread over the first ancestors of the
 * particles, less 1 / n (Lee and Whiteley 2018, less what multinomial resampling would add), and at least
 * that of weightings that are independent of one another. */
typedef struct {
  int n;
  int *ancestor, *spare; /* [n]: the first ancestor of each particle */
  double *share; /* [n]: of the weight, for each first ancestor */
  double log_mean, variance; /* so far: the logarithm; the relative variance if weightings are independent */
} ParticleEvidence;

Status particles_evidence_create(Arena *memory, int n, ParticleEvidence *out);
/* Begins a new cloud. */
void particles_evidence_begin(ParticleEvidence *self);
/* Counts a weighting; weight[n] is what particles_weigh made of log_weight[n]. */
void particles_evidence_weigh(ParticleEvidence *self, const double *log_weight, const double *weight);
/* Counts the resampling to particles chosen[n]. */
void particles_evidence_resample(ParticleEvidence *self, const int *chosen);
/* Returns the logarithm of the evidence; `weight` are the last weights. */
double particles_evidence_end(ParticleEvidence *self, const double *weight, double *error);
