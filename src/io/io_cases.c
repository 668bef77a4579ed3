#include "io/io_cases.h"

#include "io/csv_fields.h"
#include "io/io_dataset.h"
#include "io/store.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIMENSIONS = 10000, MOST_RANK = 4 };

/* A variable of a file of cases. */
typedef struct {
  const char *name;
  int rank;
  size_t shape[MOST_RANK]; /* the first axis is the case */
  double *values;
} Variable;

/* Reports values[at] of a variable, named by its indices from 0. */
static Status io_cases_refuse(const StoreFile *file, const Variable *variable, size_t at,
                              const char *allowed) {
  char place[MOST_RANK * 24] = "";
  size_t rest = at, size = 1;
  for (int axis = 1; axis < variable->rank; axis++) size *= variable->shape[axis];
  for (int axis = 0; axis < variable->rank; axis++) {
    const size_t used = strlen(place);
    snprintf(place + used, sizeof place - used, "%s%zu", axis ? ", " : "", rest / size);
    rest %= size;
    if (axis + 1 < variable->rank) size /= variable->shape[axis + 1];
  }
  const double value = variable->values[at];
  return status_set(STATUS_INPUT, "%s: %s[%s] (counted from 0) is %g%s; it must be %s", store_path(file),
                    variable->name, place, value, isnan(value) ? STORE_NAN : "", allowed);
}

static bool io_cases_is_number(double value) { return isfinite(value) && fabs(value) <= DATASET_MOST; }

/* Checks that values[first .. first + count - 1] are numbers. */
static Status io_cases_check_numbers(const StoreFile *file, const Variable *variable, size_t first,
                                     size_t count) {
  for (size_t at = first; at < first + count; at++)
    if (!io_cases_is_number(variable->values[at]))
      return io_cases_refuse(file, variable, at, "finite and at most 1e+45 in size");
  return STATUS_OK;
}

/* Reads a variable, whose shape and axes must be these; values stay NULL if it is optional and not there. */
static Status io_cases_read_variable(Arena *memory, StoreFile *file, const char *const *axes,
                                     Variable *variable) {
  size_t count = 1;
  TRY(store_shape(file, variable->name, variable->rank, variable->shape));
  TRY(store_axes(file, variable->name, variable->rank, axes));
  for (int axis = 0; axis < variable->rank; axis++) count *= variable->shape[axis];
  ALLOCATE(memory, variable->values, count);
  return store_get_doubles(file, variable->name, variable->values);
}

/* What a file holds, before padding is dropped. */
typedef struct {
  StoreFile *file;
  size_t count, components, rows, d;
  Variable weight, mean, spread, x, y, noise, exposure, theta; /* spread: variance or covariance */
} Contents;

static Status io_cases_read_contents(Arena *memory, Contents *self) {
  static const char *const of_components[] = {"case", "component", "dim", "dim2"},
                           *const of_rows[] = {"case", "observation", "dim"},
                           *const of_theta[] = {"case", "dim"};
  StoreFile *file = self->file;
  self->mean = (Variable){"mean", 3, {SIZE_MAX, SIZE_MAX, SIZE_MAX}, NULL};
  TRY(store_shape(file, "mean", 3, self->mean.shape));
  self->count = self->mean.shape[0];
  self->components = self->mean.shape[1];
  self->d = self->mean.shape[2];
  if (self->count < 1 || self->count > INT_MAX || self->components < 1 || self->components > INT_MAX ||
      self->d < 1 || self->d > MOST_DIMENSIONS)
    return status_set(
        STATUS_INPUT,
        "%s: 'mean' has shape (%zu, %zu, %zu); there must be a case, a component, and from 1 to "
        "%d dimensions",
        store_path(file), self->count, self->components, self->d, MOST_DIMENSIONS);
  const bool isotropic = store_has_variable(file, "variance");
  if (isotropic == store_has_variable(file, "covariance"))
    return status_set(
        STATUS_INPUT,
        "%s: there must be exactly one of variance(case, component), multiples of the identity, "
        "and covariance(case, component, dim, dim2)",
        store_path(file));
  self->weight = (Variable){"weight", 2, {self->count, self->components}, NULL};
  self->spread = isotropic
                     ? (Variable){"variance", 2, {self->count, self->components}, NULL}
                     : (Variable){"covariance", 4, {self->count, self->components, self->d, self->d}, NULL};
  self->x = (Variable){"x", 3, {self->count, SIZE_MAX, self->d}, NULL};
  TRY(io_cases_read_variable(memory, file, of_components, &self->weight));
  TRY(io_cases_read_variable(memory, file, of_components, &self->mean));
  TRY(io_cases_read_variable(memory, file, of_components, &self->spread));
  TRY(io_cases_read_variable(memory, file, of_rows, &self->x));
  self->rows = self->x.shape[1];
  if (self->rows > INT_MAX)
    return status_set(STATUS_INPUT, "%s: 'x' has %zu observations; at most %d are allowed", store_path(file),
                      self->rows, INT_MAX);
  self->y = (Variable){"y", 2, {self->count, self->rows}, NULL};
  TRY(io_cases_read_variable(memory, file, of_rows, &self->y));
  self->noise = (Variable){"noise", 1, {self->count}, NULL};
  self->exposure = (Variable){"exposure", 1, {self->count}, NULL};
  self->theta = (Variable){"theta", 2, {self->count, self->d}, NULL};
  if (store_has_variable(file, "noise")) TRY(io_cases_read_variable(memory, file, of_rows, &self->noise));
  if (store_has_variable(file, "exposure"))
    TRY(io_cases_read_variable(memory, file, of_rows, &self->exposure));
  if (store_has_variable(file, "theta")) TRY(io_cases_read_variable(memory, file, of_theta, &self->theta));
  return STATUS_OK;
}

