#include "io/dataset_csv.h"

#include "io/csv_fields.h"

#include <fenv.h>
#include <limits.h>
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
static Status dataset_csv_read_header(CsvReader *reader, const char *const *names, int *columns) {
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

/* Reads one line of numbers behind the `count` of the table; *columns is their number, or 0 when the first
 * line sets it. *blank: the line held nothing. */
static Status read_row(Arena *memory, CsvReader *reader, Table *table, size_t *count, bool *blank) {
  int *columns = &table->columns;
  *blank = false;
  for (reader->column = 1;; reader->column++) {
    TRY(csv_read_field(reader));
    bool last = reader->end != CSV_END_COMMA;
    if (reader->column == 1 && last && reader->length == 0) {
      *blank = true;
      return STATUS_OK;
    }
    GROW(memory, table->values, *count);
    TRY(csv_number(reader, &table->values[(*count)++]));
    if (*columns > 0 && (last ? reader->column != *columns : reader->column == *columns))
      return status_set(STATUS_INPUT, "%s, line %ld: %s values than the %d of line 1", reader->name,
                        reader->line, last ? "fewer" : "more", *columns);
    if (last) break;
    if (reader->column == INT_MAX) return CSV_FIELD_ERROR(reader, "too many columns");
  }
  *columns = (int)reader->column;
  return STATUS_OK;
}

static Status read_table_rows(Arena *memory, CsvReader *reader, Table *table) {
  long blank_line = 0;
  size_t count = 0;
  while (reader->end != CSV_END_FILE) {
    reader->line++;
    bool blank;
    TRY(read_row(memory, reader, table, &count, &blank));
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

static Status parse(Arena *memory, CsvReader *reader, CsvForm form, Table *table) {
  csv_skip_byte_order_mark(reader);
  if (form != CSV_NO_HEADER) {
    reader->line = 1;
    TRY(dataset_csv_read_header(reader, last_columns[form], &table->columns));
  }
  TRY(read_table_rows(memory, reader, table));
  if (form == CSV_NO_HEADER && table->rows == 0) return status_set(STATUS_INPUT, "%s is empty", reader->name);
  return STATUS_OK;
}

Status dataset_csv_parse(Arena *memory, FILE *stream, const char *name, CsvForm form, Table *table) {
  SCRATCH_ARENA(scratch);
  *table = (Table){0};
  CsvReader *reader;
  ALLOCATE(&scratch, reader, 1);
  reader->stream = stream;
  reader->name = name;
  reader->end = CSV_END_LINE;
  /* A number that is too large is the user's error, to be reported, not to be trapped. */
  fenv_t environment;
  feholdexcept(&environment);
  const Status status = parse(memory, reader, form, table);
  fesetenv(&environment);
  return status;
}
