#include "io/dataset_csv.h"

#include "core/arena.h"
#include "core/memory.h"
#include "io/csv_fields.h"

#include <fenv.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What follows x1,...,xd in the header of a form. */
enum { CSV_LAST = 3 };
static const char *const last_columns[][CSV_LAST + 1] = {
    [CSV_X_Y_HEADER] = {"y"},
    [CSV_X_CLASS_HEADER] = {"class"},
    [CSV_EVENT_HEADER] = {"arm", "reward", "propensity"}};

/* Writes "arm,reward,propensity". */
static void show_last(const char *const *names, size_t size, char *out) {
  out[0] = '\0';
  for (int i = 0; names[i]; i++)
    snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? "," : "", names[i]);
}

/* Reads the header x1,...,xd and the last names. */
static Status read_header(CsvReader *reader, const char *const *names, int *columns) {
  char all[64], text[CSV_SHOWN_SIZE + 4], expected[24];
  int found = 0; /* last names so far */
  show_last(names, sizeof all, all);
  for (reader->column = 1;; reader->column++) {
    TRY(csv_read_field(reader));
    const bool first = reader->column == 1, last = reader->end != CSV_END_COMMA;
    if (first && last && reader->length == 0)
      return CSV_FIELD_ERROR(reader, "there is no header; it must read x1,...,xd,%s", all);
    snprintf(expected, sizeof expected, "x%ld", reader->column);
    if (!first && csv_field_is(reader, names[found]))
      found++;
    else if (found > 0 || !csv_field_is(reader, expected))
      return CSV_FIELD_ERROR(
          reader, "the header has '%s' where '%s'%s%s%s is expected (it must read x1,...,xd,%s)",
          csv_shown(reader, text), found > 0 ? names[found] : expected, first || found > 0 ? "" : " or '",
          first || found > 0 ? "" : names[0], first || found > 0 ? "" : "'", all);
    *columns = (int)reader->column;
    if (!names[found] && last) return STATUS_OK;
    if (!names[found])
      return CSV_FIELD_ERROR(reader, "'%s' must be the last column of the header x1,...,xd,%s",
                             names[found - 1], all);
    if (last)
      return CSV_FIELD_ERROR(reader, "the header must end with the column '%s' (x1,...,xd,%s)", names[found],
                             all);
    if (reader->column == INT_MAX) return CSV_FIELD_ERROR(reader, "too many columns");
  }
}

/* A growing array of numbers. */
typedef struct {
  double *values;
  size_t count, capacity;
} Numbers;

static Status append(Numbers *numbers, double value) {
  if (numbers->count == numbers->capacity) {
    size_t capacity = numbers->capacity > 0 ? 2 * numbers->capacity : 1024;
    double *larger;
    NEW(larger, capacity);
    if (numbers->count > 0) memcpy(larger, numbers->values, numbers->count * sizeof *larger);
    free(numbers->values);
    numbers->values = larger;
    numbers->capacity = capacity;
  }
  numbers->values[numbers->count++] = value;
  return STATUS_OK;
}

/* Reads one line of numbers; *columns is their number, or 0 when the first line sets it. *blank: the line
 * held nothing. */
static Status read_row(CsvReader *reader, int *columns, Numbers *numbers, bool *blank) {
  *blank = false;
  for (reader->column = 1;; reader->column++) {
    TRY(csv_read_field(reader));
    bool last = reader->end != CSV_END_COMMA;
    if (reader->column == 1 && last && reader->length == 0) {
      *blank = true;
      return STATUS_OK;
    }
    double value = 0;
    TRY(csv_number(reader, &value));
    TRY(append(numbers, value));
    if (*columns > 0 && (last ? reader->column != *columns : reader->column == *columns))
      return status_set(STATUS_INPUT, "%s, line %ld: %s values than the %d of line 1", reader->name,
                        reader->line, last ? "fewer" : "more", *columns);
    if (last) break;
    if (reader->column == INT_MAX) return CSV_FIELD_ERROR(reader, "too many columns");
  }
  *columns = (int)reader->column;
  return STATUS_OK;
}

static Status read_rows(CsvReader *reader, Table *table, Numbers *numbers) {
  long blank_line = 0;
  while (reader->end != CSV_END_FILE) {
    reader->line++;
    bool blank;
    TRY(read_row(reader, &table->columns, numbers, &blank));
    if (blank) {
      if (blank_line == 0) blank_line = reader->line;
      continue;
    }
    if (blank_line > 0)
      return status_set(STATUS_INPUT, "%s, line %ld is blank, but more lines follow", reader->name,
                        blank_line);
    if (table->rows == INT_MAX)
      return status_set(STATUS_INPUT, "%s has more than %d lines", reader->name, INT_MAX);
    table->rows++;
  }
  return STATUS_OK;
}

static Status parse(CsvReader *reader, CsvForm form, Table *table, Numbers *numbers) {
  csv_skip_byte_order_mark(reader);
  if (form != CSV_NO_HEADER) {
    reader->line = 1;
    TRY(read_header(reader, last_columns[form], &table->columns));
  }
  TRY(read_rows(reader, table, numbers));
  if (form == CSV_NO_HEADER && table->rows == 0) return status_set(STATUS_INPUT, "%s is empty", reader->name);
  return STATUS_OK;
}

Status dataset_csv_parse(FILE *stream, const char *name, CsvForm form, Table *table) {
  SCRATCH_ARENA(scratch);
  *table = (Table){0};
  CsvReader *reader;
  Numbers numbers = {0};
  ALLOCATE(&scratch, reader, 1);
  reader->stream = stream;
  reader->name = name;
  reader->end = CSV_END_LINE;
  /* A number that is too large is the user's error, to be reported, not to be trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  Status status = parse(reader, form, table, &numbers);
  fesetenv(&environment);
  if (status != STATUS_OK) {
    free(numbers.values);
    *table = (Table){0};
    return status;
  }
  table->values = numbers.values;
  return STATUS_OK;
}
