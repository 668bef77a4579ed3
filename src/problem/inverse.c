/* Linear inverse problems, y = A theta* + sigma w.
 *
 * The operator A[m, d] is one of operator.h. Its rows are the arms, so a history has them in order, and one
 * of m observations is the whole of y. */
#include "problem/operator.h"
#include "problem/problems.h"

#include <math.h>

static Status inverse_problem_create(Problem *self, const Config *config) {
  Operator *a = self->state;
  TRY(problem_create_theta(self, config));
  self->d = self->theta.d;
  self->arms_in_order = true;
  TRY(operator_create(config, self, a));
  self->arms = a->rows;
  return STATUS_OK;
}

static Status inverse_problem_draw_matrix(const Problem *self, uint32_t run, const Dense *dense,
                                          DenseMatrix *out) {
  return operator_matrix(self->state, run, 0, dense, out);
}

/* Draws the rows of A. If there is no memory for them, they are not numbers. */
static void inverse_problem_draw_features(World *world) {
  const Problem *self = world->problem;
  const Dense dense = dense_lapack(0, 1, NULL);
  const size_t runs = (size_t)world->runs, d = (size_t)self->d, m = (size_t)self->arms;
  for (size_t b = 0; b < runs; b++) {
    SCOPED(DenseMatrix, a, dense_matrix_destroy);
    const uint32_t run = world->first_run + (uint32_t)b;
    const bool made = operator_matrix(self->state, run, world->round, &dense, &a) == STATUS_OK;
    for (size_t i = 0; i < d; i++)
      for (size_t row = 0; row < m; row++)
        world->features[(row * d + i) * runs + b] = made ? a.values[i * m + row] : NAN;
  }
}

#define OPERATOR_KEYS(name, keys) " " keys
const ProblemOps problem_inverse = {.name = "inverse",
                                    .summary = "y = A theta* + noise; the arms are the rows of A, in order",
                                    .reference = "Bruna and Han (2024), Tilted transport",
                                    .keys = "problem.theta problem.file problem.resample_arms "
                                            "problem.operator" OPERATOR_LIST(OPERATOR_KEYS),
                                    .state_size = sizeof(Operator),
                                    .create = inverse_problem_create,
                                    .features = inverse_problem_draw_features,
                                    .matrix = inverse_problem_draw_matrix};
