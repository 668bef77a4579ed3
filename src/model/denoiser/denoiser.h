/* What is believed about theta after Gaussian observations of it: the denoiser of a prior for any precision.
 *
 * In standardised coordinates z, theta = shift + scale z, let p(z | b, M) be the prior times exp(b' z - z' M
 * z / 2). With Gaussian rewards the posterior is p(. | b, M) for the evidence b, M = Lambda, so that its mean
 * D(b, M) and covariance C(b, M) = dD / db are what stochastic localisation (localisation.h) needs of a
 * prior; the denoiser of a diffusion model has them for M = s I alone. */
#pragma once

#include "model/mixture/mixture.h"

enum { DENOISER_LANES = 64 }; /* at most, of one call */

typedef struct Denoiser Denoiser;
struct Denoiser {
  int d;
  const double *shift, *scale; /* [d] */
  size_t workspace; /* doubles that a call works on */
  const void *state; /* of the owner */
  /* n <= DENOISER_LANES lanes, lane last, M = U diag(q) U': mean[d, n] = D, covariance[d, d, n] = C,
   * symmetric but with eigenvalues as they come, from basis[d, d, n] = U, eigenvalue[d, n] = q >= 0,
   * vector[d, n] = b. Where M is beyond what the denoiser was learned for lane_fallbacks[n] is raised by one.
   * The result for a lane does not depend on the others. */
  void (*moments)(const Denoiser *self, int lanes, const double *basis, const double *eigenvalue,
                  const double *vector, double *mean, double *covariance, int *lane_fallbacks,
                  double *workspace);
  /* OPTIONAL. The same for less, with the covariance under the mixture that the denoiser corrects in place of
   * C. */
  void (*moments_from_mixture)(const Denoiser *self, int lanes, const double *basis, const double *eigenvalue,
                               const double *vector, double *mean, double *covariance, int *lane_fallbacks,
                               double *workspace);
};

/* Computes out[d, d, lanes] = U diag(f) U' of basis[d, d, lanes] and f[d, lanes]. */
void denoiser_spectral(int d, int lanes, const double *basis, const double *f, double *out);

/* Creates a denoiser with shift 0 and scale 1, which has no moments yet (denoiser_hypercube.c). */
Status denoiser_standard(Arena *memory, int d, Denoiser *out);

/* Creates the denoiser of a mixture with weight, mean and covariance, which is copied, in closed form
 * (denoiser_mixture.c): standardised by the mixture's own mean and standard deviations, or of theta as it
 * is. Its `moments` may have NULL for covariance: D alone. */
Status denoiser_mixture_create(Arena *memory, const Mixture *mixture, bool standardised, Denoiser *out);

/* That of the vertices of {-1, 1}^d, by enumeration (denoiser_hypercube.c), for d <=
 * DENOISER_MOST_VERTICES. */
enum { DENOISER_MOST_VERTICES = 20 };
Status denoiser_hypercube_create(Arena *memory, int d, Denoiser *out);
