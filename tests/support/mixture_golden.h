/* The numbers of golden/mixture.nc, and small helpers that the tests of mixtures and priors share. */
#pragma once

#include "core/arena.h"
#include "harness.h"

#include "io/store.h"
#include "model/prior/prior.h"

#include <stdlib.h>
#include <string.h>

enum { GOLDEN_SEED = 90, GOLDEN_POINTS = 40, GOLDEN_MOST = 5 };

/* Opens golden/mixture.nc. */
StoreFile *golden_open(void);

/* Reads the variable NAME_D, or NAME when d is 0. */
void golden_read(StoreFile *file, const char *name, int d, double *out);

/* Returns the mixture in d = 1 (3 components), 2 (2) or 5 (4). */
Mixture golden_mixture(Arena *memory, StoreFile *file, int d);

/* Returns zeros; the caller frees them. */
double *golden_array(size_t count);

/* Returns random numbers of one round. */
RngLanes golden_lanes(int lanes, uint32_t round);

/* Returns the largest difference in the moments of x[d, n] from mean and covariance, in standard errors
 * estimated from x. */
double golden_moment_error(int d, int n, const double *x, const double *mean, const double *covariance);

/* Computes mean[d] and covariance[d, d] of x[d, n]. */
void golden_moments(int d, int n, const double *x, double *mean, double *covariance);

/* Returns settings of a short training, for tests that do not depend on how well a prior is fitted. */
PriorFit golden_fit(void);
