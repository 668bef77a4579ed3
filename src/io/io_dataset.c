#include "io/io_dataset.h"

#include "io/csv_fields.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables of numbers in CSV files */

/* What follows x1,...,xd in the header of each form. */
static const CsvHeader headers[] = {
    [CSV_X_Y_HEADER] = {.last = (const char *const[]){"y", NULL}, .needed = 1, .most = INT_MAX},
    [CSV_X_CLASS_HEADER] = {.last = (const char *const[]){"class", NULL}, .needed = 1, .most = INT_MAX},
    [CSV_EVENT_HEADER] = {.last = (const char *const[]){"arm", "reward", "propensity", "target", NULL},
                          .needed = 3,
                          .most = INT_MAX,
                          .each = "available"}};

/* How the values of a table are written. */
typedef struct {
  bool line, column; /* line 1, column 1: all of digits alone */
  bool whole; /* the others: all whole numbers */
} Written;

/* Notes how the current field is written. */
static void io_dataset_note_writing(const CsvReader *reader, bool first_line, Written *written) {
  const bool digits = strspn(reader->field, "0123456789") == reader->length;
  if (first_line) written->line &= digits;
  if (reader->column == 1) written->column &= digits;
  if (!first_line && reader->column > 1)
    written->whole &= strspn(reader->field, "+-0123456789") == reader->length;
}

/* Returns whether x[n], whose entries are `stride` apart, are k, k + 1, k + 2, ... */
static bool io_dataset_counts(int n, size_t stride, const double *x) {
  int i = 1;
  while (i < n && x[(size_t)i * stride] == x[0] + i) i++;
  return i == n;
}

static int compare_values(const void *a, const void *b) {
  const double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

/* Finds whether column 1, which has only whole numbers, is the index of a data frame: it counts the lines, or
 * it tells many of them apart while the other columns have other numbers. */
static Status io_dataset_is_index(const Table *table, bool whole, bool *out) {
  enum { COUNTED = 3, SHUFFLED = 10 };
  SCRATCH_ARENA(scratch);
  const int rows = table->rows, columns = table->columns;
  double *sorted;
  *out = columns > 1 && rows >= COUNTED && io_dataset_counts(rows, (size_t)columns, table->values);
  if (*out || columns == 1 || rows < SHUFFLED || whole) return STATUS_OK;
  ALLOCATE(&scratch, sorted, rows);
  for (int i = 0; i < rows; i++) sorted[i] = table->values[(size_t)i * (size_t)columns];
  qsort(sorted, (size_t)rows, sizeof *sorted, compare_values);
  *out = true;
  for (int i = 1; i < rows; i++) *out = *out && sorted[i] != sorted[i - 1];
  return STATUS_OK;
}

/* Refuses a table without a header whose first line or column is the header or the index of a data frame. */
static Status io_dataset_check_frame(const char *path, const Table *table, const Written *written) {
  const double first = table->values[0];
  const bool counted = written->line && io_dataset_counts(table->columns, 1, table->values);
  const bool from_0 = first == 0 && (table->columns > 1 || !written->column),
             from_1 = first == 1 && table->columns > 1 && !written->whole;
  const char *line = table->columns == 1 ? "0" : from_0 ? "0,1,..." : "1,2,...";
  bool index = false;
  if (counted && (from_0 || from_1))
    return status_set(STATUS_INPUT,
                      "%s, line 1 reads %s: this is the header of a data frame, which would be taken for a "
                      "sample; leave it out (pandas: header=False) or, if it is a sample, write it with "
                      "decimal points",
                      path, line);
  if (written->column) TRY(io_dataset_is_index(table, written->whole, &index));
  if (!index) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "%s: column 1 has the whole numbers %.0f, %.0f, %.0f, ..., each once: this is the index of a "
      "data frame, which would be taken for a dimension; leave it out (pandas: index=False) or, if "
      "it is a dimension, write it with decimal points",
      path, first, table->values[table->columns], table->values[2 * table->columns]);
}

