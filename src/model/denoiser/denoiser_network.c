#include "model/denoiser/denoiser_network.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "core/matrix_lanes.h"
#include "core/real.h"
#include "model/network/network_kernel.h"

enum { LANES = DENOISER_LANES };

_Static_assert((int)DENOISER_LANES == (int)NETWORK_LANES, "the lanes of a call are those of a network");

int denoiser_input_count(int d) { return 2 * d + d * (d + 1) / 2; }

/* Workspace of a call, for n = LANES lanes. */
enum { MATRICES = 8, VECTORS = 6 };
typedef struct {
  double *basis, *eigenvalue, *vector; /* [d, d, n], [d, n], [d, n]: U, q, b */
  double *shrunk, *root, *inverse_root; /* [d, d, n]: S, S^1/2, S^-1/2 */
  double *mean, *covariance; /* [d, n], [d, d, n]: D_0, C_0 */
  double *linear, *v, *column; /* [d, n]: m, v, scratch */
  double *slope, *other, *matrix; /* [d, d, n]: dh / dm, dh / dv, scratch */
  double *start; /* of the mixture's denoiser */
  float *x, *y, *jacobian, *network; /* [inputs, n], [d, n], [d, inputs, n], of the network */
} Work;

/* Returns the next array of a workspace. */
static double *denoiser_take_workspace(double **at, size_t doubles) {
  double *taken = *at;
  *at += doubles;
  return taken;
}

static Work denoiser_lay_out_work(const DenoiserNetwork *self, double *workspace) {
  const size_t vector = (size_t)self->d * LANES, matrix = (size_t)self->d * vector,
               inputs = (size_t)denoiser_input_count(self->d) * LANES;
  Work at;
  double **matrices[] = {&at.basis,      &at.shrunk, &at.root,  &at.inverse_root,
                         &at.covariance, &at.slope,  &at.other, &at.matrix};
  double **vectors[] = {&at.eigenvalue, &at.vector, &at.mean, &at.linear, &at.v, &at.column};
  for (int i = 0; i < MATRICES; i++) *matrices[i] = denoiser_take_workspace(&workspace, matrix);
  for (int i = 0; i < VECTORS; i++) *vectors[i] = denoiser_take_workspace(&workspace, vector);
  at.start = denoiser_take_workspace(&workspace, self->start->workspace);
  at.x = (float *)denoiser_take_workspace(
      &workspace, inputs / 2); /* two floats take the room of a double; LANES is even */
  at.y = (float *)denoiser_take_workspace(&workspace, vector / 2);
  at.jacobian = (float *)denoiser_take_workspace(&workspace, (size_t)self->d * inputs / 2);
  at.network = (float *)workspace;
  return at;
}

