#include "model/denoiser/denoiser_network.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/real.h"
#include "model/network/network_kernel.h"

enum { LANES = DENOISER_LANES };

_Static_assert((int)DENOISER_LANES == (int)NETWORK_LANES, "the lanes of a call are those of a network");

int denoiser_input_count(int d) { return 2 * d + d * (d + 1) / 2; }

/* What a call works in, for n = LANES lanes. */
typedef struct {
  LaneEvidence padded; /* the evidence, with zeros in lanes beyond the last */
  double *shrunk, *root, *inverse_root; /* [d, d, n]: S, S^1/2, S^-1/2 */
  double *mean, *covariance; /* [d, n], [d, d, n]: D_0, C_0 */
  double *linear, *v, *column; /* [d, n]: m, v, scratch */
  double *slope, *other, *matrix; /* [d, d, n]: dh / dm, dh / dv, scratch */
  void *start; /* of the mixture's denoiser */
  float *x, *y, *jacobian, *network; /* [inputs, n], [d, n], [d, inputs, n], of the network */
} Work;

Status denoiser_network_scratch(Arena *memory, const DenoiserNetwork *self, void **out) {
  const size_t vector = (size_t)self->d * LANES, matrix = (size_t)self->d * vector,
               inputs = (size_t)denoiser_input_count(self->d) * LANES;
  Work *at;
  ALLOCATE(memory, at, 1);
  TRY(denoiser_evidence_create(memory, self->d, &at->padded));
  at->padded.lanes = LANES;
  ALLOCATE_ARRAYS(memory, matrix, &at->shrunk, &at->root, &at->inverse_root, &at->covariance, &at->slope,
                  &at->other, &at->matrix);
  ALLOCATE_ARRAYS(memory, vector, &at->mean, &at->linear, &at->v, &at->column);
  ALLOCATE(memory, at->y, vector);
  ALLOCATE(memory, at->x, inputs);
  ALLOCATE(memory, at->jacobian, (size_t)self->d * inputs);
  ALLOCATE(memory, at->network, network_workspace(&self->shape));
  *out = at;
  return self->start->scratch(self->start, memory, &at->start);
}

/* Computes to[rows, LANES] = from[rows, lanes], with zeros in the other lanes. */
static void denoiser_pad_lanes(int rows, int lanes, const double *from, double *to) {
  memset(to, 0, (size_t)(rows * LANES) * sizeof *to);
  lanes_copy(rows, lanes, from, lanes, to, LANES);
}

/* Computes out[count] = -log(1 + q) / 2, with q at most `most`. */
SIMD_CLONES
static void denoiser_log_shrinkage(size_t count, double most, const double *restrict q,
                                   double *restrict out) {
  for (RealLanes at = real_begin((int)count); at.count > 0; real_next(&at)) {
    Real x;
    real_load(at, 1, q, &x);
    x = -0.5 * real_log(1 + real_choose(real_above(real_of(most), x), x, real_of(most)));
    real_store(at, 1, &x, out);
  }
}

/* Converts values[rows, LANES] to floats in x, whose rows are x_row apart. */
SIMD_CLONES
static void denoiser_write_inputs(int rows, const double *restrict values, float *restrict x, size_t x_row) {
  for (int k = 0; k < rows; k++)
    for (int n = 0; n < LANES; n++) x[(size_t)k * x_row + (size_t)n] = (float)values[k * LANES + n];
}

/* Computes the network's inputs from U, q and b of LANES lanes and, if `whole`, what else the moments
 * need. */
SIMD_CLONES
static void denoiser_prepare_inputs(const DenoiserNetwork *self, bool whole, const LaneEvidence *evidence,
                                    const Work *at, float *x, size_t x_row) {
  const double *basis = evidence->basis, *eigenvalue = evidence->eigenvalue;
  const int d = self->d;
  const size_t count = (size_t)d * LANES;
  int lane_fallbacks[LANES] = {
      0}; /* of the mixture's Cholesky factors; not reported, as their matrices are positive definite */
  for (size_t k = 0; k < count; k++) at->column[k] = 1 / (1 + eigenvalue[k]);
  linalg_factor_spectral(d, LANES, basis, at->column, at->shrunk);
  for (size_t k = 0; k < count; k++) at->column[k] = sqrt(at->column[k]);
  if (whole) linalg_factor_spectral(d, LANES, basis, at->column, at->root);
  for (size_t k = 0; k < count; k++) at->column[k] = 1 / at->column[k];
  linalg_factor_spectral(d, LANES, basis, at->column, at->inverse_root);
  denoiser_log_shrinkage(count, self->most_precision, eigenvalue, at->column);
  linalg_factor_spectral(d, LANES, basis, at->column, at->matrix);
  linalg_lanes_multiply(d, LANES, at->shrunk, evidence->vector, at->linear);
  self->start->moments(self->start, evidence, at->mean, whole ? at->covariance : NULL, lane_fallbacks,
                       at->start);
  for (size_t k = 0; k < count; k++) at->column[k] = at->mean[k] - at->linear[k];
  linalg_lanes_multiply(d, LANES, at->inverse_root, at->column, at->v);
  denoiser_write_inputs(d, at->linear, x, x_row);
  x += (size_t)d * x_row;
  for (int i = 0; i < d; x += (size_t)(d - i) * x_row, i++)
    denoiser_write_inputs(d - i, at->matrix + (i * d + i) * LANES, x, x_row);
  denoiser_write_inputs(d, at->v, x, x_row);
}