/* Reports a field of line 1 that is not a number. */
static Status io_dataset_refuse_header(const CsvReader *reader, Status status) {
  char sentence[512];
  const char first = reader->field[0];
  if (first != '\0' && first != '"' && !isalpha((unsigned char)first)) return status;
  snprintf(sentence, sizeof sentence, "%s", status_message());
  return status_set(status,
                    "%s; a file of samples has neither a header nor an index (pandas: header=False, "
                    "index=False)",
                    sentence);
}

/* Appends one line of numbers, none if it is blank, to the *count values of the table. table->columns is the
 * number per line, or 0 if this first line sets it. */
static Status io_dataset_read_csv_row(Arena *memory, CsvReader *reader, Table *table, size_t *count,
                                      Written *written) {
  int *columns = &table->columns;
  const bool first_line = *columns == 0;
  for (reader->column = 1;; reader->column++) {
    TRY(csv_read_field(reader));
    bool last = reader->end != CSV_END_COMMA;
    if (reader->column == 1 && last && reader->length == 0) return STATUS_OK;
    GROW(memory, table->values, *count);
    const Status status = csv_number(reader, &table->values[(*count)++]);
    if (status != STATUS_OK) return first_line ? io_dataset_refuse_header(reader, status) : status;
    io_dataset_note_writing(reader, first_line, written);
    if (*columns > 0 && (last ? reader->column != *columns : reader->column == *columns))
      return status_set(STATUS_INPUT, "%s, line %ld: %s values than the %d in line 1", reader->file->path,
                        reader->line, last ? "fewer" : "more", *columns);
    if (last) break;
    if (reader->column == INT_MAX) return CSV_FIELD_ERROR(reader, "too many columns");
  }
  *columns = (int)reader->column;
  return STATUS_OK;
}

Status io_dataset_csv_parse(Arena *memory, GzipFile *file, CsvForm form, Table *table) {
  SCRATCH_ARENA(scratch);
  SCOPED(fenv_t, environment, csv_trap_again);
  feholdexcept(&environment);
  CsvReader *reader;
  CsvColumns header = {0};
  Written written = {true, true, true};
  size_t count = 0;
  *table = (Table){0};
  ALLOCATE(&scratch, reader, 1);
  TRY(csv_begin(file, reader));
  if (form != CSV_NO_HEADER) TRY(csv_read_header(reader, &headers[form], &header));
  *table = (Table){.columns = header.columns, .others = header.others, .each = header.each};
  while (reader->end != CSV_END_FILE) {
    const size_t before = count;
    reader->line++;
    TRY(io_dataset_read_csv_row(memory, reader, table, &count, &written));
    const bool blank = count == before;
    TRY(csv_check_blank(reader, blank));
    if (blank) continue;
    if (table->rows == INT_MAX)
      return status_set(STATUS_INPUT, "%s has more than %d lines", reader->file->path, INT_MAX);
    table->rows++;
  }
  if (form != CSV_NO_HEADER) return STATUS_OK;
  if (table->rows == 0) return status_set(STATUS_INPUT, "%s is empty", reader->file->path);
  return io_dataset_check_frame(file->path, table, &written);
}

static Status io_dataset_read_csv(Arena *memory, const char *path, CsvForm form, Table *table) {
  SCOPED(GzipFile, file, gzip_close);
  TRY(gzip_open(path, &file));
  return io_dataset_csv_parse(memory, &file, form, table);
}

/* ---- NetCDF */

static Status check_axis(StoreFile *file, const char *name, const char *axis, size_t length) {
  if (length <= INT_MAX) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: the %s axis of '%s' is too long (%zu)", store_path(file), axis, name,
                    length);
}

/* Checks the values of a NetCDF variable [count / columns, columns], or [count] if `columns` is 0. */
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
                      "%s: %s[%s] is %g%s (indices from 0); every value must be finite and at most %g in "
                      "size",
                      store_path(file), name, at, values[i], isnan(values[i]) ? STORE_NAN : "", DATASET_MOST);
  }
  return STATUS_OK;
}

static const char *const theta_axes[] = {"sample", "dim"}, *const x_axes[] = {"observation", "dim"},
                         *const context_axes[] = {"event", "dim"}, *const reward_axes[] = {"event", "arm"};

