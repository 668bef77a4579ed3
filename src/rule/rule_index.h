/* The arm with the highest index phi' mean + z sqrt(phi' S phi), for many runs at once; one version for each
 * instruction level (core/simd.h). v3 and v4 give the same bits. */
#pragma once

/* Chooses arm[runs], the first on ties, by features[arms, d, runs], mean[d, runs] and covariance[d, d, runs],
 * and sets top[runs], its index, unless that is NULL. If covariance is NULL the index is phi' mean. */
void rule_index(int arms, int d, int runs, const double *features, const double *mean,
                const double *covariance, double z, int *arm, double *top);
