/* The multi-layer perceptron with ReLU hidden layers and a linear output: it regresses the noise of a stage
 * (DiffTS paper, Appendix B), classifies digits (Appendix C.2, embedding_classifier.h), and can be the mean
 * of rewards (VITS paper, Section 4.1, network_rows.h).
 *
 * float32, many inputs at once: x[width_0, lanes], lane last, `lanes` a multiple of NETWORK_GRAIN in the
 * first three calls of network_kernel.h and of NETWORK_LANES in training (pad with zeros). Parameters of one
 * network lie in one block: for each layer the weights w[out, in], then the biases b[out]. T networks of one
 * prior: parameters[T, network_parameters(shape)]. */
#pragma once

#include "core/rng.h"
#include "core/tiling.h"

#include <stddef.h>

enum { NETWORK_LANES = CHUNK_LANES, NETWORK_GRAIN = 16, NETWORK_MAX_LAYERS = 8 };

typedef struct {
  int layers; /* number of weight matrices: hidden layers + 1 */
  int width[NETWORK_MAX_LAYERS + 1]; /* width[0] inputs .. width[layers] outputs */
} NetworkShape;

/* Returns the shape inputs -> hidden[0] -> ... -> outputs. */
NetworkShape network_shape(int inputs, int hidden_count, const int *hidden, int outputs);
size_t network_parameters(const NetworkShape *shape);
/* Returns the floats of scratch that each call of network_kernel.h needs, for any number of lanes. */
size_t network_workspace(const NetworkShape *shape);

/* ---- what every network is trained with: a random start, the Adam step, and the schedule of its size; for
 * the stages of a diffusion prior (training.h), a denoiser and the classifier of digits */

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

/* Returns the operations (SamplerOps.cost) of this many steps: forward and backward, at the speed of wide
 * batches. */
double learning_cost(double steps, double batch, double parameters);
