/* Trains the network of a denoiser (denoiser_network.h) by regression on cases, with Adam at a rate that
 * rises over a twentieth of the steps and then falls along a cosine; a running average of the weights is
 * kept. Then checks the denoiser on held-out samples.
 *
 * A case is a sample z, a precision M of any size and shape, and the observation b = M z + M^1/2 eps of z
 * with that precision. Under the prior N(0, I) an observation gives z the covariance S = (I + M)^-1 and the
 * mean m = S b; what is to be learned is the error u = S^-1/2 (z - m). m and u are kept in the eigenbasis U
 * of M. */
#pragma once

#include "model/denoiser/denoiser_network.h"
#include "model/prior/training_samples.h"

/* Eigenvalues of M are log-uniform between these. A third of the matrices are multiples of I, and in another
 * third no eigenvalue is below a common floor, as in localisation. */
#define DENOISER_LEAST_PRECISION 0.003
#define DENOISER_MOST_PRECISION 2000.0

/* n = DENOISER_LANES cases, lane last. */
typedef struct {
  int d;
  LaneEvidence observed; /* M and b */
  double *mean, *error; /* [d, n]: U' m, U' u */
  int sample[DENOISER_LANES]; /* index of z among the samples */
  double *uniform, *normal; /* scratch */
} DenoiserCases;

Status denoiser_cases_create(Arena *memory, int d, DenoiserCases *out);
/* Draws new cases from training samples or from held-out ones; uses 3 + d uniforms and d + d^2 normals per
 * case. */
void denoiser_cases_draw(DenoiserCases *cases, const TrainingSamples *samples, bool held_out, Rng *rng);

/* The self-check, by the bins of log det(I + M) for which shares are chosen. The sums over cases are of the
 * error u = S^-1/2 (z - m), of the denoiser's estimate of it, g = S^-1/2 (D - m), and of the covariance that
 * it claims, K = S^-1/2 C S^-1/2. */
typedef struct {
  double count[DENOISER_BINS];
  double error[DENOISER_BINS]; /* |u - g|^2 / d: the error left; 1 under N(0, I) */
  double claimed[DENOISER_BINS]; /* tr K / d: equal to `error` if C is right */
  double signal[DENOISER_BINS]; /* |g|^2 / d */
  double agreement[DENOISER_BINS]; /* u' g / d: equal to `signal` if D is right */
} DenoiserCheck;

/* Trains parameters[network_parameters] of this network. The batch is rounded up to a multiple of
 * DENOISER_LANES. Returns STATUS_STOPPED if the thread's tick, which is asked before each step, gives up. */
Status denoiser_train(const PriorFit *fit, const TrainingSamples *samples, const DenoiserNetwork *network,
                      float *parameters);
/* Chooses network->share on held-out cases: in each bin the share of the network's correction h that leaves
 * the least error, less one standard error across held-out samples; 0 if h does not lower the error by that
 * much. */
Status denoiser_choose_shares(const PriorFit *fit, const TrainingSamples *samples, DenoiserNetwork *network);
/* Returns the upper end of a bin of log det(I + M). */
double denoiser_check_end(int d, int bin);
/* Checks `denoiser` on held-out cases, which are always the same for this fit. */
Status denoiser_check(const PriorFit *fit, const TrainingSamples *samples, const Denoiser *denoiser,
                      DenoiserCheck *out);
