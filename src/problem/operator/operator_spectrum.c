/* A matrix with given singular values (Bruna and Han, Tilted transport).
 *
 * It has min(m, d) of them, in a geometric sequence between snr sigma and kappa snr sigma, and uniformly
 * random singular vectors; or the right ones are the principal axes of theta*, so that the world reveals
 * least where theta* varies most. With Q = A' A / sigma^2, snr^2 is the smallest eigenvalue of Q that is not
 * 0 by construction, and kappa^2 the ratio of the largest to the smallest. */
#include "core/linalg/linalg.h"
#include "problem/operator.h"

#include <math.h>
#include <string.h>

typedef struct {
  int rank;
  double *value; /* [rank], singular values in falling order */
  double *axes; /* [d, d], rows: the principal axes of theta* in order of rising variance; NULL: random */
} Spectrum;

/* Computes the principal axes of theta*. */
static Status operator_spectrum_find_axes(Spectrum *state, Problem *problem) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)problem->d;
  double *covariance, *columns, *mean, *variance;
  if (!problem->theta.has_mixture)
    return status_set(STATUS_INPUT,
                      "problem.singular_vectors: principal needs theta* from a mixture of Gaussians; "
                      "problem.theta = %s is not one",
                      problem->theta.ops->name);
  ALLOCATE(&problem->memory, state->axes, d * d);
  ALLOCATE_ARRAYS(&scratch, d * d, &covariance, &columns);
  ALLOCATE_ARRAYS(&scratch, d, &mean, &variance);
  mixture_moments(&problem->theta.mixture, mean, covariance);
  const Status status = linalg_eigen(problem->d, covariance, columns, variance);
  io_dataset_transpose(problem->d, problem->d, columns, state->axes);
  return status;
}

static Status operator_spectrum_create(Operator *self, Problem *problem, const Config *config) {
  Spectrum *state = self->state;
  const double snr = config_real(config, "problem.snr"),
               condition_number = config_real(config, "problem.condition_number");
  self->rows = problem->arms;
  state->rank = self->rows < self->d ? self->rows : self->d;
  ALLOCATE(&problem->memory, state->value, state->rank);
  const int last = state->rank - 1;
  for (int k = 0; k <= last; k++) {
    const double share = last > 0 ? (double)(last - k) / last : 0;
    state->value[k] = snr * problem->likelihood.noise * pow(condition_number, share);
  }
  if (!config_is(config, "problem.singular_vectors", "principal")) return STATUS_OK;
  return operator_spectrum_find_axes(state, problem);
}

/* Draws orthonormal columns from normals, uniformly distributed. */
static Status operator_spectrum_draw_vectors(const Dense *dense, Rng rng, int rows, int columns,
                                             DenseMatrix *out) {
  TRY(dense_matrix_create(dense, rows, columns, out));
  dense_fill_normal(dense, rng, out);
  return dense_orthogonal(dense, out);
}

/* Creates the right singular vectors, one in each column. */
static Status operator_spectrum_create_right(const Operator *self, Rng rng, const Dense *dense,
                                             DenseMatrix *out) {
  const Spectrum *state = self->state;
  if (!state->axes) return operator_spectrum_draw_vectors(dense, rng, self->d, state->rank, out);
  TRY(dense_matrix_create(dense, self->d, state->rank, out));
  memcpy(out->values, state->axes, (size_t)self->d * (size_t)state->rank * sizeof *out->values);
  return STATUS_OK;
}

/* Computes (left diag(value)) right'. */
static Status operator_spectrum_matrix(const Operator *self, uint32_t run, uint32_t round, const Dense *dense,
                                       DenseMatrix *out) {
  const Spectrum *state = self->state;
  const Rng of_left = {.key = rng_key(self->seed, RNG_ARMS), .run = run, .round = round},
            of_right = {.key = rng_key(self->seed, RNG_RIGHT_VECTORS), .run = run, .round = round};
  SCOPED(DenseMatrix, left, dense_matrix_destroy);
  SCOPED(DenseMatrix, right, dense_matrix_destroy);
  TRY(operator_spectrum_draw_vectors(dense, of_left, self->rows, state->rank, &left));
  TRY(operator_spectrum_create_right(self, of_right, dense, &right));
  TRY(dense_matrix_create(dense, self->rows, self->d, out));
  dense_scale_columns(dense, state->value, &left);
  dense_multiply(dense, 1, false, &left, true, &right, out);
  return STATUS_OK;
}

const OperatorOps operator_spectrum = {.name = "spectrum",
                                       .summary = "given singular values, random singular vectors",
                                       .state_size = sizeof(Spectrum),
                                       .create = operator_spectrum_create,
                                       .matrix = operator_spectrum_matrix};
