#include "model/denoiser_network.h"

#include "core/linalg.h"
#include "core/simd.h"
#include "core/special.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = DENOISER_LANES };

_Static_assert((int)DENOISER_LANES == (int)NETWORK_LANES, "the lanes of a call are those of a network");

static int inputs_of(int d) { return d + d * (d + 1) / 2; }

NetworkShape denoiser_network_shape(int d, int hidden_count, const int *hidden) {
  NetworkShape shape = network_shape(inputs_of(d), hidden_count, hidden);
  shape.width[shape.layers] = d;
  return shape;
}

/* What a call works on, for n = LANES lanes. */
typedef struct {
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: U, q */
  double *vector, *rotated, *mean; /* [d, n]: b, then h; scratch; m, then D */
  double *shrunk, *root; /* [d, d, n]: S, S^1/2 */
  double *slope, *matrix; /* [d, d, n]: dh / dm, scratch */
  float *x, *y, *jacobian, *network; /* [inputs, n], [d, n], [d, inputs, n], of the network */
} Work;

static Work work_of(int d, double *workspace) {
  const size_t vector = (size_t)d * LANES, matrix = (size_t)d * vector, inputs = (size_t)inputs_of(d) * LANES;
  Work at = {.basis = workspace};
  at.shrunk = at.basis + matrix;
  at.root = at.shrunk + matrix;
  at.slope = at.root + matrix;
  at.matrix = at.slope + matrix;
  at.eigenvalue = at.matrix + matrix;
  at.vector = at.eigenvalue + vector;
  at.rotated = at.vector + vector;
  at.mean = at.rotated + vector;
  at.x = (float *)(at.mean + vector);
  at.y = at.x + inputs;
  at.jacobian = at.y + vector;
  at.network = at.jacobian + (size_t)d * inputs;
  return at;
}

size_t denoiser_network_workspace(const NetworkShape *shape, int d) {
  const size_t vector = (size_t)d * LANES, matrix = (size_t)d * vector, inputs = (size_t)inputs_of(d) * LANES;
  const size_t floats = inputs + vector + (size_t)d * inputs + network_workspace(shape);
  return 5 * matrix + 4 * vector + (floats + 1) / 2;
}

/* to[rows, LANES] = from[rows, lanes], zeros beyond; and back. */
static void gather(int rows, int lanes, const double *from, double *to) {
  for (int k = 0; k < rows; k++) {
    memcpy(to + k * LANES, from + (size_t)k * (size_t)lanes, (size_t)lanes * sizeof *to);
    memset(to + k * LANES + lanes, 0, (size_t)(LANES - lanes) * sizeof *to);
  }
}
static void scatter(int rows, int lanes, const double *from, double *to) {
  for (int k = 0; k < rows; k++)
    memcpy(to + (size_t)k * (size_t)lanes, from + k * LANES, (size_t)lanes * sizeof *to);
}

/* out[count] = -log(1 + q) / 2, with q at most `most`. */
SIMD_CLONES
static void half_log(size_t count, double most, const double *restrict q, double *restrict out) {
  for (size_t k = 0; k < count; k += SPECIAL_VECTOR) {
    SpecialReal x;
    double bounded[SPECIAL_VECTOR];
    for (int i = 0; i < SPECIAL_VECTOR; i++) bounded[i] = 1 + (q[k + i] < most ? q[k + i] : most);
    memcpy(&x, bounded, sizeof x);
    special_log(&x);
    x *= -0.5;
    memcpy(out + k, &x, sizeof x);
  }
}

/* x[rows of x_row] = values[rows, LANES]; of a matrix[d, d, LANES], its upper triangle. */
SIMD_CLONES
static void to_floats(int rows, const double *restrict values, float *restrict x, size_t x_row) {
  for (int k = 0; k < rows; k++)
    for (int n = 0; n < LANES; n++) x[(size_t)k * x_row + (size_t)n] = (float)values[k * LANES + n];
}

void denoiser_network_inputs(int d, double most_precision, const double *basis, const double *eigenvalue,
                             const double *mean, double *matrix, double *column, float *x, size_t x_row) {
  half_log((size_t)d * LANES, most_precision, eigenvalue, column);
  denoiser_spectral(d, LANES, basis, column, matrix);
  to_floats(d, mean, x, x_row);
  x += (size_t)d * x_row;
  for (int i = 0; i < d; x += (size_t)(d - i) * x_row, i++)
    to_floats(d - i, matrix + (i * d + i) * LANES, x, x_row);
}

/* out[d, d, LANES] = A B. */
SIMD_CLONES
static void multiply(int d, const double *restrict a, const double *restrict b, double *restrict out) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      double sum[LANES] = {0};
      for (int k = 0; k < d; k++)
        for (int n = 0; n < LANES; n++) sum[n] += a[(i * d + k) * LANES + n] * b[(k * d + j) * LANES + n];
      memcpy(out + (i * d + j) * LANES, sum, sizeof sum);
    }
}

