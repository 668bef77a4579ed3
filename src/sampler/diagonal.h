/* Posterior draws in the eigenbasis of the evidence: one history, whose evidence all draws
 * share, and a prior made of isotropic Gaussians, whose covariances are the same in every basis. With Q = U
 * diag(q) U' and x = U' theta the posterior is p(x) exp(b' x - sum q x^2 / 2), and no step involves a matrix.
 * The caller does the two rotations: of b and the prior's means before, and of the draws after
 * (core/linalg/dense.h).
 *
 * M draws, lane last: x[d, M]. */
#pragma once

#include "io/config/config.h"
#include "model/denoiser/denoiser_isotropic.h"
#include "sampler/draw_notes.h"

typedef struct {
  const double *q, *b; /* [d] */
  double residual; /* what the rewards differ from the closest ones that some theta gives, squared, over the
                      noise squared; only for the log evidence */
  const Isotropic *prior; /* of x */
  const Chain *chain; /* of `prior` */
  const Config *options; /* of the sampler; NULL: every default */
} Diagonal;

/* How a sampler draws from it. */
typedef struct {
  bool together; /* draws depend on one another, so that all come from one call */
  /* OPTIONAL. Returns STATUS_INPUT with a sentence for options that are not supported here. */
  Status (*check)(const Config *options);
  /* Draws x[d, M] from the streams `rng`, at position 0, and notes what it knows about them. Fallbacks are
   * added to *fallbacks. Returns STATUS_INTERNAL if there is not enough memory. */
  Status (*draw)(const Diagonal *posterior, RngLanes rng, double *x, DrawNotes *notes, int64_t *fallbacks);
} DiagonalOps;

/* `exact` picks a component by its weight in the posterior, then draws from its Gaussian. `mala`; `tilted`
 * with the baselines mala and ula and the exponential reverse process; `localised` (localised/diagonal.c);
 * `twisted` as one cloud (diffusion/twisted.c). */
extern const DiagonalOps diagonal_exact, diagonal_mala, diagonal_tilted, diagonal_localised, diagonal_twisted;