/* Checks covariance[d, d] of a component for symmetry, and makes it exact. */
static Status io_cases_check_covariance(const Contents *from, size_t component) {
  const size_t d = from->d, first = component * d * d;
  double *covariance = from->spread.values + first;
  TRY(io_cases_check_numbers(from->file, &from->spread, first, d * d));
  for (size_t i = 0; i < d; i++) {
    if (!(covariance[i * d + i] > 0))
      return io_cases_refuse(from->file, &from->spread, first + i * d + i, "above 0, on the diagonal");
    for (size_t j = 0; j < i; j++) {
      double *here = &covariance[i * d + j], *there = &covariance[j * d + i];
      const double size = sqrt(covariance[i * d + i]) * sqrt(covariance[j * d + j]);
      if (fabs(*here - *there) > 1e-6 * size)
        return io_cases_refuse(from->file, &from->spread, first + i * d + j,
                               "that of the exchanged indices: covariances are symmetric");
      *here = *there = (*here + *there) / 2;
    }
  }
  return STATUS_OK;
}

/* Takes the components of a case, but for those of weight 0. */
static Status io_cases_take_components(Arena *memory, const Contents *from, size_t number, Case *out) {
  const size_t d = from->d, first = number * from->components;
  const bool isotropic = from->spread.rank == 2;
  const size_t entries = isotropic ? 1 : d * d;
  double total = 0, *spread;
  ALLOCATE_ARRAYS(memory, from->components, &out->weight, &spread);
  ALLOCATE(memory, out->mean, from->components * d);
  if (!isotropic) ALLOCATE(memory, spread, from->components * entries);
  out->variance = isotropic ? spread : NULL;
  out->covariance = isotropic ? NULL : spread;
  for (size_t k = first; k < first + from->components; k++) {
    const double weight = from->weight.values[k];
    if (!(weight >= 0 && weight <= 1)) return io_cases_refuse(from->file, &from->weight, k, "from 0 to 1");
    if (weight == 0) continue;
    TRY(io_cases_check_numbers(from->file, &from->mean, k * d, d));
    if (!isotropic) TRY(io_cases_check_covariance(from, k));
    if (isotropic && !(from->spread.values[k] > 0 && from->spread.values[k] <= DATASET_MOST))
      return io_cases_refuse(from->file, &from->spread, k, "above 0 and at most 1e+45");
    const size_t c = (size_t)out->components++;
    out->weight[c] = weight;
    memcpy(out->mean + c * d, from->mean.values + k * d, d * sizeof *out->mean);
    memcpy(spread + c * entries, from->spread.values + k * entries, entries * sizeof *spread);
    total += weight;
  }
  if (fabs(total - 1) > 1e-6)
    return status_set(STATUS_INPUT, "%s: the weights of case %zu (counted from 0) sum to %.9g, not to 1",
                      store_path(from->file), number, total);
  for (int c = 0; c < out->components; c++) out->weight[c] /= total;
  return STATUS_OK;
}

