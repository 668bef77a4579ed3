/* Learns the network of a denoiser (denoiser_network.h) by regression on cases (denoiser_cases.h): Adam with
 * a rate that rises for a twentieth of the steps and falls along a cosine; a running average of the weights
 * is kept. Then checks the denoiser on held-out samples. */
#pragma once

#include "model/denoiser/denoiser_network.h"
#include "model/prior/training_samples.h"

/* The self-check, by the bins of log det(I + M) that shares are chosen for. Sums over cases of u = S^-1/2 (z
 * - m), of what the denoiser says of it, g = S^-1/2 (D - m), and of the covariance that it claims, K = S^-1/2
 * C S^-1/2. */
typedef struct {
  double count[DENOISER_BINS];
  double error[DENOISER_BINS]; /* |u - g|^2 / d: what is left of it; 1 under N(0, I) */
  double claimed[DENOISER_BINS]; /* tr K / d: equal to that where C is right */
  double signal[DENOISER_BINS]; /* |g|^2 / d */
  double agreement[DENOISER_BINS]; /* u' g / d: equal to that where D is right */
} DenoiserCheck;

/* Trains parameters[network_parameters] of this network. The batch is rounded up to a multiple of
 * NETWORK_LANES. STATUS_STOPPED where the tick of the thread gives up, which is asked before each step. */
Status denoiser_train(const PriorFit *fit, const TrainingSamples *samples, const DenoiserNetwork *network,
                      float *parameters);
/* Chooses network->share on held-out cases: in each bin the share of h that leaves the least error, less one
 * standard error between held-out samples; 0 where the network does not lower the error by that much. */
Status denoiser_choose_shares(const PriorFit *fit, const TrainingSamples *samples, DenoiserNetwork *network);
/* Returns the upper end of a bin of log det(I + M). */
double denoiser_check_end(int d, int bin);
/* Checks `denoiser` on held-out cases, always the same for this fit. */
Status denoiser_check(const PriorFit *fit, const TrainingSamples *samples, const Denoiser *denoiser,
                      DenoiserCheck *out);
