/* The user's matrix, from the NetCDF file problem.operator_file: a(observation, dim). */
#include "io/io_dataset.h"
#include "problem/operator.h"

typedef struct {
  double *a; /* [m, d] */
} FileOperator;

static Status operator_file_create(Operator *self, Problem *problem, const Config *config) {
  FileOperator *state = self->state;
  const char *path = config_text(config, "problem.operator_file");
  int d;
  if (!path)
    return status_set(STATUS_INPUT,
                      "problem.operator: file needs problem.operator_file, NetCDF a(observation, dim)");
  TRY(io_dataset_read_operator(&problem->memory, path, &self->rows, &d, &state->a));
  if (d == self->d) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: 'a' has %d columns, but theta* has %d dimensions", path, d, self->d);
}

static Status operator_file_matrix(const Operator *self, uint32_t run, uint32_t round, const Dense *dense,
                                   DenseMatrix *out) {
  const FileOperator *state = self->state;
  (void)run;
  (void)round;
  TRY(dense_matrix_create(dense, self->rows, self->d, out));
  dense_scatter(dense, state->a, out);
  return STATUS_OK;
}

const OperatorOps operator_file = {.name = "file",
                                   .summary = "a matrix from a file",
                                   .state_size = sizeof(FileOperator),
                                   .create = operator_file_create,
                                   .matrix = operator_file_matrix};