Status io_dataset_read_matrix(Arena *memory, StoreFile *file, const char *name, const char *const *axes,
                              int *rows, int *columns, double **values) {
  size_t shape[2] = {SIZE_MAX, SIZE_MAX};
  TRY(store_shape(file, name, 2, shape));
  if (store_axis_is(file, name, 0, axes[1]) || store_axis_is(file, name, 1, axes[0]))
    return status_set(STATUS_INPUT, "%s: '%s' is transposed; its dimensions must be (%s, %s)",
                      store_path(file), name, axes[0], axes[1]);
  TRY(check_axis(file, name, "first", shape[0]));
  TRY(check_axis(file, name, "second", shape[1]));
  if (shape[1] == 0) return status_set(STATUS_INPUT, "%s: '%s' has no columns", store_path(file), name);
  *rows = (int)shape[0];
  *columns = (int)shape[1];
  ALLOCATE(memory, *values, shape[0] * shape[1]);
  TRY(store_get_doubles(file, name, *values));
  return check_values(file, name, shape[0] * shape[1], shape[1], *values);
}

void io_dataset_transpose(int rows, int columns, const double *from, double *to) {
  enum { TILE = 32 };
  for (int i = 0; i < rows; i += TILE)
    for (int j = 0; j < columns; j += TILE)
      for (int b = j; b < columns && b < j + TILE; b++)
        for (int a = i; a < rows && a < i + TILE; a++)
          to[(size_t)b * (size_t)rows + (size_t)a] = from[(size_t)a * (size_t)columns + (size_t)b];
}

Status io_dataset_check_spread(const char *path, const Samples *samples) {
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
                        "%s: coordinate %d of theta is between %g (sample %d) and %g (sample %d); if it "
                        "varies at all, it must vary by at least %g",
                        path, i + 1, row[low], low + 1, row[high], high + 1, least);
  }
  return STATUS_OK;
}

Status io_dataset_read_samples(Arena *memory, const char *path, Samples *out) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, file, store_close);
  Table table;
  if (store_is_netcdf(path)) {
    TRY(store_open(path, &file));
    TRY(io_dataset_read_matrix(&scratch, file, "theta", theta_axes, &table.rows, &table.columns,
                               &table.values));
    if (table.rows == 0) return status_set(STATUS_INPUT, "%s: 'theta' has no samples", path);
  } else {
    TRY(io_dataset_read_csv(&scratch, path, CSV_NO_HEADER, &table));
  }
  *out = (Samples){.n = table.rows, .d = table.columns};
  ALLOCATE(memory, out->theta, (size_t)table.rows * (size_t)table.columns);
  io_dataset_transpose(table.rows, table.columns, table.values, out->theta);
  return io_dataset_check_spread(path, out);
}

/* Reads the variable NAME(row) of an open file into (*values)[rows]. */
static Status read_column(Arena *memory, StoreFile *file, const char *name, int rows, double **values) {
  size_t shape[1] = {(size_t)rows};
  TRY(store_shape(file, name, 1, shape));
  ALLOCATE(memory, *values, rows);
  TRY(store_get_doubles(file, name, *values));
  return check_values(file, name, (size_t)rows, 0, *values);
}

/* A CSV table in three parts: x[rows, d], the columns with a name, last[rows, others], and those with a
 * number, each[rows, count]. */
typedef struct {
  int rows, d, others, count;
  double *x, *last, *each;
} CsvParts;

static Status read_csv_parts(Arena *memory, const char *path, CsvForm form, CsvParts *out) {
  SCRATCH_ARENA(scratch);
  Table table;
  TRY(io_dataset_read_csv(&scratch, path, form, &table));
  const size_t others = (size_t)table.others, each = (size_t)table.each,
               left = (size_t)table.columns - others - each;
  *out = (CsvParts){.rows = table.rows, .d = (int)left, .others = table.others, .count = table.each};
  ALLOCATE(memory, out->x, (size_t)table.rows * left);
  ALLOCATE(memory, out->last, (size_t)table.rows * others);
  ALLOCATE(memory, out->each, (size_t)table.rows * each);
  for (size_t i = 0; i < (size_t)table.rows; i++) {
    const double *row = table.values + i * (size_t)table.columns;
    memcpy(out->x + i * left, row, left * sizeof *row);
    memcpy(out->last + i * others, row + left, others * sizeof *row);
    memcpy(out->each + i * each, row + left + others, each * sizeof *row);
  }
  return STATUS_OK;
}

