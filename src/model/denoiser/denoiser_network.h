/* One network that is the denoiser for every precision M, by correcting that of a mixture.
 *
 * With S = (I + M)^-1 and m = S b, which are covariance and mean under the prior N(0, I), with D_0 and C_0
 * those under a mixture of Gaussians in closed form, and with v = S^-1/2 (D_0 - m),
 *
 *   D(b, M) = D_0 + S^1/2 h(m, log(S) / 2, v),
 *   C(b, M) = dD / db = C_0 + S^1/2 [(dh / dm) S + (dh / dv) S^-1/2 (C_0 - S)],
 *
 * where h regresses S^-1/2 (z - D_0), which is of unit size for every M. Its inputs are m, the upper triangle
 * of log(S) / 2, row by row, and v. The weights of the mixture's modes, softmax functions of b and M, are
 * what is hard to learn from m and S; the network has them in v and does the rest. */
#ifndef MODEL_DENOISER_DENOISER_NETWORK_H
#define MODEL_DENOISER_DENOISER_NETWORK_H

#include "model/denoiser/denoiser.h"
#include "model/network/network.h"

#include <stdbool.h>

typedef struct {
  int d;
  NetworkShape shape;
  const float *parameters; /* not owned */
  const Denoiser *start; /* of the mixture, in coordinates z; not owned */
  double most_precision; /* eigenvalues of M above it are taken for it among the inputs */
} DenoiserNetwork;

/* Returns the shape with 2 d + d (d + 1) / 2 inputs and d outputs. */
NetworkShape denoiser_network_shape(int d, int hidden_count, const int *hidden);
/* Returns the doubles of scratch for the two calls below. */
size_t denoiser_network_workspace(const DenoiserNetwork *self);

/* Computes, for DENOISER_LANES = n lanes, the inputs x, in rows of x_row, and v[d, n], for M = U diag(q)
 * U' and b, from basis[d, d, n], eigenvalue[d, n], vector[d, n]. */
void denoiser_network_inputs(const DenoiserNetwork *self, const double *basis, const double *eigenvalue,
                             const double *vector, float *x, size_t x_row, double *v, double *workspace);

/* Implements Denoiser.moments; without the slope, Denoiser.moments_from_mixture. */
void denoiser_network_moments(const DenoiserNetwork *self, bool slope, int lanes, const double *basis,
                              const double *eigenvalue, const double *vector, double *mean,
                              double *covariance, int *lane_fallbacks, double *workspace);

#endif
