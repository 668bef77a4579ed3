/* Posterior draws in the eigenbasis of the evidence, for large d: one history, whose evidence all draws
 * share, and a prior of isotropic Gaussians, which is the same in every basis. With Q = U diag(q) U' and
 * x = U' theta the posterior is p(x) exp(b' x - sum q x^2 / 2), and no step has a matrix in it: the two
 * rotations, of b and the prior's means before and of the draws after, are the caller's (core/dense.h).
 *
 * M draws, lane last: x[d, M]. */
#pragma once

#include "io/config/config.h"
#include "model/denoiser/isotropic.h"

typedef struct {
  const double *q, *b; /* [d] */
  const Isotropic *prior; /* of x */
  const Chain *chain; /* of `prior` */
  const Config *options; /* of the sampler; NULL: every default */
} Diagonal;

/* What a sampler has for it. */
typedef struct {
  /* OPTIONAL. Options that it does not have: STATUS_INPUT with a sentence. */
  Status (*check)(const Config *options);
  /* Draws for the streams `rng`, at position 0. Fallbacks are added to *fallbacks. STATUS_INTERNAL when
   * memory is short. */
  Status (*draw)(const Diagonal *posterior, RngLanes rng, double *x, int64_t *fallbacks);
} DiagonalOps;

/* `exact`: a component by its weight in the posterior, then a Gaussian. `mala`; `tilted` with the baselines
 * mala and ula and the reverse process exponential; `localised` (localised/diagonal.c). */
extern const DiagonalOps diagonal_exact, diagonal_mala, diagonal_tilted, diagonal_localised;
