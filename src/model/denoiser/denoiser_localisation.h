/* Stochastic localisation (Eldan 2013; El Alaoui and Montanari 2022, An information-theoretic view of
 * stochastic localization), started at the evidence.
 *
 * An observation of z with precision delta I,
 *
 *   b <- b + delta z + sqrt(delta) eps,   M <- M + delta I,   z ~ p(. | b, M),
 *
 * leaves the law of z unchanged on average. So adding precision leads from any p(. | b, M) (denoiser.h) to a
 * point that is a draw from it. If (b, M) is the evidence of Gaussian rewards, that is an exact draw from the
 * posterior, with no guidance on the way. The reverse process of a diffusion model is the case b = 0, M = 0.
 *
 * A step approximates z by a Gaussian, N(D, C), so that its observation is b <- N(b + delta D, delta^2 C +
 * delta I); the last step draws z ~ N(D, C). K steps need K + 1 evaluations of D and C. For a Gaussian prior
 * every K is exact; for others the error is that of N(D, C) for what is left after a step.
 *
 * A draw uses d normals of its stream for each of K + 1 evaluations, and more where the denoiser draws
 * without matrices (Denoiser.add_draw). */
#pragma once

#include "core/rng.h"
#include "model/denoiser/denoiser.h"

typedef struct {
  const Denoiser *denoiser; /* not owned */
  bool from_mixture; /* use moments_from_mixture instead of moments */
  int steps; /* K */
  double *precision; /* [K + 1]: s_0 = 0, then s_1 .. s_K, evenly spaced in logarithm */
  /* n <= DENOISER_LANES lanes, lane last. */
  double *mean; /* [d, n]: D */
  double *axes, *variance; /* [d, d, n], [d, n]: C = Q diag(c) Q', c >= 0; no axes with add_draw */
  double *covariance, *eigenvalue, *normal, *moved; /* [d, d, n], then [d, n]: scratch */
  void *scratch; /* of the denoiser */
} Localisation;

/* Creates the steps from s_1 = first to s_K = last, 0 < first <= last, in units of 1 / scale^2; a single step
 * uses `last`. */
Status denoiser_localisation_create(Arena *memory, const Denoiser *denoiser, bool from_mixture, int steps,
                                    double first, double last, Localisation *out);

/* Computes precision[steps + 1] as above. */
void denoiser_localisation_precisions(int steps, double first, double last, double *precision);

/* Draws from p(z | b, U diag(q) U') for the lanes of the evidence: z[d, n]; b is overwritten. rng has the
 * lanes' streams. Numerical fallbacks are added to lane_fallbacks[n]. */
void denoiser_localisation_draw(Localisation *self, const LaneEvidence *at, RngLanes *rng, double *z,
                                int *lane_fallbacks);

/* Computes D, Q and c of p(z | b, U diag(q + s_k) U'), for evidence that depends on the current estimate of
 * z. */
void denoiser_localisation_moments(Localisation *self, int k, const LaneEvidence *at, int *lane_fallbacks);
/* Computes theta = shift + scale z, in place on [d, n]. */
void denoiser_localisation_to_theta(const Localisation *self, int lanes, double *z);

/* Sampling without evidence, from the distribution of theta itself. */
typedef struct {
  Localisation walk; /* with the defaults of the sampler `localised` */
  LaneEvidence evidence; /* none */
  double *z; /* [d, n], n = DENOISER_LANES */
} Unconditional;

Status denoiser_localisation_sample_create(Arena *memory, const Denoiser *denoiser, Unconditional *out);
/* Draws theta[d, lanes] for the lanes of rng, and advances its position. */
void denoiser_localisation_sample(Unconditional *self, RngLanes *rng, double *theta);
