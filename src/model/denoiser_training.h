/* Learns the network of a denoiser (denoiser_network.h) by regression on cases (denoiser_cases.h): Adam with
 * a rate that rises for a twentieth of the steps and falls along a cosine; a running average of the weights
 * is kept. Then checks the denoiser on held-out samples. */
#ifndef MODEL_DENOISER_TRAINING_H
#define MODEL_DENOISER_TRAINING_H

#include "model/denoiser_network.h"
#include "model/training_samples.h"

/* The self-check, by bins of log det(I + M). Sums over cases of u = S^-1/2 (z - m), of what is denoised of
 * it, h, and of the covariance of u that is claimed, K = S^-1/2 C S^-1/2. */
typedef struct {
  double count[DENOISER_BINS];
  double error[DENOISER_BINS]; /* |u - h|^2 / d: what is left of it; 1 under N(0, I) */
  double claimed[DENOISER_BINS]; /* tr K / d: equal to that where C is right */
  double signal[DENOISER_BINS]; /* |h|^2 / d */
  double agreement[DENOISER_BINS]; /* u' h / d: equal to that where D is right */
} DenoiserCheck;

/* parameters[network_parameters] of the shape. The batch is rounded up to a multiple of NETWORK_LANES. */
Status denoiser_train(const PriorFit *fit, const TrainingSamples *samples, const NetworkShape *shape,
                      float *parameters);
/* `denoiser` on held-out cases, always the same for this fit. */
Status denoiser_check(const PriorFit *fit, const TrainingSamples *samples, const Denoiser *denoiser,
                      DenoiserCheck *out);

#endif
