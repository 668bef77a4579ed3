/* Operators: the matrix A[m, d] of a linear inverse problem y = A theta* + noise (inverse.c). Each has one
 * constant descriptor and one file in `operator`. One with structure says what it does to a vector, and needs
 * no d x d numbers for that; any other makes its matrix.
 *
 * What is random in A is drawn for each run and round. */
#pragma once

#include "problem/problem.h"

typedef struct Operator Operator;

typedef struct {
  const char *name, *summary;
  size_t state_size; /* in bytes, of self->state, which is zeroed before `create` */
  /* REQUIRED. Reads the operator's keys and sets `rows`, and `drawn` if it is not 0. self->d is known, and
   * so are the distribution of theta* and the noise of `problem`. State lives in problem->memory. */
  Status (*create)(Operator *self, Problem *problem, const Config *config);
  /* REQUIRED with structure, and without it unused: computes y[m] = A x[d]. */
  void (*apply)(const Operator *self, const double *drawn, const double *x, double *y);
  /* OPTIONAL with structure, needed with `drawn`: draws what is random in the A of a run and round. */
  void (*draw)(const Operator *self, uint32_t run, uint32_t round, double *drawn);
  /* REQUIRED without structure: creates A of a run and round where `dense` has it; collective. */
  Status (*matrix)(const Operator *self, uint32_t run, uint32_t round, const Dense *dense, DenseMatrix *out);
} OperatorOps;

struct Operator {
  const OperatorOps *ops;
  int d, rows; /* m */
  size_t drawn; /* doubles that are drawn for the A of a run */
  uint64_t seed;
  void *state;
};

/* The list: name, and the keys that it uses. operator_NAME is the descriptor, in operator/operator_NAME.c. */
#define OPERATOR_LIST(ENTRY)                                                                                 \
  ENTRY(spectrum, "problem.snr problem.condition_number problem.singular_vectors")                           \
  ENTRY(mask, "problem.observed")                                                                            \
  ENTRY(blur, "problem.blur_width")                                                                          \
  ENTRY(file, "problem.operator_file")

#define OPERATOR_DECLARE(name, keys) extern const OperatorOps operator_##name;
OPERATOR_LIST(OPERATOR_DECLARE)
#undef OPERATOR_DECLARE

const OperatorOps *operator_of(int index); /* NULL ends */
const char *operator_name(int index);

/* Creates the operator that problem.operator names, in problem->memory. Returns STATUS_INPUT if a key of
 * another operator is given, or problem.arms differs from the number of rows. */
Status operator_create(const Config *config, Problem *problem, Operator *out);
/* Creates A of a run and round where `dense` has it; collective. The caller must call dense_matrix_destroy,
 * also after a failure. */
Status operator_matrix(const Operator *self, uint32_t run, uint32_t round, const Dense *dense,
                       DenseMatrix *out);
