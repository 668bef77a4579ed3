/* Keeps one of several weighted candidates, offered one after the other, in each of n lanes (lane last):
 * candidate p replaces the one that is kept with probability w_p / (w_1 + .. + w_p), so that each is kept
 * with a probability proportional to its weight (Chao 1982, unequal probability sampling). */
#pragma once

#include "core/arena.h"

typedef struct {
  double *top; /* [n]: the largest log weight so far */
  double *total, *squares; /* [n]: sums of the weights relative to exp(top), and of their squares */
} Reservoir;

Status reservoir_create(Arena *memory, int lanes, Reservoir *out);
/* Forgets all candidates. */
void reservoir_clear(Reservoir *self, int lanes);
/* Offers candidate[d, n] with log_weight[n]: uniform[n] decides whether it is kept in kept[d, n], and the
 * first one always is. A log weight that is not finite counts as -infinity. */
void reservoir_offer(Reservoir *self, int d, int lanes, const double *log_weight, const double *uniform,
                     const double *candidate, double *kept);
/* Adds a weight without a candidate to the sums of lane n; returns the share of this weight in the total so
 * far. */
double reservoir_add(Reservoir *self, int n, double log_weight);
/* Returns the effective sample size behind lane n; 0 when every weight was 0. */
double reservoir_ess(const Reservoir *self, int n);
/* Returns the logarithm of the mean of `count` weights of lane n, and its standard error in *error. */
double reservoir_log_mean(const Reservoir *self, int n, int count, double *error);
