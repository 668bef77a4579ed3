#include "io/logs_file.h"

#include "io/csv_fields.h"
#include "io/input.h"
#include "io/names.h"
#include "io/store.h"

#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>

/* ---- CSV */

typedef struct {
  CsvReader csv;
  const LogsSink *sink;
  Names names;
  int columns; /* task, x1 .. xd and y */
  double *x; /* [d] */
  double size; /* of the file, bytes */
} LogsReader;

/* Reads the numbers of a row, which follow its task. */
static Status read_numbers(LogsReader *reader, double *y) {
  CsvReader *csv = &reader->csv;
  const int columns = reader->columns;
  const long line = csv->line;
  for (csv->column = 2; csv->column <= columns; csv->column++) {
    if (csv->end != CSV_END_COMMA)
      return status_set(STATUS_INPUT, "%s, line %ld: %ld values, but the header has %d", csv->name, line,
                        csv->column - 1, columns);
    TRY(csv_read_field(csv));
    TRY(csv_number(csv, csv->column < columns ? &reader->x[csv->column - 2] : y));
  }
  if (csv->end == CSV_END_COMMA)
    return status_set(STATUS_INPUT, "%s, line %ld: more values than the %d in the header", csv->name, line,
                      columns);
  return STATUS_OK;
}

static Status logs_file_read_row(LogsReader *reader) {
  CsvReader *csv = &reader->csv;
  int task;
  double y = 0;
  if (csv->length == 0) return CSV_FIELD_ERROR(csv, "the name of the task is missing");
  TRY(names_number(&reader->names, csv->field, csv->length, &task));
  TRY(read_numbers(reader, &y));
  const Status status = reader->sink->row(reader->sink->context, task, reader->x, y);
  return status == STATUS_INPUT ? status_prefix(status, "%s, line %ld: ", csv->name, csv->line) : status;
}

static void logs_file_show_progress(LogsReader *reader, long row) {
  enum { EVERY = 1 << 14 };
  if (!reader->sink->progress || row % EVERY != 0) return;
  const long at = ftell(reader->csv.stream);
  if (at >= 0) reader->sink->progress(reader->sink->context, (double)at, reader->size);
}

static Status logs_file_read_opened(Arena *scratch, LogsReader *reader) {
  enum { MOST = 10000 /* dimensions */ };
  CsvReader *csv = &reader->csv;
  long rows = 0;
  TRY(csv_read_header(csv, "task", (const char *[]){"y", NULL}, MOST, &reader->columns));
  ALLOCATE(scratch, reader->x, reader->columns - 2);
  TRY(reader->sink->begin(reader->sink->context, reader->columns - 2));
  while (csv->end != CSV_END_FILE) {
    csv->line++;
    csv->column = 1;
    TRY(csv_read_text(csv));
    const bool blank = csv->length == 0 && csv->end != CSV_END_COMMA;
    TRY(csv_check_blank(csv, blank));
    if (blank) continue;
    TRY(logs_file_read_row(reader));
    logs_file_show_progress(reader, ++rows);
  }
  if (rows == 0) return status_set(STATUS_INPUT, "%s has a header, but no observations", csv->name);
  return STATUS_OK;
}

Status logs_csv_read(FILE *stream, const char *name, double size, const LogsSink *sink) {
  SCRATCH_ARENA(scratch);
  LogsReader *reader;
  ALLOCATE(&scratch, reader, 1);
  csv_begin(stream, name, &reader->csv);
  reader->sink = sink;
  reader->size = size;
  /* A number that is too large is the user's error: it is reported, not trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  const Status status = logs_file_read_opened(&scratch, reader);
  fesetenv(&environment);
  names_free(&reader->names);
  return status;
}

static Status logs_file_read_csv(const char *path, const LogsSink *sink) {
  SCOPED(FILE *, stream, input_close);
  struct stat info;
  TRY(input_stream(path, &stream));
  return logs_csv_read(stream, path, fstat(fileno(stream), &info) == 0 ? (double)info.st_size : 0, sink);
}

/* ---- NetCDF, in blocks of ROWS rows */

enum { ROWS = 1 << 14 };

typedef struct {
  StoreFile *file;
  const LogsSink *sink;
  Names names;
  size_t rows, d;
  double *x, *y; /* [ROWS, d], [ROWS] */
  int64_t *task; /* [ROWS] */
} Reader;

static Status check_value(const Reader *reader, const char *name, size_t row, double value) {
  if (isfinite(value) && fabs(value) <= DATASET_MOST) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "%s: %s of observation %zu (counted from 0) is %g; every value must be finite and at most "
      "%g in size",
      store_path(reader->file), name, row, value, DATASET_MOST);
}

static Status logs_file_take_row(Reader *reader, size_t first, size_t r) {
  const double *x = reader->x + r * reader->d;
  int number;
  for (size_t i = 0; i < reader->d; i++) TRY(check_value(reader, "x", first + r, x[i]));
  TRY(check_value(reader, "y", first + r, reader->y[r]));
  TRY(names_number(&reader->names, (const char *)&reader->task[r], sizeof *reader->task, &number));
  const Status status = reader->sink->row(reader->sink->context, number, x, reader->y[r]);
  return status == STATUS_INPUT
             ? status_prefix(status, "%s, observation %zu (counted from 0): ", store_path(reader->file),
                             first + r)
             : status;
}

static Status read_variable_rows(Reader *reader) {
  for (size_t first = 0; first < reader->rows; first += ROWS) {
    const size_t start[2] = {first, 0};
    const size_t count[2] = {reader->rows - first < ROWS ? reader->rows - first : ROWS, reader->d};
    TRY(store_get_int64s_part(reader->file, "task", start, count, reader->task));
    TRY(store_get_doubles_part(reader->file, "x", start, count, reader->x));
    TRY(store_get_doubles_part(reader->file, "y", start, count, reader->y));
    for (size_t r = 0; r < count[0]; r++) TRY(logs_file_take_row(reader, first, r));
    if (reader->sink->progress)
      reader->sink->progress(reader->sink->context, (double)(first + count[0]), (double)reader->rows);
  }
  return STATUS_OK;
}

static void reader_free(Reader *reader) { names_free(&reader->names); }

static Status logs_file_read_netcdf(const char *path, const LogsSink *sink) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, file, store_close);
  SCOPED(Reader, reader, reader_free);
  size_t shape[2] = {SIZE_MAX, SIZE_MAX};
  TRY(store_open(path, &file));
  TRY(store_shape(file, "x", 2, shape));
  TRY(store_axes(file, "x", 2, (const char *[]){"observation", "dim"}));
  TRY(store_shape(file, "task", 1, shape));
  TRY(store_shape(file, "y", 1, shape));
  if (shape[0] == 0 || shape[1] == 0 || shape[1] > INT_MAX)
    return status_set(STATUS_INPUT, "%s: 'x' has shape (%zu, %zu); there are no observations",
                      store_path(file), shape[0], shape[1]);
  reader = (Reader){.file = file, .sink = sink, .rows = shape[0], .d = shape[1]};
  ALLOCATE(&scratch, reader.x, ROWS * reader.d);
  ALLOCATE_ARRAYS(&scratch, ROWS, reader.y, reader.task);
  TRY(sink->begin(sink->context, (int)reader.d));
  return read_variable_rows(&reader);
}

Status logs_file_read(const char *path, const LogsSink *sink) {
  return store_is_netcdf(path) ? logs_file_read_netcdf(path, sink) : logs_file_read_csv(path, sink);
}
