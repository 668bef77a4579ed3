#include "io/dataset.h"

#include "io/dataset_csv.h"
#include "io/input.h"
#include "io/store.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Status read_csv(const char *path, CsvForm form, Table *table) {
  FILE *stream;
  TRY(input_stream(path, &stream));
  Status status = dataset_csv_parse(stream, path, form, table);
  fclose(stream);
  return status;
}

static Status check_axis(StoreFile *file, const char *name, const char *axis, size_t length) {
  if (length <= INT_MAX) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: the %s axis of '%s' is too long (%zu)", store_path(file), axis, name,
                    length);
}

/* Checks the values of a NetCDF variable [count / columns, columns], or [count] with columns = 0. */
static Status check_values(StoreFile *file, const char *name, size_t count, size_t columns,
                           const double *values) {
  for (size_t i = 0; i < count; i++) {
    if (isfinite(values[i]) && fabs(values[i]) <= DATASET_MOST) continue;
    char at[64];
    if (columns > 0)
      snprintf(at, sizeof at, "%zu, %zu", i / columns, i % columns);
    else
      snprintf(at, sizeof at, "%zu", i);
    return status_set(STATUS_INPUT,
                      "%s: %s[%s] is %g (indices from 0); every value must be finite and at most %g in size",
                      store_path(file), name, at, values[i], DATASET_MOST);
  }
  return STATUS_OK;
}

Status dataset_read_matrix(Arena *memory, StoreFile *file, const char *name, const char *row, int *rows,
                           int *columns, double **values) {
  size_t shape[2] = {SIZE_MAX, SIZE_MAX};
  TRY(store_shape(file, name, 2, shape));
  if (store_axis_is(file, name, 0, "dim") || store_axis_is(file, name, 1, row))
    return status_set(STATUS_INPUT, "%s: '%s' is transposed; its dimensions must be (%s, dim)",
                      store_path(file), name, row);
  TRY(check_axis(file, name, "first", shape[0]));
  TRY(check_axis(file, name, "second", shape[1]));
  if (shape[1] == 0) return status_set(STATUS_INPUT, "%s: '%s' has no columns", store_path(file), name);
  *rows = (int)shape[0];
  *columns = (int)shape[1];
  ALLOCATE(memory, *values, shape[0] * shape[1]);
  TRY(store_get_doubles(file, name, *values));
  return check_values(file, name, shape[0] * shape[1], shape[1], *values);
}

/* Computes to[columns, rows] = from[rows, columns]', in tiles that stay in the cache. */
static void transpose(int rows, int columns, const double *from, double *to) {
  enum { TILE = 32 };
  for (int i = 0; i < rows; i += TILE)
    for (int j = 0; j < columns; j += TILE)
      for (int b = j; b < columns && b < j + TILE; b++)
        for (int a = i; a < rows && a < i + TILE; a++)
          to[(size_t)b * (size_t)rows + (size_t)a] = from[(size_t)a * (size_t)columns + (size_t)b];
}

Status samples_check_spread(const char *path, const Samples *samples) {
  const double least = 1e-40;
  for (int i = 0; i < samples->d; i++) {
    const double *row = samples->theta + (size_t)i * (size_t)samples->n;
    int low = 0, high = 0;
    for (int j = 1; j < samples->n; j++) {
      if (row[j] < row[low]) low = j;
      if (row[j] > row[high]) high = j;
    }
    double spread = row[high] - row[low];
    if (spread > 0 && spread < least)
      return status_set(STATUS_INPUT,
                        "%s: coordinate %d of theta is between %g (sample %d) and %g (sample %d); where it "
                        "varies at all, it must by at least %g",
                        path, i + 1, row[low], low + 1, row[high], high + 1, least);
  }
  return STATUS_OK;
}

static Status take_samples(Arena *memory, const char *path, const Table *table, Samples *out) {
  *out = (Samples){.n = table->rows, .d = table->columns};
  ALLOCATE(memory, out->theta, (size_t)table->rows * (size_t)table->columns);
  transpose(table->rows, table->columns, table->values, out->theta);
  return samples_check_spread(path, out);
}

static Status read_netcdf_samples(Arena *memory, const char *path, Samples *out) {
  SCRATCH_ARENA(scratch);
  StoreFile *file;
  Table table;
  TRY(store_open(path, &file));
  const Status status =
      dataset_read_matrix(&scratch, file, "theta", "sample", &table.rows, &table.columns, &table.values);
  store_abandon(file);
  TRY(status);
  if (table.rows == 0) return status_set(STATUS_INPUT, "%s: 'theta' has no samples", path);
  return take_samples(memory, path, &table, out);
}

