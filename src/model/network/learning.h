/* What every network is trained with: a random start, the step of Adam, and how its size changes. Used for
 * the stages of a diffusion prior (training.h) and for the classifier of digits (classifier.h). */
#pragma once

#include "core/rng.h"
#include "model/network/network.h"

/* Draws weights[n], each from N(0, 2 / inputs) (He et al. 2015). */
void learning_draw_weights(int inputs, int n, Rng *rng, float *weights);

/* Sets the weights of the start of He et al., and biases 0: parameters[network_parameters]. */
void learning_start(const NetworkShape *shape, Rng *rng, float *parameters);

/* Returns the size of step = 1 .. steps: up along a line in the first twentieth of the steps (without it
 * networks of 200 and wider diverge at rates that are best for narrow ones), then from `peak` down along a
 * cosine; with Adam's bias corrections. */
float learning_rate(double peak, int step, int steps);

/* Takes one step of Adam on n parameters (Kingma and Ba 2015, their constants): first[n] and second[n] are
 * the moments, zero at the start; rate is that of learning_rate. */
void learning_adam(size_t n, float rate, const float *gradient, float *first, float *second,
                   float *parameters);

/* Returns the operations (SamplerOps.cost) of so many steps: forward and backward, at the speed of wide
 * batches. */
double learning_cost(double steps, double batch, double parameters);
