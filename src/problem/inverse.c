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
#include "problem/rotation.h"

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
  self->feature_scratch = (size_t)inverse_problem_rank(self) * ((size_t)self->arms + (size_t)self->d);
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

static void inverse_problem_draw_features(World *world) {
  const Problem *self = world->problem;
  const Inverse *state = self->state;
  const int d = self->d, m = self->arms, rank = inverse_problem_rank(self), runs = world->runs;
  double *left = world->scratch + runs, *right = left + rank * m; /* [rank, m], [rank, d] */
  for (int b = 0; b < runs; b++) {
    const uint32_t run = world->first_run + (uint32_t)b;
    Rng of_left = {.key = rng_key(self->seed, RNG_ARMS), .run = run, .round = world->round},
        of_right = {.key = rng_key(self->seed, RNG_RIGHT_VECTORS), .run = run, .round = world->round};
    rotation_draw(&of_left, rank, m, left);
    if (state->axes)
      memcpy(right, state->axes, (size_t)(rank * d) * sizeof *right);
    else
      rotation_draw(&of_right, rank, d, right);
    for (int row = 0; row < m; row++)
      for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int k = 0; k < rank; k++)
          sum += inverse_problem_singular_value(self, k) * left[k * m + row] * right[k * d + i];
        world->features[(size_t)(row * d + i) * (size_t)runs + (size_t)b] = sum;
      }
  }
}

/* Draws orthonormal columns from normals: what rotation_draw gives as rows. */
static Status inverse_problem_draw_vectors(const Dense *dense, RngKey key, uint32_t run, int rows,
                                           int columns, DenseMatrix *out) {
  TRY(dense_matrix_create(dense, rows, columns, out));
  dense_fill_normal(dense, (Rng){.key = key, .run = run}, out);
  return dense_orthogonal(dense, out);
}

/* Computes (left diag(s)) right', with all matrices spread over the ranks. */
static Status inverse_problem_draw_matrix(const Problem *self, uint32_t run, const Dense *dense,
                                          DenseMatrix *out) {
  const int rank = inverse_problem_rank(self);
  SCOPED(DenseMatrix, left, dense_matrix_destroy);
  SCOPED(DenseMatrix, right, dense_matrix_destroy);
  SCRATCH_ARENA(scratch);
  double *values;
  *out = (DenseMatrix){0};
  TRY(dense_agree(dense, arena_new(&scratch, (void **)&values, (size_t)rank, sizeof *values)));
  for (int k = 0; k < rank; k++) values[k] = inverse_problem_singular_value(self, k);
  TRY(inverse_problem_draw_vectors(dense, rng_key(self->seed, RNG_ARMS), run, self->arms, rank, &left));
  TRY(inverse_problem_draw_vectors(dense, rng_key(self->seed, RNG_RIGHT_VECTORS), run, self->d, rank,
                                   &right));
  TRY(dense_matrix_create(dense, self->arms, self->d, out));
  dense_scale_columns(dense, values, &left);
  dense_multiply(dense, 1, false, &left, true, &right, out);
  return STATUS_OK;
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