Status io_dataset_read_observations(Arena *memory, const char *path, Observations *out) {
  SCOPED(StoreFile *, file, store_close);
  CsvParts parts;
  if (!store_is_netcdf(path)) {
    TRY(read_csv_parts(memory, path, CSV_X_Y_HEADER, &parts));
    *out = (Observations){.rows = parts.rows, .d = parts.d, .features = parts.x, .rewards = parts.last};
    return STATUS_OK;
  }
  TRY(store_open(path, &file));
  TRY(io_dataset_read_matrix(memory, file, "x", x_axes, &out->rows, &out->d, &out->features));
  return read_column(memory, file, "y", out->rows, &out->rewards);
}

Status io_dataset_read_operator(Arena *memory, const char *path, int *rows, int *d, double **values) {
  SCOPED(StoreFile *, file, store_close);
  TRY(store_open(path, &file));
  TRY(io_dataset_read_matrix(memory, file, "a", x_axes, rows, d, values));
  if (*rows > 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: 'a' has no rows", path);
}

Status io_dataset_read_table(Arena *memory, const char *path, EventLog *out) {
  enum { MOST = 10000 };
  SCOPED(StoreFile *, file, store_close);
  int rows = 0;
  CsvParts parts;
  *out = (EventLog){0};
  if (store_is_netcdf(path)) {
    TRY(store_open(path, &file));
    TRY(io_dataset_read_matrix(memory, file, "context", context_axes, &out->rows, &out->d, &out->x));
    TRY(io_dataset_read_matrix(memory, file, "reward", reward_axes, &rows, &out->arms, &out->rewards));
    if (rows != out->rows)
      return status_set(STATUS_INPUT, "%s: 'context' has %d events, 'reward' %d", path, out->rows, rows);
  } else {
    TRY(read_csv_parts(memory, path, CSV_X_CLASS_HEADER, &parts));
    const double *class = parts.last; /* the first event is in line 2 */
    *out = (EventLog){.rows = parts.rows, .d = parts.d, .x = parts.x, .lacks_class_0 = true};
    for (int i = 0; i < out->rows; i++) {
      if (!(class[i] >= 0 && class[i] < MOST && class[i] == floor(class[i])))
        return status_set(STATUS_INPUT, "%s, line %d: class %g is not a whole number from 0 to %d", path,
                          i + 2, class[i], MOST - 1);
      if (class[i] >= out->arms) out->arms = (int)class[i] + 1;
      if (class[i] == 0) out->lacks_class_0 = false;
    }
    ALLOCATE(memory, out->rewards, (size_t)out->rows * (size_t)out->arms);
    for (int i = 0; i < out->rows; i++) out->rewards[(size_t)i * (size_t)out->arms + (size_t) class[i]] = 1;
  }
  if (out->rows >= 1 && out->arms >= 2) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: %d events and %d arms; a table needs at least one event and two arms",
                    path, out->rows, out->arms);
}

/* Returns STATUS_INPUT about an event, with its line in a CSV file or its index in NetCDF. */
static Status event_error(const char *path, int event, const char *name, double value, const char *allowed) {
  const bool netcdf = store_is_netcdf(path);
  char text[32];
  snprintf(text, sizeof text, "%.6g", value);
  if (strtod(text, NULL) != value) snprintf(text, sizeof text, "%.17g", value); /* it may look allowed */
  return status_set(STATUS_INPUT, "%s, %s %d: %s is %s; allowed: %s", path,
                    netcdf ? "event (from 0)" : "line", netcdf ? event : event + 2, name, text, allowed);
}

