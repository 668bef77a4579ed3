/* The cases that a denoiser learns from and is checked on: a sample z, a precision M of any size and shape,
 * and the observation b = M z + M^1/2 eps of z with that precision.
 *
 * Under the prior N(0, I) an observation gives z the covariance S = (I + M)^-1 and the mean m = S b; what is
 * to be learned is the error u = S^-1/2 (z - m). m and u are kept in the eigenbasis U of M. */
#pragma once

#include "model/denoiser/denoiser.h"
#include "model/prior/training_samples.h"

/* Eigenvalues of M are log-uniform between these. A third of the matrices are multiples of I, and in another
 * third no eigenvalue is below a common floor, as in localisation. */
#define DENOISER_LEAST_PRECISION 0.003
#define DENOISER_MOST_PRECISION 2000.0

/* n = DENOISER_LANES cases, lane last. */
typedef struct {
  int d;
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: M = U diag(q) U' */
  double *mean, *error; /* [d, n]: U' m, U' u */
  int sample[DENOISER_LANES]; /* index of z among the samples */
  double *uniform, *normal; /* scratch */
} DenoiserCases;

Status denoiser_cases_create(Arena *memory, int d, DenoiserCases *out);
/* Draws new cases from training samples or from held-out ones; uses 3 + d uniforms and d + d^2 normals per
 * case. */
void denoiser_cases_draw(DenoiserCases *cases, const TrainingSamples *samples, bool held_out, Rng *rng);
