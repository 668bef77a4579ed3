/* What the training of a stage starts from: the best predictor of its noise that is linear in each
 * coordinate, beside random hidden units that the output does not use yet. In eight dimensions it saves more
 * than half of the steps; the last stages, where a state is nearly all noise, hardly need more than it. */
#ifndef MODEL_TRAINING_START_H
#define MODEL_TRAINING_START_H

#include "core/rng.h"
#include "model/network.h"

/* parameters[network_parameters] of a noise predictor at a stage of alpha_bar, for samples with mean[d] and
 * deviation[d]. Hidden weights and biases are N(0, 2 / inputs), a bias being the weight of an input 1: with
 * biases 0 every kink of the first layer would begin in the origin. A hidden layer that is narrower than 4 d
 * has no room for the linear predictor: the network then starts at 0 everywhere. */
void training_start(const NetworkShape *shape, double alpha_bar, const double *mean, const double *deviation,
                    Rng *rng, float *parameters);

#endif
