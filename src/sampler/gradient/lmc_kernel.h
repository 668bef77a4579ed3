/* Steps of Langevin Monte Carlo on quadratic potentials U = theta' P theta / 2 - theta' b, one for each lane:
 * all steps of a few lanes, whose matrices stay in the first-level cache, before those of the next; one
 * version for each instruction level (core/simd.h). lmc.c has the same in plain steps, for any potential. */
#pragma once

#include <stddef.h>

/* N lanes, lane last. */
typedef struct {
  int d, lanes;
  const double *precision, *vector; /* [d, d, N] symmetric, [d, N]: P and b */
  const double *h; /* [N]: length of a step */
  const double *pull; /* [N]: of the feel-good term, subtracted along theta / |theta|; NULL: none */
  const double *middle, *deviation; /* [d]: how far a coordinate may be from the middle, */
  double guard; /* in deviations */
  double *scratch; /* [lmc_kernel_scratch] */
} LmcTarget;

static inline size_t lmc_kernel_scratch(int d) {
  return ((size_t)d * ((size_t)d + 1) / 2 + 3 * (size_t)d) * 8;
}

/* Moves theta[d, N] <- theta - h grad U(theta) + sqrt(2 h) z, for each of the normals z[steps, d, N]. Adds to
 * touched[N] the coordinates that were brought back within the guard, or to the middle where they were not
 * finite. */
void lmc_kernel_move(const LmcTarget *target, int steps, const double *normal, double *theta, int *touched);
