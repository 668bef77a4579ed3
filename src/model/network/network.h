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
