/* The arm with the highest index phi' mean + z sqrt(phi' S phi), for many runs at once; one version for each
 * instruction level (core/simd.h). v3 and v4 give the same bits. */
#pragma once

#include "core/arms.h"
#include "rule/ties.h"

/* What the index of K arms in B runs is computed from. */
typedef struct {
  ArmSet arms; /* of the B runs */
  int d, runs;
  const double *features; /* [K, d, B] */
  const double *mean, *covariance; /* [d, B], [d, d, B]; covariance NULL: the index is phi' mean */
  double z;
  RngLanes ties; /* a lane for each run */
} IndexedArms;

/* Chooses arm[B], of equal arms one at random (ties.h). Sets top[B], its index, and index[B, K], those of all
 * arms, NAN for arms that a run does not have; each may be NULL. */
void rule_index(const IndexedArms *of, int *arm, double *top, double *index);