Status dataset_read_samples(Arena *memory, const char *path, Samples *out) {
  Table table;
  if (store_is_netcdf(path)) return read_netcdf_samples(memory, path, out);
  TRY(read_csv(path, CSV_NO_HEADER, &table));
  const Status status = take_samples(memory, path, &table, out);
  free(table.values);
  return status;
}

/* Reads y(observation) of an open file beside the matrix x. */
static Status read_rewards(Arena *memory, StoreFile *file, int rows, double **rewards) {
  size_t shape[1] = {(size_t)rows};
  TRY(store_shape(file, "y", 1, shape));
  ALLOCATE(memory, *rewards, rows);
  TRY(store_get_doubles(file, "y", *rewards));
  return check_values(file, "y", (size_t)rows, 0, *rewards);
}

static Status take_observations(Arena *memory, const Table *table, Observations *out) {
  const size_t rows = (size_t)table->rows, columns = (size_t)table->columns, d = columns - 1;
  *out = (Observations){.rows = table->rows, .d = (int)d};
  ALLOCATE(memory, out->features, rows * d);
  ALLOCATE(memory, out->rewards, rows);
  for (size_t i = 0; i < rows; i++) {
    memcpy(out->features + i * d, table->values + i * columns, d * sizeof *table->values);
    out->rewards[i] = table->values[i * columns + d];
  }
  return STATUS_OK;
}

Status dataset_read_observations(Arena *memory, const char *path, Observations *out) {
  StoreFile *file;
  Table table;
  if (!store_is_netcdf(path)) {
    TRY(read_csv(path, CSV_X_Y_HEADER, &table));
    const Status status = take_observations(memory, &table, out);
    free(table.values);
    return status;
  }
  TRY(store_open(path, &file));
  Status status = dataset_read_matrix(memory, file, "x", "observation", &out->rows, &out->d, &out->features);
  if (status == STATUS_OK) status = read_rewards(memory, file, out->rows, &out->rewards);
  store_abandon(file);
  return status;
}

static Status read_netcdf_table(Arena *memory, const char *path, RewardTable *out) {
  StoreFile *file;
  int rows = 0;
  TRY(store_open(path, &file));
  Status status = dataset_read_matrix(memory, file, "context", "event", &out->rows, &out->d, &out->context);
  if (status == STATUS_OK)
    status = dataset_read_matrix(memory, file, "reward", "event", &rows, &out->arms, &out->reward);
  store_abandon(file);
  if (status != STATUS_OK || rows == out->rows) return status;
  return status_set(STATUS_INPUT, "%s: 'context' has %d events, 'reward' %d", path, out->rows, rows);
}

/* Takes the last column of a CSV table, of lines from 2 on, for the class that is right. */
static Status take_classes(Arena *memory, const char *path, const Table *table, RewardTable *out) {
  enum { MOST = 10000 };
  const size_t rows = (size_t)table->rows, columns = (size_t)table->columns, d = columns - 1;
  *out = (RewardTable){.rows = table->rows, .d = (int)d};
  for (size_t i = 0; i < rows; i++) {
    const double class = table->values[i * columns + d];
    if (!(class >= 0 && class < MOST && class == floor(class)))
      return status_set(STATUS_INPUT, "%s, line %zu: class %g is not a whole number from 0 to %d", path,
                        i + 2, class, MOST - 1);
    if (class >= out->arms) out->arms = (int)class + 1;
  }
  ALLOCATE(memory, out->context, rows * d);
  ALLOCATE(memory, out->reward, rows * (size_t)out->arms);
  for (size_t i = 0; i < rows; i++) {
    memcpy(out->context + i * d, table->values + i * columns, d * sizeof *table->values);
    out->reward[i * (size_t)out->arms + (size_t)table->values[i * columns + d]] = 1;
  }
  return STATUS_OK;
}

static Status read_csv_table(Arena *memory, const char *path, RewardTable *out) {
  Table table;
  TRY(read_csv(path, CSV_X_CLASS_HEADER, &table));
  const Status status = take_classes(memory, path, &table, out);
  free(table.values);
  return status;
}

Status dataset_read_table(Arena *memory, const char *path, RewardTable *out) {
  TRY(store_is_netcdf(path) ? read_netcdf_table(memory, path, out) : read_csv_table(memory, path, out));
  if (out->rows >= 1 && out->arms >= 2) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: %d events and %d arms; a table has at least one event and two arms",
                    path, out->rows, out->arms);
}
