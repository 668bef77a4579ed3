/* Draws that lie where the prior allows none, although their mean and spread may be right.
 *
 * A mixture that was learned from discrete values, such as a column of zeros and ones, has components that
 * fix a coordinate up to rounding, given those before it. A draw that is visibly off in every component
 * cannot come from the posterior, whatever the data. */
#pragma once

#include "model/mixture/mixture.h"

/* Counts the draws theta[d, M] that are off a coordinate which each component fixes; 0 if a component fixes
 * none. */
Status strays_count(const Mixture *prior, int draws, const double *theta, int *count);
