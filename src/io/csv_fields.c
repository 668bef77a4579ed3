#include "io/csv_fields.h"

#include "core/numeral.h"
#include "io/input.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Returns whether there is a byte left, after reading more of the file if necessary. */
static bool csv_refill_buffer(CsvReader *reader) {
  if (reader->position < reader->filled) return true;
  reader->position = 0;
  reader->failed = gzip_read(reader->file, reader->buffer, CSV_BUFFER_SIZE, &reader->filled);
  return reader->failed == STATUS_OK && reader->filled > 0;
}

static bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\r'; }

enum { CSV_SHOWN_SIZE = 40 /* characters of a bad field shown in a message */ };

/* Copies the current field to `out` in a form fit for a message, and returns `out`. */
static const char *csv_shown(const CsvReader *reader, char out[CSV_SHOWN_SIZE + 4]) {
  size_t n = reader->length < CSV_SHOWN_SIZE ? reader->length : CSV_SHOWN_SIZE;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)reader->field[i];
    out[i] = (char)(c < ' ' || c == 127 ? '?' : c);
  }
  strcpy(out + n, n < reader->length ? "..." : "");
  return out;
}

static bool csv_field_is(const CsvReader *reader, const char *text) {
  return reader->length == strlen(text) && memcmp(reader->field, text, reader->length) == 0;
}

Status csv_read_field(CsvReader *reader) {
  size_t length = 0;
  reader->end = CSV_END_FILE;
  while (reader->end == CSV_END_FILE && csv_refill_buffer(reader)) {
    const unsigned char *from = reader->buffer + reader->position, *stop = reader->buffer + reader->filled,
                        *to = from;
    while (to < stop && *to != ',' && *to != '\n') to++;
    reader->position = (size_t)(to - reader->buffer);
    if (to < stop) {
      reader->end = *to == ',' ? CSV_END_COMMA : CSV_END_LINE;
      reader->position++;
    }
    while (length == 0 && from < to && is_blank(*from)) from++;
    if (length + (size_t)(to - from) > CSV_FIELD_SIZE)
      return CSV_FIELD_ERROR(reader, "more than %d characters without a comma", CSV_FIELD_SIZE);
    memcpy(reader->field + length, from, (size_t)(to - from));
    length += (size_t)(to - from);
  }
  TRY(reader->failed);
  while (length > 0 && is_blank(reader->field[length - 1])) length--;
  reader->field[length] = '\0';
  reader->length = length;
  return STATUS_OK;
}

/* Reports why the current field is not a finite number. */
static Status csv_fields_refuse(const CsvReader *reader) {
  char text[CSV_SHOWN_SIZE + 4];
  static const char *const words[] = {"nan", "inf", "infinity"};
  const char *word = reader->field + (reader->field[0] == '+' || reader->field[0] == '-');
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasecmp(word, words[i]) == 0)
      return CSV_FIELD_ERROR(reader, "'%s' is not finite", csv_shown(reader, text));
  if (reader->length == 0) return CSV_FIELD_ERROR(reader, "the value is missing");
  if (strpbrk(reader->field, "\"'"))
    return CSV_FIELD_ERROR(reader, "quotes are not allowed: %s", csv_shown(reader, text));
  return CSV_FIELD_ERROR(reader, "'%s' is not a number (values are decimal numbers separated by commas)",
                         csv_shown(reader, text));
}

Status csv_number(const CsvReader *reader, double *value) {
  char *end;
  if (reader->length == 0 || strspn(reader->field, "+-.0123456789eE") != reader->length)
    return csv_fields_refuse(reader);
  *value = numeral_read(reader->field, &end);
  if (end != reader->field + reader->length) return csv_fields_refuse(reader);
  char text[CSV_SHOWN_SIZE + 4];
  if (fabs(*value) <= DATASET_MOST) return STATUS_OK;
  return CSV_FIELD_ERROR(reader, "'%s' is too large; values are at most %g in size", csv_shown(reader, text),
                         DATASET_MOST);
}

Status csv_begin(GzipFile *file, CsvReader *reader) {
  reader->file = file;
  reader->end = CSV_END_LINE;
  csv_refill_buffer(reader);
  TRY(reader->failed);
  const char *kind = input_kind(reader->filled, reader->buffer);
  if (kind) return status_set(STATUS_INPUT, "%s: this is %s; CSV files are text in UTF-8", file->path, kind);
  if (reader->filled >= 3 && memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0) reader->position = 3;
  return STATUS_OK;
}

/* ---- texts */

/* Returns the current byte, or -1 at the end of the file. */
static int csv_peek_byte(CsvReader *reader) {
  return csv_refill_buffer(reader) ? reader->buffer[reader->position] : -1;
}

static Status csv_append_byte(CsvReader *reader, int c) {
  if (reader->length == CSV_FIELD_SIZE)
    return CSV_FIELD_ERROR(reader, "a text of more than %d characters", CSV_FIELD_SIZE);
  reader->field[reader->length++] = (char)c;
  return STATUS_OK;
}

/* Reads from just after the opening quote through the closing one, and adds the line ends to *lines. */
static Status csv_read_quoted(CsvReader *reader, long *lines) {
  for (int c; (c = csv_peek_byte(reader)) >= 0;) {
    reader->position++;
    if (c == '"') {
      if (csv_peek_byte(reader) != '"') return STATUS_OK;
      reader->position++;
    }
    *lines += c == '\n';
    TRY(csv_append_byte(reader, c));
  }
  TRY(reader->failed);
  return CSV_FIELD_ERROR(reader, "a quoted text has no closing quote");
}

