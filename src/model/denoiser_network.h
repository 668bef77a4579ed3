/* One network that is the denoiser for every precision M.
 *
 * With S = (I + M)^-1 and m = S b, which are covariance and mean under the prior N(0, I),
 *
 *   D(b, M) = m + S^1/2 h(m, log(S) / 2),   C(b, M) = dD / db = S + S^1/2 (dh / dm) S,
 *
 * where h regresses S^-1/2 (z - m), which is of unit size for every M. Its inputs are m and the upper
 * triangle of log(S) / 2, row by row. */
#ifndef MODEL_DENOISER_NETWORK_H
#define MODEL_DENOISER_NETWORK_H

#include "model/denoiser.h"
#include "model/network.h"

/* Of log det(I + M), of equal width from 0 to what the largest M of training has. */
enum { DENOISER_BINS = 8 };

typedef struct {
  int d;
  NetworkShape shape;
  const float *parameters; /* not owned */
  double most_precision; /* eigenvalues of M above it are taken for it among the inputs */
} DenoiserNetwork;

/* d + d (d + 1) / 2 inputs, d outputs. */
NetworkShape denoiser_network_shape(int d, int hidden_count, const int *hidden);
/* Doubles of scratch for denoiser_network_moments. */
size_t denoiser_network_workspace(const NetworkShape *shape, int d);

/* The inputs of DENOISER_LANES = n lanes: x, in rows of x_row, from M = U diag(q) U' and m, basis[d, d, n],
 * eigenvalue[d, n], mean[d, n]. Scratch: matrix[d, d, n], column[d, n]. */
void denoiser_network_inputs(int d, double most_precision, const double *basis, const double *eigenvalue,
                             const double *mean, double *matrix, double *column, float *x, size_t x_row);

/* The bin of log det(I + M), and the upper end of a bin. */
int denoiser_network_bin(int d, double most_precision, double log_determinant);
double denoiser_network_bin_end(int d, double most_precision, int bin);

/* Denoiser.moments, and with loss[DENOISER_BINS], the mean square of S^-1/2 (z - D) for each coordinate,
 * moments_from_loss (NULL: the former). */
void denoiser_network_moments(const DenoiserNetwork *self, const double *loss, int lanes, const double *basis,
                              const double *eigenvalue, const double *vector, double *mean,
                              double *covariance, int *rescues, double *workspace);

#endif