/* Takes over available[rows, arms], as real numbers: they say which arms there were. */
static Status io_dataset_set_available(Arena *memory, const char *path, const double *available,
                                       EventLog *out) {
  const int arms = out->arms;
  ALLOCATE(memory, out->available, (size_t)out->rows * (size_t)arms);
  for (int e = 0; e < out->rows; e++, available += arms) {
    int own = 0;
    for (int k = 0; k < arms; k++) {
      char name[32];
      snprintf(name, sizeof name, "available of arm %d", k);
      if (available[k] != 0 && available[k] != 1) return event_error(path, e, name, available[k], "0 or 1");
      out->available[(size_t)e * (size_t)arms + (size_t)k] = available[k] == 1;
      own += available[k] == 1;
    }
    if (own == 0) return event_error(path, e, "the number of available arms", 0, "1 at least");
  }
  return STATUS_OK;
}

/* Reads which arms there were, if the log says so. */
static Status read_netcdf_available(Arena *memory, StoreFile *file, EventLog *out) {
  SCRATCH_ARENA(scratch);
  size_t shape[2] = {(size_t)out->rows, out->has_features ? (size_t)out->arms : SIZE_MAX};
  double *available;
  if (!store_has_variable(file, "available")) return STATUS_OK;
  TRY(store_shape(file, "available", 2, shape));
  TRY(store_axes(file, "available", 2, reward_axes));
  TRY(check_axis(file, "available", "second", shape[1]));
  out->arms = (int)shape[1];
  ALLOCATE(&scratch, available, shape[0] * shape[1]);
  TRY(store_get_doubles(file, "available", available));
  return io_dataset_set_available(memory, store_path(file), available, out);
}

/* Sets the features of arms that an event did not have to 0: they may be anything, also NAN. */
static void io_dataset_clear_features(EventLog *log) {
  const size_t rows = (size_t)log->rows, arms = (size_t)log->arms, d = (size_t)log->d;
  if (!log->available || !log->has_features) return;
  for (size_t i = 0; i < rows * arms; i++)
    if (!log->available[i]) memset(log->x + i * d, 0, d * sizeof *log->x);
}

/* Reads the probabilities of another policy, if the log has them: of all arms, or of the one played. */
static Status read_netcdf_target(Arena *memory, StoreFile *file, EventLog *out) {
  size_t shape[2] = {(size_t)out->rows, out->arms > 0 ? (size_t)out->arms : SIZE_MAX};
  int rows;
  if (!store_has_variable(file, "target")) return STATUS_OK;
  out->target_columns = 1;
  if (!store_axis_is(file, "target", 1, "arm"))
    return read_column(memory, file, "target", out->rows, &out->target);
  TRY(store_shape(file, "target", 2, shape));
  TRY(io_dataset_read_matrix(memory, file, "target", reward_axes, &rows, &out->target_columns, &out->target));
  out->arms = out->target_columns;
  return STATUS_OK;
}

/* Reads a NetCDF log; (*arm)[rows] are still real numbers. */
static Status read_netcdf_events(Arena *memory, const char *path, EventLog *out, double **arm) {
  static const char *const axes[] = {"event", "arm", "dim"};
  SCOPED(StoreFile *, file, store_close);
  TRY(store_open(path, &file));
  out->has_features = store_has_variable(file, "features");
  if (out->has_features) {
    size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    TRY(store_shape(file, "features", 3, shape));
    TRY(store_axes(file, "features", 3, axes));
    for (int i = 0; i < 3; i++) TRY(check_axis(file, "features", axes[i], shape[i]));
    out->rows = (int)shape[0];
    out->arms = (int)shape[1];
    out->d = (int)shape[2];
    if (out->arms == 0) return status_set(STATUS_INPUT, "%s: 'features' has no arms", path);
    const size_t entry = shape[1] * shape[2], count = shape[0] * entry;
    ALLOCATE(memory, out->x, count);
    TRY(store_get_doubles(file, "features", out->x));
    TRY(read_netcdf_available(memory, file, out));
    io_dataset_clear_features(out);
    TRY(check_values(file, "features", count, entry, out->x));
  } else {
    TRY(io_dataset_read_matrix(memory, file, "context", context_axes, &out->rows, &out->d, &out->x));
    TRY(read_netcdf_available(memory, file, out));
  }
  TRY(read_column(memory, file, "arm", out->rows, arm));
  TRY(read_column(memory, file, "reward", out->rows, &out->reward));
  TRY(read_column(memory, file, "propensity", out->rows, &out->propensity));
  TRY(read_netcdf_target(memory, file, out));
  return store_has_attribute(file, "noise") ? store_get_real_attribute(file, "noise", &out->noise)
                                            : STATUS_OK;
}