/* Removes the blanks around the current field. */
static void csv_strip_blanks(CsvReader *reader) {
  size_t first = 0;
  while (reader->length > 0 && is_blank(reader->field[reader->length - 1])) reader->length--;
  while (first < reader->length && is_blank(reader->field[first])) first++;
  reader->length -= first;
  memmove(reader->field, reader->field + first, reader->length);
}

Status csv_read_text(CsvReader *reader) {
  long lines = 0;
  int c;
  reader->length = 0;
  if (csv_peek_byte(reader) == '"') {
    reader->position++;
    TRY(csv_read_quoted(reader, &lines));
  } else {
    while ((c = csv_peek_byte(reader)) >= 0 && c != ',' && c != '\n') {
      if (c == '"')
        return CSV_FIELD_ERROR(reader,
                               "a quote inside a text; put the whole text in quotes, and double the quote");
      TRY(csv_append_byte(reader, c));
      reader->position++;
    }
  }
  csv_strip_blanks(reader);
  reader->field[reader->length] = '\0';
  const unsigned char *text = (const unsigned char *)reader->field;
  for (size_t i = 0, step; i < reader->length; i += step) {
    step = input_utf8_length(reader->length - i, text + i);
    if (step == 0)
      return CSV_FIELD_ERROR(reader, "byte %zu of the text, 0x%02x, is not UTF-8", i + 1, text[i]);
  }
  while ((c = csv_peek_byte(reader)) == '\r') reader->position++;
  if (c >= 0 && c != ',' && c != '\n')
    return CSV_FIELD_ERROR(reader, "a quoted text continues after its closing quote");
  reader->end = c < 0 ? CSV_END_FILE : c == ',' ? CSV_END_COMMA : CSV_END_LINE;
  reader->position += c >= 0;
  TRY(reader->failed);
  reader->line += lines;
  return STATUS_OK;
}

/* ---- headers */

enum { CSV_FORM_SIZE = 128, CSV_NAME_SIZE = 24 };

/* Writes what a header must read. */
static void csv_show_header(const CsvHeader *header, char form[CSV_FORM_SIZE]) {
  const char *first = header->first;
  int length = snprintf(form, CSV_FORM_SIZE, "%s%sx1,...,xd", first ? first : "", first ? "," : "");
  for (int i = 0; header->last[i]; i++)
    length += snprintf(form + length, (size_t)(CSV_FORM_SIZE - length), i < header->needed ? ",%s" : "[,%s]",
                       header->last[i]);
  if (header->each)
    snprintf(form + length, (size_t)(CSV_FORM_SIZE - length), "[,%s0,%s1,...]", header->each, header->each);
}

Status csv_read_header(CsvReader *reader, const CsvHeader *header, CsvColumns *out) {
  const char *first = header->first, *const *last = header->last;
  char form[CSV_FORM_SIZE], expected[CSV_NAME_SIZE], each[CSV_NAME_SIZE], text[CSV_SHOWN_SIZE + 4];
  *out = (CsvColumns){0};
  csv_show_header(header, form);
  for (reader->line = reader->column = 1;; reader->column++) {
    TRY(csv_read_text(reader));
    const bool at_end = reader->end != CSV_END_COMMA;
    if (reader->column == 1 && at_end && reader->length == 0)
      return CSV_FIELD_ERROR(reader, "there is no header; it must read %s", form);
    const long number = first ? reader->column - 1 : reader->column;
    const char *next = out->each == 0 ? last[out->others] : NULL; /* of `last` */
    if (number > 0)
      snprintf(expected, sizeof expected, "x%ld", number);
    else
      snprintf(expected, sizeof expected, "%s", first ? first : "");
    snprintf(each, sizeof each, "%s%d", header->each ? header->each : "", out->each);
    if (number > 1 && next && csv_field_is(reader, next))
      out->others++;
    else if (header->each && out->others >= header->needed && csv_field_is(reader, each))
      out->each++;
    else if (out->others > 0)
      return CSV_FIELD_ERROR(reader, "the header has '%s' where '%s' is expected (it must read %s)",
                             csv_shown(reader, text), next ? next : each, form);
    else if (!csv_field_is(reader, expected))
      return CSV_FIELD_ERROR(reader, "the header has '%s' where '%s'%s%s%s is expected (it must read %s)",
                             csv_shown(reader, text), expected, number > 1 ? " or '" : "",
                             number > 1 ? last[0] : "", number > 1 ? "'" : "", form);
    out->columns = (int)reader->column;
    if (at_end && out->others >= header->needed) return STATUS_OK;
    next = last[out->others];
    if (!next && !header->each)
      return CSV_FIELD_ERROR(reader, "'%s' must be the last column of the header %s", last[out->others - 1],
                             form);
    if (at_end) return CSV_FIELD_ERROR(reader, "the header must end with the column '%s' (%s)", next, form);
    if (reader->column > header->most)
      return CSV_FIELD_ERROR(reader, "more than %d dimensions", header->most);
  }
}

Status csv_check_blank(CsvReader *reader, bool blank) {
  if (blank && reader->blank_line == 0) reader->blank_line = reader->line;
  if (blank || reader->blank_line == 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s, line %ld is blank, but more lines follow", reader->file->path,
                    reader->blank_line);
}
