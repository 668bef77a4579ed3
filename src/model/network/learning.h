/* What every network is trained with: a random start, the Adam step, and the schedule of its size; for the
 * stages of a diffusion prior (training.h), a denoiser and the classifier of digits. */
#pragma once

#include "model/network/network.h"

/* Draws weights[n], each from N(0, 2 / inputs) (He et al. 2015). */
void learning_draw_weights(int inputs, int n, Rng *rng, float *weights);

/* Sets parameters[network_parameters] to a start with weights drawn as above and biases 0. */
void learning_start(const NetworkShape *shape, Rng *rng, float *parameters);

/* Returns the size of step = 1 .. steps: it rises linearly in the first twentieth of the steps (otherwise
 * networks of width 200 or more diverge at rates that are best for narrow ones), while a cosine takes it down
 * from `peak` to 0; Adam's bias corrections are included. */
float learning_rate(double peak, int step, int steps);

/* Takes one step of Adam on n parameters (Kingma and Ba 2015, their constants): first[n] and second[n] are
 * the moments, zero at the start; `rate` comes from learning_rate. */
void learning_adam(size_t n, float rate, const float *gradient, float *first, float *second,
                   float *parameters);
