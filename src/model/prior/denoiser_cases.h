/* What a denoiser learns from and is checked on: a sample z, a precision M of any size and shape, and the
 * observation b = M z + M^1/2 eps of z with that precision.
 *
 * In the eigenbasis U of M, with S = (I + M)^-1 the covariance that N(0, I) would leave, an observation says
 * that z is about m = S b, and what is to be learned is the error u = S^-1/2 (z - m). */
#pragma once

#include "model/denoiser/denoiser.h"
#include "model/prior/training_samples.h"

/* Eigenvalues of M: log-uniform between these. A third of the matrices are a multiple of I, and in a third no
 * eigenvalue is below a common floor, as in localisation. */
#define DENOISER_LEAST_PRECISION 0.003
#define DENOISER_MOST_PRECISION 2000.0

/* DENOISER_LANES = n cases, lane last. */
typedef struct {
  int d;
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: M = U diag(q) U' */
  double *mean, *error; /* [d, n]: U' m, U' u */
  int sample[DENOISER_LANES]; /* z's place among the samples */
  double *uniform, *normal; /* scratch */
} DenoiserCases;

Status denoiser_cases_create(Arena *memory, int d, DenoiserCases *out);
/* Draws new cases from training samples or from held-out ones; uses 3 + d uniforms and d + d^2 normals for
 * each. */
void denoiser_cases_draw(DenoiserCases *cases, const TrainingSamples *samples, bool held_out, Rng *rng);
