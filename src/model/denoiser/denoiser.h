/* The posterior of theta after Gaussian observations of it: the denoiser of a prior for any precision.
 *
 * In standardised coordinates z, theta = shift + scale z, let p(z | b, M) be the prior times exp(b' z - z' M
 * z / 2). With Gaussian rewards the posterior is p(. | b, M) for the evidence b, M = Lambda. Its mean D(b, M)
 * and covariance C(b, M) = dD / db are what stochastic localisation (denoiser_localisation.h) needs to know
 * about a prior; the denoiser of a diffusion model gives them only for M = s I. */
#pragma once

#include "model/mixture/mixture.h"

enum { DENOISER_LANES = 64 }; /* most lanes of one call */

/* Evidence (b, M) of n <= DENOISER_LANES lanes, lane last, with M = U diag(q) U' and q >= 0. */
typedef struct {
  int lanes;
  double *basis, *eigenvalue, *vector; /* [d, d, n], [d, n], [d, n]: U, q, b */
} LaneEvidence;

/* A draw from N(gain D, gain^2 C + noise I). */
typedef struct {
  double gain, noise;
} DenoiserStep;

typedef struct Denoiser Denoiser;
/* Computes mean[d, n] = D and covariance[d, d, n] = C, symmetric but possibly with negative eigenvalues. If M
 * is beyond what the denoiser was trained for, lane_fallbacks[n] is raised by one. The result for a lane does
 * not depend on the other lanes. `scratch` comes from self->scratch. */
typedef void DenoiserMoments(const Denoiser *self, const LaneEvidence *at, double *mean, double *covariance,
                             int *lane_fallbacks, void *scratch);
struct Denoiser {
  int d;
  double *shift, *scale; /* [d] */
  const void *state; /* of the owner */
  Status (*scratch)(const Denoiser *self, Arena *memory, void **out); /* creates what a call works in */
  DenoiserMoments *moments;
  /* OPTIONAL. The same at a lower cost, but with the covariance under the mixture that the denoiser corrects
   * instead of C. */
  DenoiserMoments *moments_from_mixture;
  /* OPTIONAL, instead of `moments`, where M is diagonal and the same in all lanes: adds a draw to x[d, n],
   * with M = diag(q) and no U, from the streams `rng`, whose position it advances. */
  void (*add_draw)(const Denoiser *self, const LaneEvidence *at, DenoiserStep step, RngLanes *rng, double *x,
                   void *scratch);
};

/* Creates evidence with room for DENOISER_LANES lanes (denoiser_localisation.c). */
Status denoiser_evidence_create(Arena *memory, int d, LaneEvidence *out);
/* Sets no evidence for this many lanes: U = I, q = 0 and b = 0. */
void denoiser_evidence_clear(int d, int lanes, LaneEvidence *out);

/* Creates a denoiser with shift 0 and scale 1, which has no moments yet (denoiser_hypercube.c). */
Status denoiser_standard(Arena *memory, int d, Denoiser *out);

/* Creates the denoiser, in closed form (denoiser_mixture.c), of a mixture whose weight, mean and covariance
 * are copied: standardised by the mixture's own mean and standard deviations, or in coordinates theta. Its
 * `moments` may have NULL for covariance, to compute D alone. */
Status denoiser_mixture_create(Arena *memory, const Mixture *mixture, bool standardised, Denoiser *out);

/* Creates the denoiser of the vertices of {-1, 1}^d, by enumeration (denoiser_hypercube.c), for d <=
 * DENOISER_MOST_VERTICES. */
enum { DENOISER_MOST_VERTICES = 20 };
Status denoiser_hypercube_create(Arena *memory, int d, Denoiser *out);
