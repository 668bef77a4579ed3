/* One network that is the denoiser for every precision M: it corrects the denoiser of a mixture.
 *
 * Let S = (I + M)^-1 and m = S b be covariance and mean under the prior N(0, I), let C_0 and D_0 be those
 * under a mixture of Gaussians, in closed form, and let v = S^-1/2 (D_0 - m). Then
 *
 *   D(b, M) = D_0 + S^1/2 h(m, log(S) / 2, v),
 *   C(b, M) = dD / db = C_0 + S^1/2 [(dh / dm) S + (dh / dv) S^-1/2 (C_0 - S)],
 *
 * where h regresses S^-1/2 (z - D_0), which is of unit size for every M. Its inputs are m, the upper triangle
 * of log(S) / 2, row by row, and v. The weights of the mixture's modes, softmax functions of b and M, are
 * hard to learn from m and S; the network gets them in v and has to learn only the rest.
 *
 * h is multiplied by a share w(M), which is chosen on samples that the network was not trained on: a network
 * that has seen too few samples makes the mixture worse. As w does not depend on b, it only multiplies h and
 * its derivatives above. */
#pragma once

#include "model/denoiser/denoiser.h"
#include "model/network/network.h"

enum { DENOISER_BINS = 8 };

typedef struct {
  int d;
  NetworkShape shape;
  const float *parameters; /* not owned */
  const Denoiser *start; /* of the mixture, in coordinates z; not owned */
  double most_precision; /* eigenvalues of M above this are replaced by it in the inputs */
  /* w at the centre of each of equal bins of log det(I + M), up to d log(1 + most_precision); linear in
   * between, constant before the first centre and after the last. */
  double share[DENOISER_BINS];
} DenoiserNetwork;

/* Returns the number of inputs, 2 d + d (d + 1) / 2; there are d outputs. */
int denoiser_input_count(int d);
/* Creates the scratch for the two calls below. */
Status denoiser_network_scratch(Arena *memory, const DenoiserNetwork *self, void **out);

/* Computes, for n = DENOISER_LANES lanes, the inputs x, in rows of x_row, and v[d, n]. */
void denoiser_network_inputs(const DenoiserNetwork *self, const LaneEvidence *at, float *x, size_t x_row,
                             double *v, void *scratch);

/* Returns log det(I + M) in units of bins, from eigenvalue[d] of M, `stride` apart. */
double denoiser_network_strength(int d, double most_precision, size_t stride, const double *eigenvalue);

/* Returns whether any share is above 0. */
bool denoiser_network_is_used(const DenoiserNetwork *self);

/* Implements Denoiser.moments or, without `slope`, Denoiser.moments_from_mixture. If every share is 0 the
 * network is not used. */
void denoiser_network_moments(const DenoiserNetwork *self, bool slope, const LaneEvidence *evidence,
                              double *mean, double *covariance, int *lane_fallbacks, void *scratch);