void denoiser_network_inputs(const DenoiserNetwork *self, const LaneEvidence *at, float *x, size_t x_row,
                             double *v, void *scratch) {
  const Work *work = scratch;
  denoiser_prepare_inputs(self, false, at, work, x, x_row);
  memcpy(v, work->v, (size_t)(self->d * LANES) * sizeof *v);
}

double denoiser_network_strength(int d, double most_precision, size_t stride, const double *eigenvalue) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)d; i++) sum += log1p(fmin(eigenvalue[i * stride], most_precision));
  return DENOISER_BINS * sum / (d * log1p(most_precision));
}

bool denoiser_network_is_used(const DenoiserNetwork *self) {
  for (int k = 0; k < DENOISER_BINS; k++)
    if (self->share[k] > 0) return true;
  return false;
}

/* Computes x[count, LANES] *= share[LANES]. */
SIMD_CLONES
static void denoiser_apply_share(int count, const double *restrict share, double *restrict x) {
  for (int k = 0; k < count; k++)
    for (int n = 0; n < LANES; n++) x[k * LANES + n] *= share[n];
}

/* Copies to out[d, d, LANES] the columns of the Jacobian that belong to d inputs, from `first` on. */
static void denoiser_unpack_jacobian(int d, const float *jacobian, int first, double *out) {
  for (int i = 0; i < d; i++)
    for (int k = 0; k < d * LANES; k++)
      out[i * d * LANES + k] = (double)jacobian[(i * denoiser_input_count(d) + first) * LANES + k];
}

/* Computes y, and C in at->slope. */
static void denoiser_network_covariance(const DenoiserNetwork *self, const double *share, const Work *at) {
  const int d = self->d;
  const size_t count = (size_t)d * (size_t)d * LANES;
  network_jacobian(&self->shape, self->parameters, LANES, at->x, at->y, at->jacobian, at->network);
  denoiser_unpack_jacobian(d, at->jacobian, denoiser_input_count(d) - d, at->slope);
  linalg_lanes_product(d, LANES, at->slope, at->inverse_root, at->other);
  memcpy(at->slope, at->covariance, count * sizeof *at->slope);
  lanes_add(count, -1, at->shrunk, at->slope);
  linalg_lanes_product(d, LANES, at->other, at->slope, at->matrix); /* (dh / dv) S^-1/2 (C_0 - S) */
  denoiser_unpack_jacobian(d, at->jacobian, 0, at->slope);
  linalg_lanes_product(d, LANES, at->slope, at->shrunk, at->other);
  lanes_add(count, 1, at->matrix, at->other);
  denoiser_apply_share(d * d, share, at->other);
  linalg_lanes_product(d, LANES, at->root, at->other, at->slope);
  linalg_lanes_symmetrise(d, LANES, at->slope);
  lanes_add(count, 1, at->covariance, at->slope);
}

/* Counts lanes with an eigenvalue above what the network was trained for. */
static void denoiser_count_beyond(const DenoiserNetwork *self, const LaneEvidence *evidence,
                                  int *lane_fallbacks) {
  const int lanes = evidence->lanes;
  for (int n = 0; n < lanes; n++) {
    bool beyond = false;
    for (int i = 0; i < self->d; i++) beyond |= evidence->eigenvalue[i * lanes + n] > self->most_precision;
    lane_fallbacks[n] += beyond;
  }
}

void denoiser_network_moments(const DenoiserNetwork *self, bool slope, const LaneEvidence *evidence,
                              double *mean, double *covariance, int *lane_fallbacks, void *scratch) {
  const int d = self->d, lanes = evidence->lanes;
  const Work *at = scratch;
  const LaneEvidence *padded = &at->padded;
  double share[LANES];
  if (!denoiser_network_is_used(self)) {
    self->start->moments(self->start, evidence, mean, covariance, lane_fallbacks, at->start);
    return;
  }
  if (self->share[DENOISER_BINS - 1] > 0) denoiser_count_beyond(self, evidence, lane_fallbacks);
  denoiser_pad_lanes(d * d, lanes, evidence->basis, padded->basis);
  denoiser_pad_lanes(d, lanes, evidence->eigenvalue, padded->eigenvalue);
  denoiser_pad_lanes(d, lanes, evidence->vector, padded->vector);
  for (int n = 0; n < LANES; n++) { /* w */
    const double strength = denoiser_network_strength(d, self->most_precision, LANES, padded->eigenvalue + n),
                 place = fmin(fmax(strength - 0.5, 0), DENOISER_BINS - 1);
    const int low = (int)place, high = low + 1 < DENOISER_BINS ? low + 1 : low;
    share[n] = self->share[low] + (place - low) * (self->share[high] - self->share[low]);
  }
  denoiser_prepare_inputs(self, true, padded, at, at->x, LANES);
  if (slope)
    denoiser_network_covariance(self, share, at);
  else
    network_forward(&self->shape, self->parameters, LANES, at->x, at->y, at->network);
  for (int k = 0; k < d * LANES; k++) at->v[k] = (double)at->y[k];
  denoiser_apply_share(d, share, at->v);
  linalg_lanes_multiply(d, LANES, at->root, at->v, at->column);
  lanes_add((size_t)d * LANES, 1, at->column, at->mean);
  lanes_copy(d, lanes, at->mean, LANES, mean, lanes);
  lanes_copy(d * d, lanes, slope ? at->slope : at->covariance, LANES, covariance, lanes);
}
