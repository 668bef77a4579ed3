/* Linear inverse problems, y = A theta* + sigma w (Bruna and Han, Tilted transport).
 *
 * A[m, d] is drawn for each run. It has min(m, d) singular values in a geometric sequence between snr sigma
 * and kappa snr sigma, and uniformly random singular vectors; or the right ones are the principal axes of
 * theta*, so that the world reveals least where theta* varies most. Its rows are the arms, m = problem.arms,
 * so a history has them in order, and one of m observations is the whole of y. With Q = A' A / sigma^2, snr^2
 * is the smallest eigenvalue of Q that is not 0 by construction, and kappa^2 the ratio of the largest to the
 * smallest. */
#include "core/linalg/linalg.h"
#include "problem/problems.h"

#include <math.h>
#include <string.h>

const char INVERSE_SINGULAR_VECTORS[] = "random principal";

typedef struct {
  double snr, condition_number;
  double *axes; /* [d, d], rows: the principal axes of theta* in order of rising variance; NULL: random */
} Inverse;

static int inverse_problem_rank(const Problem *self) { return self->arms < self->d ? self->arms : self->d; }

static Status inverse_problem_create(Problem *self, const Config *config) {
  Inverse *state = self->state;
  TRY(problem_create_theta(self, config));
  self->d = self->theta.d;
  self->arms_in_order = true;
  state->snr = config_real(config, "problem.snr");
  state->condition_number = config_real(config, "problem.condition_number");
  if (!config_is(config, "problem.singular_vectors", "principal")) return STATUS_OK;
  if (!self->theta.has_mixture)
    return status_set(STATUS_INPUT,
                      "problem.singular_vectors: principal needs theta* from a mixture of Gaussians; "
                      "problem.theta = %s is not one",
                      self->theta.ops->name);
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)self->d;
  double *covariance, *columns, *mean, *variance;
  ALLOCATE(&self->memory, state->axes, d * d);
  ALLOCATE_ARRAYS(&scratch, d * d, &covariance, &columns);
  ALLOCATE_ARRAYS(&scratch, d, &mean, &variance);
  mixture_moments(&self->theta.mixture, mean, covariance);
  const Status status = linalg_eigen(self->d, covariance, columns, variance);
  io_dataset_transpose(self->d, self->d, columns, state->axes);
  return status;
}

/* Returns singular value k, from 0 to rank - 1, in falling order. */
static double inverse_problem_singular_value(const Problem *self, int k) {
  const Inverse *state = self->state;
  const int last = inverse_problem_rank(self) - 1;
  const double share = last > 0 ? (double)(last - k) / last : 0;
  return state->snr * self->likelihood.noise * pow(state->condition_number, share);
}

/* Draws orthonormal columns from normals, uniformly distributed. */
static Status inverse_problem_draw_vectors(const Dense *dense, Rng rng, int rows, int columns,
                                           DenseMatrix *out) {
  TRY(dense_matrix_create(dense, rows, columns, out));
  dense_fill_normal(dense, rng, out);
  return dense_orthogonal(dense, out);
}

/* Creates the right singular vectors, one in each column. */
static Status inverse_problem_create_right(const Problem *self, Rng rng, const Dense *dense,
                                           DenseMatrix *out) {
  const Inverse *state = self->state;
  const int rank = inverse_problem_rank(self);
  if (!state->axes) return inverse_problem_draw_vectors(dense, rng, self->d, rank, out);
  TRY(dense_matrix_create(dense, self->d, rank, out));
  memcpy(out->values, state->axes, (size_t)self->d * (size_t)rank * sizeof *out->values);
  return STATUS_OK;
}

/* Computes (left diag(s)) right' of a round, with all matrices where `dense` has them. */
static Status inverse_problem_create_matrix(const Problem *self, uint32_t run, uint32_t round,
                                            const Dense *dense, DenseMatrix *out) {
  const int rank = inverse_problem_rank(self);
  const Rng of_left = {.key = rng_key(self->seed, RNG_ARMS), .run = run, .round = round},
            of_right = {.key = rng_key(self->seed, RNG_RIGHT_VECTORS), .run = run, .round = round};
  SCOPED(DenseMatrix, left, dense_matrix_destroy);
  SCOPED(DenseMatrix, right, dense_matrix_destroy);
  SCRATCH_ARENA(scratch);
  double *values;
  *out = (DenseMatrix){0};
  TRY(dense_agree(dense, arena_new(&scratch, (void **)&values, (size_t)rank, sizeof *values)));
  for (int k = 0; k < rank; k++) values[k] = inverse_problem_singular_value(self, k);
  TRY(inverse_problem_draw_vectors(dense, of_left, self->arms, rank, &left));
  TRY(inverse_problem_create_right(self, of_right, dense, &right));
  TRY(dense_matrix_create(dense, self->arms, self->d, out));
  dense_scale_columns(dense, values, &left);
  dense_multiply(dense, 1, false, &left, true, &right, out);
  return STATUS_OK;
}

static Status inverse_problem_draw_matrix(const Problem *self, uint32_t run, const Dense *dense,
                                          DenseMatrix *out) {
  return inverse_problem_create_matrix(self, run, 0, dense, out);
}

/* Draws the rows of A. If there is no memory for them, they are not numbers. */
static void inverse_problem_draw_features(World *world) {
  const Problem *self = world->problem;
  const Dense dense = dense_lapack(0, 1, NULL);
  const size_t runs = (size_t)world->runs, d = (size_t)self->d, m = (size_t)self->arms;
  for (size_t b = 0; b < runs; b++) {
    SCOPED(DenseMatrix, a, dense_matrix_destroy);
    const bool made = inverse_problem_create_matrix(self, world->first_run + (uint32_t)b, world->round,
                                                    &dense, &a) == STATUS_OK;
    for (size_t i = 0; i < d; i++)
      for (size_t row = 0; row < m; row++)
        world->features[(row * d + i) * runs + b] = made ? a.values[i * m + row] : NAN;
  }
}

const ProblemOps problem_inverse = {.name = "inverse",
                                    .summary = "y = A theta* + noise; the arms are the rows of A, in order",
                                    .reference = "Bruna and Han (2024), Tilted transport",
                                    .keys = "problem.theta problem.file problem.condition_number problem.snr "
                                            "problem.singular_vectors problem.resample_arms",
                                    .state_size = sizeof(Inverse),
                                    .create = inverse_problem_create,
                                    .features = inverse_problem_draw_features,
                                    .matrix = inverse_problem_draw_matrix};
