/* The multi-layer perceptron with ReLU hidden layers and a linear output: it regresses the noise of a stage
 * (DiffTS paper, Appendix B), classifies digits (Appendix C.2, classifier.h), and can be the mean of rewards
 * (VITS paper, Section 4.1, network_rows.h).
 *
 * float32, many inputs at once: x[width_0, lanes], lane last, `lanes` a multiple of NETWORK_GRAIN in the
 * first three calls and of NETWORK_LANES in training (pad with zeros). Parameters of one network lie in one
 * block: for each layer the weights w[out, in], then the biases b[out]. T networks of one prior:
 * parameters[T, network_parameters(shape)]. */
#pragma once

#include "core/tiling.h"

#include <stddef.h>

enum { NETWORK_LANES = CHUNK_LANES, NETWORK_GRAIN = 16, NETWORK_MAX_LAYERS = 8 };

typedef struct {
  int layers; /* number of weight matrices: hidden layers + 1 */
  int width[NETWORK_MAX_LAYERS + 1]; /* width[0] inputs .. width[layers] outputs */
} NetworkShape;

/* Returns the shape d -> hidden[0] -> ... -> d. */
NetworkShape network_shape(int d, int hidden_count, const int *hidden);
/* Returns the shape d -> hidden[0] -> ... -> 1. */
NetworkShape network_scalar_shape(int d, int hidden_count, const int *hidden);
size_t network_parameters(const NetworkShape *shape);
/* Returns the floats of scratch that each of the calls below needs, for any number of lanes. */
size_t network_workspace(const NetworkShape *shape);

/* Computes y[width_L, lanes] = network(x[width_0, lanes]). */
void network_forward(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                     float *workspace);
/* Computes out[width_0, lanes] = J(x)' v, with v[width_L, lanes]: vector-Jacobian product (ReLU at 0 has
 * slope 0). */
void network_vjp(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                 const float *v, float *out, float *workspace);
/* Computes y[width_L, lanes] as network_forward gives it, and the whole Jacobian there: jacobian[width_L,
 * width_0, lanes], its rows to the bit what network_vjp gives for unit vectors. */
void network_jacobian(const NetworkShape *shape, const float *parameters, int lanes, const float *x, float *y,
                      float *jacobian, float *workspace);
/* The gradient[network_parameters] of any function of the outputs that is a sum over lanes, x in rows of
 * x_row: slope_of gives its derivatives slope[width_L, NETWORK_LANES] by the outputs y[width_L,
 * NETWORK_LANES] of lanes first, first + 1, .. */
typedef void NetworkSlope(void *context, int first, const float *y, float *slope);
void network_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                      size_t x_row, NetworkSlope *slope_of, void *context, float *gradient, float *workspace);
/* Computes, for a network with one output and NETWORK_LANES lanes of x in rows of x_row, y[NETWORK_LANES]
 * and its derivatives by the parameters for every lane apart, jacobian[network_parameters, NETWORK_LANES]. */
void network_sensitivity(const NetworkShape *shape, const float *parameters, const float *x, size_t x_row,
                         float *y, float *jacobian, float *workspace);
/* Returns the mean over lanes and outputs of (network(x) - target)^2, and its
 * gradient[network_parameters]. */
float network_loss_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                            const float *target, float *gradient, float *workspace);
/* Returns the same for a classifier: the mean over lanes of the cross entropy -sum_j target_j log
 * softmax(network(x))_j, where target[width_L, lanes] holds probabilities (one 1 in each lane when the
 * classes are known). */
float network_entropy_gradient(const NetworkShape *shape, const float *parameters, int lanes, const float *x,
                               const float *target, float *gradient, float *workspace);
