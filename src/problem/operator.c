#include "problem/operator.h"

#include <string.h>

static const struct {
  const OperatorOps *ops;
  const char *keys; /* that it uses, separated by blanks */
} registry[] = {
#define OPERATOR_ENTRY(name, keys) {&operator_##name, keys},
    OPERATOR_LIST(OPERATOR_ENTRY)
#undef OPERATOR_ENTRY
};
enum { OPERATORS = sizeof registry / sizeof *registry };

const OperatorOps *operator_of(int index) { return index < OPERATORS ? registry[index].ops : NULL; }
const char *operator_name(int index) { return index < OPERATORS ? registry[index].ops->name : NULL; }

/* Refuses keys of other operators. */
static Status operator_check_keys(const Config *config, const OperatorOps *ops) {
  for (int i = 0; i < OPERATORS; i++) {
    const char *list = registry[i].keys;
    if (registry[i].ops == ops) continue;
    for (size_t length; (length = strcspn(list, " ")) > 0; list += length + strspn(list + length, " ")) {
      char key[64], value[64];
      bool is_default;
      ASSERT(length < sizeof key);
      memcpy(key, list, length);
      key[length] = '\0';
      TRY(config_is_default(config, key, &is_default));
      if (is_default) continue;
      config_show(config, key, sizeof value, value);
      return status_set(STATUS_INPUT,
                        "%s: %s, but problem.operator is %s; only %s uses this key, so leave it out", key,
                        value, ops->name, registry[i].ops->name);
    }
  }
  return STATUS_OK;
}

Status operator_create(const Config *config, Problem *problem, Operator *out) {
  int i = 0;
  while (i < OPERATORS - 1 && !config_is(config, "problem.operator", registry[i].ops->name)) i++;
  const OperatorOps *ops = registry[i].ops;
  *out = (Operator){.ops = ops, .d = problem->d, .seed = problem->seed};
  TRY(operator_check_keys(config, ops));
  TRY(arena_new(&problem->memory, &out->state, 1, ops->state_size));
  TRY(ops->create(out, problem, config));
  if (out->rows == problem->arms || config_is(config, "problem.arms", "auto")) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "problem.arms: %d, but problem.operator: %s has %d rows in %d dimensions; leave it out",
                    problem->arms, ops->name, out->rows, out->d);
}

/* Creates the matrix of an operator with structure, from what it does to unit vectors. */
static Status operator_matrix_of_columns(const Operator *self, uint32_t run, uint32_t round,
                                         const Dense *dense, DenseMatrix *out) {
  SCRATCH_ARENA(memory);
  const size_t d = (size_t)self->d, m = (size_t)self->rows, most = (size_t)dense_most_columns(dense, self->d);
  double *numbers;
  const size_t count = self->drawn + d + m + 2 * m * most;
  TRY(dense_agree(dense, arena_new(&memory, (void **)&numbers, count, sizeof *numbers)));
  double *drawn = numbers, *unit = drawn + self->drawn, *column = unit + d, *part = column + m,
         *scratch = part + m * most;
  if (self->ops->draw) self->ops->draw(self, run, round, drawn);
  TRY(dense_matrix_create(dense, self->rows, self->d, out));
  for (int turn = 0; turn < dense_rounds(dense, self->d); turn++) {
    const DenseColumns columns = dense_columns(dense, self->d, turn, dense->rank);
    for (int k = 0; k < columns.count; k++) {
      unit[columns.first + k] = 1;
      self->ops->apply(self, drawn, unit, column);
      unit[columns.first + k] = 0;
      for (size_t i = 0; i < m; i++) part[i * (size_t)columns.count + (size_t)k] = column[i];
    }
    dense_put_columns(dense, turn, part, scratch, out);
  }
  return STATUS_OK;
}

Status operator_matrix(const Operator *self, uint32_t run, uint32_t round, const Dense *dense,
                       DenseMatrix *out) {
  *out = (DenseMatrix){0};
  if (self->ops->matrix) return self->ops->matrix(self, run, round, dense, out);
  return operator_matrix_of_columns(self, run, round, dense, out);
}
