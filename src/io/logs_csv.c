/* Logs of past tasks in CSV files. */
#include "io/csv_fields.h"
#include "io/logs_file.h"
#include "io/names.h"

#include <fenv.h>

#define FORM "task,x1,...,xd,y"

typedef struct {
  CsvReader csv;
  const LogsSink *sink;
  Names names;
  int d;
  double *x; /* [d] */
  double size; /* of the file, bytes */
} LogsReader;

/* Reads the dimension from the header. */
static Status logs_csv_read_header(CsvReader *csv, int *d) {
  enum { MOST = 10000 };
  for (csv->line = csv->column = 1;; csv->column++) {
    char text[CSV_SHOWN_SIZE + 4], expected[24] = "task";
    TRY(csv_read_text(csv));
    const bool first = csv->column == 1, last = csv->end != CSV_END_COMMA;
    if (first && last && csv->length == 0)
      return CSV_FIELD_ERROR(csv, "there is no header; it must read " FORM);
    if (!first) snprintf(expected, sizeof expected, "x%ld", csv->column - 1);
    if (csv->column > 2 && csv_field_is(csv, "y")) {
      if (!last) return CSV_FIELD_ERROR(csv, "'y' must be the last column of the header " FORM);
      *d = (int)csv->column - 2;
      return STATUS_OK;
    }
    if (!csv_field_is(csv, expected))
      return CSV_FIELD_ERROR(csv, "the header has '%s' where '%s'%s is expected (it must read " FORM ")",
                             csv_shown(csv, text), expected, csv->column > 2 ? " or 'y'" : "");
    if (last) return CSV_FIELD_ERROR(csv, "the header must end with the column 'y' (" FORM ")");
    if (csv->column > MOST) return CSV_FIELD_ERROR(csv, "more than %d dimensions", MOST);
  }
}

/* Reads the numbers of a row, behind its task. */
static Status read_numbers(LogsReader *reader, double *y) {
  CsvReader *csv = &reader->csv;
  const int columns = reader->d + 2;
  const long line = csv->line;
  for (csv->column = 2; csv->column <= columns; csv->column++) {
    if (csv->end != CSV_END_COMMA)
      return status_set(STATUS_INPUT, "%s, line %ld: %ld values, but the header has %d", csv->name, line,
                        csv->column - 1, columns);
    TRY(csv_read_field(csv));
    TRY(csv_number(csv, csv->column < columns ? &reader->x[csv->column - 2] : y));
  }
  if (csv->end == CSV_END_COMMA)
    return status_set(STATUS_INPUT, "%s, line %ld: more values than the %d of the header", csv->name, line,
                      columns);
  return STATUS_OK;
}

static Status read_row(LogsReader *reader) {
  CsvReader *csv = &reader->csv;
  int task;
  double y = 0;
  if (csv->length == 0) return CSV_FIELD_ERROR(csv, "the name of the task is missing");
  TRY(names_number(&reader->names, csv->field, csv->length, &task));
  TRY(read_numbers(reader, &y));
  const Status status = reader->sink->row(reader->sink->context, task, reader->x, y);
  return status == STATUS_INPUT ? status_prefix(status, "%s, line %ld: ", csv->name, csv->line) : status;
}

static void show_progress(LogsReader *reader, long row) {
  enum { EVERY = 1 << 14 };
  if (!reader->sink->progress || row % EVERY != 0) return;
  const long at = ftell(reader->csv.stream);
  if (at >= 0) reader->sink->progress(reader->sink->context, (double)at, reader->size);
}

static Status read_log_rows(LogsReader *reader) {
  CsvReader *csv = &reader->csv;
  long blank_line = 0, rows = 0;
  while (csv->end != CSV_END_FILE) {
    csv->line++;
    csv->column = 1;
    TRY(csv_read_text(csv));
    if (csv->length == 0 && csv->end != CSV_END_COMMA) {
      if (blank_line == 0) blank_line = csv->line;
      continue;
    }
    if (blank_line > 0)
      return status_set(STATUS_INPUT, "%s, line %ld is blank, but more lines follow", csv->name, blank_line);
    TRY(read_row(reader));
    show_progress(reader, ++rows);
  }
  if (rows == 0) return status_set(STATUS_INPUT, "%s has a header, but no observations", csv->name);
  return STATUS_OK;
}

static Status read_whole_file(Arena *scratch, LogsReader *reader) {
  csv_skip_byte_order_mark(&reader->csv);
  TRY(logs_csv_read_header(&reader->csv, &reader->d));
  ALLOCATE(scratch, reader->x, reader->d);
  TRY(reader->sink->begin(reader->sink->context, reader->d));
  return read_log_rows(reader);
}

Status logs_csv_read(FILE *stream, const char *name, double size, const LogsSink *sink) {
  SCRATCH_ARENA(scratch);
  LogsReader *reader;
  ALLOCATE(&scratch, reader, 1);
  reader->csv.stream = stream;
  reader->csv.name = name;
  reader->sink = sink;
  reader->size = size;
  /* A number that is too large is the user's error, to be reported, not to be trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  const Status status = read_whole_file(&scratch, reader);
  fesetenv(&environment);
  names_free(&reader->names);
  return status;
}