/* Returns whether a row of a case is padding: y and all of x are NaN. */
static bool io_cases_row_is_padding(const Contents *from, size_t row) {
  bool padding = isnan(from->y.values[row]);
  for (size_t i = 0; i < from->d; i++) padding = padding && isnan(from->x.values[row * from->d + i]);
  return padding;
}

/* Takes the observations of a case, but for rows of NaN at its end. */
static Status io_cases_take_rows(const Contents *from, size_t number, Case *out) {
  const size_t first = number * from->rows;
  size_t rows = from->rows;
  while (rows > 0 && io_cases_row_is_padding(from, first + rows - 1)) rows--;
  if (rows == 0)
    return status_set(STATUS_INPUT, "%s: case %zu (counted from 0) has no observations",
                      store_path(from->file), number);
  TRY(io_cases_check_numbers(from->file, &from->x, first * from->d, rows * from->d));
  TRY(io_cases_check_numbers(from->file, &from->y, first, rows));
  out->rows = (int)rows;
  out->x = from->x.values + first * from->d;
  out->y = from->y.values + first;
  return STATUS_OK;
}

/* Takes the positive number of a case from a variable that a file can have. */
static Status io_cases_take_scale(const Contents *from, const Variable *variable, size_t number,
                                  double *out) {
  if (!variable->values) return STATUS_OK;
  *out = variable->values[number];
  if (*out > 0 && *out <= DATASET_MOST) return STATUS_OK;
  return io_cases_refuse(from->file, variable, number, "above 0 and at most 1e+45");
}

static Status io_cases_take(Arena *memory, const Contents *from, size_t number, Case *out) {
  TRY(io_cases_take_components(memory, from, number, out));
  TRY(io_cases_take_rows(from, number, out));
  TRY(io_cases_take_scale(from, &from->noise, number, &out->noise));
  TRY(io_cases_take_scale(from, &from->exposure, number, &out->exposure));
  if (from->theta.values) {
    TRY(io_cases_check_numbers(from->file, &from->theta, number * from->d, from->d));
    out->theta = from->theta.values + number * from->d;
  }
  return STATUS_OK;
}

Status io_cases_read(Arena *memory, const char *path, CaseFile *out) {
  SCOPED(StoreFile *, file, store_close);
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  *out = (CaseFile){.path = path};
  TRY(store_open(path, &file));
  Contents contents = {.file = file};
  TRY(io_cases_read_contents(memory, &contents));
  TRY(store_get_text_attribute(memory, file, "likelihood", &out->likelihood));
  out->d = (int)contents.d;
  out->count = (int)contents.count;
  ALLOCATE(memory, out->cases, contents.count);
  for (size_t c = 0; c < contents.count; c++) {
    TRY(io_cases_take(memory, &contents, c, &out->cases[c]));
    if (out->cases[c].rows > out->rows) out->rows = out->cases[c].rows;
  }
  if (!store_has_variable(file, "reference")) return STATUS_OK;
  shape[0] = contents.count;
  shape[2] = contents.d;
  TRY(store_shape(file, "reference", 3, shape));
  TRY(store_axes(file, "reference", 3, (const char *[]){"case", "draw", "dim"}));
  if (shape[1] < 1 || shape[1] > INT_MAX)
    return status_set(STATUS_INPUT, "%s: 'reference' has %zu draws; there must be from 1 to %d",
                      store_path(file), shape[1], INT_MAX);
  out->references = (int)shape[1];
  return STATUS_OK;
}

Status io_cases_read_reference(const CaseFile *file, int number, int first, int n, double *theta) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, store, store_close);
  const size_t start[3] = {(size_t)number, (size_t)first, 0}, count[3] = {1, (size_t)n, (size_t)file->d};
  double *draws; /* [n, d] */
  ASSERT(number < file->count && first + n <= file->references);
  ALLOCATE(&scratch, draws, count[1] * count[2]);
  TRY(store_open(file->path, &store));
  TRY(store_get_part(store, "reference", STORE_DOUBLE, start, count, draws));
  for (size_t k = 0; k < count[1] * count[2]; k++)
    if (!io_cases_is_number(draws[k]))
      return status_set(STATUS_INPUT,
                        "%s: reference[%d, %zu, %zu] (counted from 0) is %g%s; it must be finite and at most "
                        "%g in size",
                        file->path, number, start[1] + k / count[2], k % count[2], draws[k],
                        isnan(draws[k]) ? STORE_NAN : "", DATASET_MOST);
  io_dataset_transpose(n, file->d, draws, theta);
  return STATUS_OK;
}