/* slope[d, d, LANES] <- S + the symmetric part of it. */
SIMD_CLONES
static void symmetrise(int d, const double *restrict shrunk, double *restrict slope) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      double *low = slope + (i * d + j) * LANES, *high = slope + (j * d + i) * LANES;
      for (int n = 0; n < LANES; n++)
        low[n] = high[n] = shrunk[(i * d + j) * LANES + n] + 0.5 * (low[n] + high[n]);
    }
}

/* out[count] = 1 / (1 + q). */
SIMD_CLONES
static void shrink(size_t count, const double *restrict q, double *restrict out) {
  for (size_t k = 0; k < count; k++) out[k] = 1 / (1 + q[k]);
}
SIMD_CLONES
static void take_roots(size_t count, double *x) {
  for (size_t k = 0; k < count; k++) x[k] = sqrt(x[k]);
}

/* From what the lanes were given to S, S^1/2, m and the inputs. */
static void prepare(const DenoiserNetwork *self, const Work *at) {
  const int d = self->d;
  const size_t count = (size_t)d * LANES;
  double *column = at->rotated;
  shrink(count, at->eigenvalue, column);
  denoiser_spectral(d, LANES, at->basis, column, at->shrunk);
  take_roots(count, column);
  denoiser_spectral(d, LANES, at->basis, column, at->root);
  linalg_multiply_lanes(d, LANES, at->shrunk, at->vector, at->mean);
  denoiser_network_inputs(d, self->most_precision, at->basis, at->eigenvalue, at->mean, at->matrix, column,
                          at->x, LANES);
}

/* Lanes with an eigenvalue above what the network was trained for. */
static void count_beyond(const DenoiserNetwork *self, int lanes, const double *eigenvalue, int *rescues) {
  for (int n = 0; n < lanes; n++) {
    bool beyond = false;
    for (int i = 0; i < self->d; i++) beyond |= eigenvalue[i * lanes + n] > self->most_precision;
    rescues[n] += beyond;
  }
}

int denoiser_network_bin(int d, double most_precision, double log_determinant) {
  const int bin = (int)(DENOISER_BINS * log_determinant / (d * log1p(most_precision)));
  return bin < DENOISER_BINS ? bin : DENOISER_BINS - 1;
}

double denoiser_network_bin_end(int d, double most_precision, int bin) {
  return (bin + 1.0) / DENOISER_BINS * d * log1p(most_precision);
}

/* y and C = S + S^1/2 (dh / dm) S, symmetrised, in at->slope. */
static void covariance_from_slope(const DenoiserNetwork *self, const Work *at) {
  const int d = self->d, inputs = inputs_of(d);
  network_jacobian(&self->shape, self->parameters, LANES, at->x, at->y, at->jacobian, at->network);
  for (int i = 0; i < d; i++)
    for (int k = 0; k < d * LANES; k++)
      at->slope[i * d * LANES + k] = (double)at->jacobian[i * inputs * LANES + k];
  multiply(d, at->root, at->slope, at->matrix);
  multiply(d, at->matrix, at->shrunk, at->slope);
  symmetrise(d, at->shrunk, at->slope);
}

/* y and C = loss S, in at->slope. */
static void covariance_from_loss(const DenoiserNetwork *self, const double *loss, const Work *at) {
  const int d = self->d;
  network_forward(&self->shape, self->parameters, LANES, at->x, at->y, at->network);
  for (int n = 0; n < LANES; n++) {
    double log_determinant = 0;
    for (int i = 0; i < d; i++) log_determinant += log1p(at->eigenvalue[i * LANES + n]);
    const double share = loss[denoiser_network_bin(d, self->most_precision, log_determinant)];
    for (int k = n; k < d * d * LANES; k += LANES) at->slope[k] = share * at->shrunk[k];
  }
}

void denoiser_network_moments(const DenoiserNetwork *self, const double *loss, int lanes, const double *basis,
                              const double *eigenvalue, const double *vector, double *mean,
                              double *covariance, int *rescues, double *workspace) {
  const int d = self->d;
  const Work at = work_of(d, workspace);
  count_beyond(self, lanes, eigenvalue, rescues);
  gather(d * d, lanes, basis, at.basis);
  gather(d, lanes, eigenvalue, at.eigenvalue);
  gather(d, lanes, vector, at.vector);
  prepare(self, &at);
  if (loss)
    covariance_from_loss(self, loss, &at);
  else
    covariance_from_slope(self, &at);
  for (int k = 0; k < d * LANES; k++) at.vector[k] = (double)at.y[k];
  linalg_multiply_lanes(d, LANES, at.root, at.vector, at.rotated);
  for (int k = 0; k < d * LANES; k++) at.mean[k] += at.rotated[k];
  scatter(d, lanes, at.mean, mean);
  scatter(d * d, lanes, at.slope, covariance);
}