/* Checks the probabilities of another policy in an event. */
static Status io_dataset_check_target(const char *path, int event, const EventLog *log) {
  static const double ROUNDING = 1e-3; /* they may have been written with few digits */
  const int columns = log->target_columns;
  const double *probability = log->target + (size_t)event * (size_t)columns;
  const ArmSet arms = io_dataset_arms(log);
  double sum = 0;
  for (int k = 0; k < columns; k++) {
    char name[32];
    snprintf(name, sizeof name, columns > 1 ? "target of arm %d" : "target", k);
    if (!(probability[k] >= 0 && probability[k] <= 1))
      return event_error(path, event, name, probability[k], "a probability, from 0 to 1");
    if (columns > 1 && probability[k] > 0 && !arms_has(arms, event, k))
      return event_error(path, event, name, probability[k], "0, since this arm is not available");
    sum += probability[k];
  }
  if (columns == 1 || fabs(sum - 1) <= ROUNDING) return STATUS_OK;
  return event_error(path, event, "the sum of target over all arms", sum, "1, to within 0.001");
}

/* Checks propensities and arms, arm[rows] as real numbers, and converts the arms to integers. */
static Status io_dataset_check_events(Arena *memory, const char *path, const double *arm, EventLog *out) {
  enum { MOST = 10000 };
  char allowed[64];
  const int arms = out->arms > 0 ? out->arms : MOST;
  snprintf(allowed, sizeof allowed, "a whole number from 0 to %d", arms - 1);
  ALLOCATE(memory, out->arm, out->rows);
  for (int e = 0; e < out->rows; e++) {
    if (!(arm[e] >= 0 && arm[e] < arms && arm[e] == floor(arm[e])))
      return event_error(path, e, "arm", arm[e], allowed);
    if (!arms_has(io_dataset_arms(out), e, (int)arm[e]))
      return event_error(path, e, "arm", arm[e], "an arm that is available in this event");
    if (!(out->propensity[e] > 0 && out->propensity[e] <= 1))
      return event_error(path, e, "propensity", out->propensity[e], "above 0 and at most 1");
    if (out->target) TRY(io_dataset_check_target(path, e, out));
    out->arm[e] = (int)arm[e];
    if (out->arm[e] >= out->arms) out->arms = out->arm[e] + 1;
  }
  if (out->rows >= 2 && out->d >= 1) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "%s: %d events in %d dimensions; a log needs at least two events and one dimension", path,
                    out->rows, out->d);
}

/* The last columns of a log in CSV, in this order. */
enum { ARM, REWARD, PROPENSITY, TARGET };

Status io_dataset_read_events(Arena *memory, const char *path, EventLog *out) {
  double *arm;
  CsvParts parts;
  *out = (EventLog){0};
  if (store_is_netcdf(path)) {
    TRY(read_netcdf_events(memory, path, out, &arm));
  } else {
    TRY(read_csv_parts(memory, path, CSV_EVENT_HEADER, &parts));
    const bool target = parts.others > TARGET;
    *out = (EventLog){
        .rows = parts.rows, .d = parts.d, .arms = parts.count, .x = parts.x, .target_columns = target};
    if (parts.count > 0) TRY(io_dataset_set_available(memory, path, parts.each, out));
    ALLOCATE_ARRAYS(memory, out->rows, &arm, &out->reward, &out->propensity);
    if (target) ALLOCATE(memory, out->target, out->rows);
    for (int i = 0; i < out->rows; i++) {
      const double *row = parts.last + (size_t)i * (size_t)parts.others;
      arm[i] = row[ARM];
      out->reward[i] = row[REWARD];
      out->propensity[i] = row[PROPENSITY];
      if (target) out->target[i] = row[TARGET];
    }
  }
  return io_dataset_check_events(memory, path, arm, out);
}