size_t denoiser_network_workspace(const DenoiserNetwork *self) {
  const size_t vector = (size_t)self->d * LANES, matrix = (size_t)self->d * vector,
               inputs = (size_t)denoiser_input_count(self->d) * LANES;
  return MATRICES * matrix + VECTORS * vector + self->start->workspace +
         (inputs + vector + (size_t)self->d * inputs + network_workspace(&self->shape) + 1) / 2;
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
  for (size_t k = 0; k < count; k += VECTOR_LANES) {
    Real x;
    double bounded[VECTOR_LANES];
    for (int i = 0; i < VECTOR_LANES; i++) bounded[i] = 1 + (q[k + i] < most ? q[k + i] : most);
    memcpy(&x, bounded, sizeof x);
    x = real_log(x);
    x *= -0.5;
    memcpy(out + k, &x, sizeof x);
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
static void denoiser_prepare_inputs(const DenoiserNetwork *self, bool whole, const double *basis,
                                    const double *eigenvalue, const double *vector, const Work *at, float *x,
                                    size_t x_row) {
  const int d = self->d;
  const size_t count = (size_t)d * LANES;
  int lane_fallbacks[LANES] = {
      0}; /* of the mixture's Cholesky factors; not reported, as their matrices are positive definite */
  for (size_t k = 0; k < count; k++) at->column[k] = 1 / (1 + eigenvalue[k]);
  linalg_spectral_lanes(d, LANES, basis, at->column, at->shrunk);
  for (size_t k = 0; k < count; k++) at->column[k] = sqrt(at->column[k]);
  if (whole) linalg_spectral_lanes(d, LANES, basis, at->column, at->root);
  for (size_t k = 0; k < count; k++) at->column[k] = 1 / at->column[k];
  linalg_spectral_lanes(d, LANES, basis, at->column, at->inverse_root);
  denoiser_log_shrinkage(count, self->most_precision, eigenvalue, at->column);
  linalg_spectral_lanes(d, LANES, basis, at->column, at->matrix);
  linalg_multiply_lanes(d, LANES, at->shrunk, vector, at->linear);
  self->start->moments(self->start, LANES, basis, eigenvalue, vector, at->mean, whole ? at->covariance : NULL,
                       lane_fallbacks, at->start);
  for (size_t k = 0; k < count; k++) at->column[k] = at->mean[k] - at->linear[k];
  linalg_multiply_lanes(d, LANES, at->inverse_root, at->column, at->v);
  denoiser_write_inputs(d, at->linear, x, x_row);
  x += (size_t)d * x_row;
  for (int i = 0; i < d; x += (size_t)(d - i) * x_row, i++)
    denoiser_write_inputs(d - i, at->matrix + (i * d + i) * LANES, x, x_row);
  denoiser_write_inputs(d, at->v, x, x_row);
}

void denoiser_network_inputs(const DenoiserNetwork *self, const double *basis, const double *eigenvalue,
                             const double *vector, float *x, size_t x_row, double *v, double *workspace) {
  const Work at = denoiser_lay_out_work(self, workspace);
  denoiser_prepare_inputs(self, false, basis, eigenvalue, vector, &at, x, x_row);
  memcpy(v, at.v, (size_t)(self->d * LANES) * sizeof *v);
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
  matrix_lanes_product(d, LANES, at->slope, at->inverse_root, at->other);
  memcpy(at->slope, at->covariance, count * sizeof *at->slope);
  lanes_add(count, -1, at->shrunk, at->slope);
  matrix_lanes_product(d, LANES, at->other, at->slope, at->matrix); /* (dh / dv) S^-1/2 (C_0 - S) */
  denoiser_unpack_jacobian(d, at->jacobian, 0, at->slope);
  matrix_lanes_product(d, LANES, at->slope, at->shrunk, at->other);
  lanes_add(count, 1, at->matrix, at->other);
  denoiser_apply_share(d * d, share, at->other);
  matrix_lanes_product(d, LANES, at->root, at->other, at->slope);
  matrix_lanes_symmetrise(d, LANES, at->slope);
  lanes_add(count, 1, at->covariance, at->slope);
}

void denoiser_network_moments(const DenoiserNetwork *self, bool slope, int lanes, const double *basis,
                              const double *eigenvalue, const double *vector, double *mean,
                              double *covariance, int *lane_fallbacks, double *workspace) {
  const int d = self->d;
  const Work at = denoiser_lay_out_work(self, workspace);
  double share[LANES];
  if (!denoiser_network_is_used(self)) {
    self->start->moments(self->start, lanes, basis, eigenvalue, vector, mean, covariance, lane_fallbacks,
                         workspace);
    return;
  }
  /* Count lanes with an eigenvalue above what the network was trained for, unless it has no share there. */
  for (int n = 0; n < lanes && self->share[DENOISER_BINS - 1] > 0; n++) {
    bool beyond = false;
    for (int i = 0; i < d; i++) beyond |= eigenvalue[i * lanes + n] > self->most_precision;
    lane_fallbacks[n] += beyond;
  }
  denoiser_pad_lanes(d * d, lanes, basis, at.basis);
  denoiser_pad_lanes(d, lanes, eigenvalue, at.eigenvalue);
  denoiser_pad_lanes(d, lanes, vector, at.vector);
  for (int n = 0; n < LANES; n++) { /* w */
    const double strength = denoiser_network_strength(d, self->most_precision, LANES, at.eigenvalue + n),
                 place = fmin(fmax(strength - 0.5, 0), DENOISER_BINS - 1);
    const int low = (int)place, high = low + 1 < DENOISER_BINS ? low + 1 : low;
    share[n] = self->share[low] + (place - low) * (self->share[high] - self->share[low]);
  }
  denoiser_prepare_inputs(self, true, at.basis, at.eigenvalue, at.vector, &at, at.x, LANES);
  if (slope)
    denoiser_network_covariance(self, share, &at);
  else
    network_forward(&self->shape, self->parameters, LANES, at.x, at.y, at.network);
  for (int k = 0; k < d * LANES; k++) at.v[k] = (double)at.y[k];
  denoiser_apply_share(d, share, at.v);
  linalg_multiply_lanes(d, LANES, at.root, at.v, at.column);
  lanes_add((size_t)d * LANES, 1, at.column, at.mean);
  lanes_copy(d, lanes, at.mean, LANES, mean, lanes);
  lanes_copy(d * d, lanes, slope ? at.slope : at.covariance, LANES, covariance, lanes);
}
