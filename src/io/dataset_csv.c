#include "io/dataset_csv.h"

#include "core/arena.h"
#include "core/memory.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  BUFFER_SIZE = 1 << 16,
  FIELD_SIZE = 1024, /* exactly printed doubles are at most about 770 characters long */
  SHOWN_SIZE = 40 /* of a bad field, in a message */
};

typedef enum { END_COMMA, END_LINE, END_FILE } FieldEnd;

typedef struct {
  FILE *stream;
  const char *name;
  size_t position, filled; /* in the buffer */
  long line, column; /* of the present field, from 1 */
  size_t length; /* of the present field, blanks around it removed */
  FieldEnd end; /* what came after it */
  char field[FIELD_SIZE + 1]; /* NUL-terminated */
  unsigned char buffer[BUFFER_SIZE];
} Reader;

/* Is there a byte left? */
static bool refill(Reader *reader) {
  if (reader->position < reader->filled) return true;
  reader->filled = fread(reader->buffer, 1, BUFFER_SIZE, reader->stream);
  reader->position = 0;
  return reader->filled > 0;
}

static bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The present field as it can be shown in a message. */
static const char *shown(const Reader *reader, char out[SHOWN_SIZE + 4]) {
  size_t n = reader->length < SHOWN_SIZE ? reader->length : SHOWN_SIZE;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)reader->field[i];
    out[i] = (char)(c < ' ' || c == 127 ? '?' : c);
  }
  strcpy(out + n, n < reader->length ? "..." : "");
  return out;
}

static bool field_is(const Reader *reader, const char *text) {
  return reader->length == strlen(text) && memcmp(reader->field, text, reader->length) == 0;
}

#define FIELD_ERROR(reader, format, ...)                                                                     \
  status_set(STATUS_INPUT, "%s, line %ld, column %ld: " format, (reader)->name, (reader)->line,              \
             (reader)->column, ##__VA_ARGS__)

/* Read up to the next comma, line end or end of file. Callers set line and column before. */
static Status read_field(Reader *reader) {
  size_t length = 0;
  reader->end = END_FILE;
  while (reader->end == END_FILE && refill(reader)) {
    const unsigned char *from = reader->buffer + reader->position, *stop = reader->buffer + reader->filled,
                        *to = from;
    while (to < stop && *to != ',' && *to != '\n') to++;
    reader->position = (size_t)(to - reader->buffer);
    if (to < stop) {
      reader->end = *to == ',' ? END_COMMA : END_LINE;
      reader->position++;
    }
    while (length == 0 && from < to && is_blank(*from)) from++;
    if (length + (size_t)(to - from) > FIELD_SIZE)
      return FIELD_ERROR(reader, "more than %d characters without a comma", FIELD_SIZE);
    memcpy(reader->field + length, from, (size_t)(to - from));
    length += (size_t)(to - from);
  }
  if (ferror(reader->stream))
    return status_set(STATUS_FILE, "cannot read %s: %s", reader->name, strerror(errno));
  while (length > 0 && is_blank(reader->field[length - 1])) length--;
  reader->field[length] = '\0';
  reader->length = length;
  return STATUS_OK;
}

static bool is_quoted(const Reader *reader) {
  return memchr(reader->field, '"', reader->length) || memchr(reader->field, '\'', reader->length);
}

/* Why the present field is not a finite number. */
static Status refuse(const Reader *reader) {
  char text[SHOWN_SIZE + 4];
  static const char *const words[] = {"nan", "inf", "infinity"};
  const char *word = reader->field + (reader->field[0] == '+' || reader->field[0] == '-');
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasecmp(word, words[i]) == 0)
      return FIELD_ERROR(reader, "'%s' is not finite", shown(reader, text));
  if (reader->length == 0) return FIELD_ERROR(reader, "the value is missing");
  if (is_quoted(reader)) return FIELD_ERROR(reader, "quotes are not allowed: %s", shown(reader, text));
  return FIELD_ERROR(reader, "'%s' is not a number (values are decimal numbers separated by commas)",
                     shown(reader, text));
}

#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
/* The parts of a decimal number: text up to end = (-1)^negative digits 10^exponent. False when it does not
 * read so, or has more digits than 64 bits hold. */
static bool split_decimal(const char *text, const char *end, bool *negative, uint64_t *digits,
                          int *exponent) {
  *negative = *text == '-';
  if (*text == '-' || *text == '+') text++;
  int count = 0, decimals = 0;
  *digits = 0;
  for (bool point = false; count <= 19; text++) {
    if (*text == '.' && !point) {
      point = true;
      continue;
    }
    if (*text < '0' || *text > '9') break;
    *digits = 10 * *digits + (uint64_t)(*text - '0');
    count++;
    decimals += point;
  }
  if (count == 0 || count > 19) return false;
  *exponent = -decimals;
  if (text == end) return true;
  if (*text != 'e' && *text != 'E') return false;
  text++;
  bool down = *text == '-';
  if (*text == '-' || *text == '+') text++;
  if (text[0] < '0' || text[0] > '9') return false;
  int power = text[0] - '0';
  if (text[1] >= '0' && text[1] <= '9') power = 10 * power + (*++text - '0');
  *exponent += down ? -power : power;
  return text + 1 == end;
}

/* The nearest double to an ordinary number, several times as fast as strtod (Clinger 1990, in extended
 * precision): up to 19 digits and powers of ten up to 27 are exact in 64 bits, so one operation rounds once;
 * the second rounding, to 53 bits, can only go wrong from the middle between two doubles, which is left to
 * strtod. */
static bool fast_number(const char *text, const char *end, double *value) {
  static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                       1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                       1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
  bool negative;
  uint64_t digits, bits;
  int exponent;
  if (!split_decimal(text, end, &negative, &digits, &exponent) || exponent < -27 || exponent > 27)
    return false;
  long double extended = exponent < 0 ? digits / powers[-exponent] : digits * powers[exponent];
  memcpy(&bits, &extended, sizeof bits);
  if ((bits & 0x7ff) == 0x400) return false;
  *value = (double)(negative ? -extended : extended);
  return true;
}
#else
static bool fast_number(const char *text, const char *end, double *value) {
  (void)text, (void)end, (void)value;
  return false;
}
#endif

/* Decimal notation only: strtod would also take hexadecimal numbers, nan and inf. */
static Status parse_number(const Reader *reader, double *value) {
  if (!fast_number(reader->field, reader->field + reader->length, value)) {
    if (reader->length == 0 || strspn(reader->field, "+-.0123456789eE") != reader->length)
      return refuse(reader);
    char *end;
    *value = strtod(reader->field, &end);
    if (end != reader->field + reader->length) return refuse(reader);
  }
  char text[SHOWN_SIZE + 4];
  if (fabs(*value) <= DATASET_MOST) return STATUS_OK;
  return FIELD_ERROR(reader, "'%s' is too large; values are at most %g in size", shown(reader, text),
                     DATASET_MOST);
}

/* Read the header x1,...,xd,y. */
static Status read_header(Reader *reader, int *columns) {
  for (reader->column = 1;; reader->column++) {
    TRY(read_field(reader));
    char text[SHOWN_SIZE + 4], expected[24];
    bool first = reader->column == 1, last = reader->end != END_COMMA;
    if (first && last && reader->length == 0)
      return FIELD_ERROR(reader, "there is no header; it must read x1,...,xd,y");
    snprintf(expected, sizeof expected, "x%ld", reader->column);
    if (!first && field_is(reader, "y")) {
      if (!last) return FIELD_ERROR(reader, "'y' must be the last column of the header x1,...,xd,y");
      *columns = (int)reader->column;
      return STATUS_OK;
    }
    if (!field_is(reader, expected))
      return FIELD_ERROR(reader, "the header has '%s' where '%s'%s is expected (it must read x1,...,xd,y)",
                         shown(reader, text), expected, first ? "" : " or 'y'");
    if (last) return FIELD_ERROR(reader, "the header must end with the column 'y' (x1,...,xd,y)");
    if (reader->column == INT_MAX) return FIELD_ERROR(reader, "too many columns");
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

/* Read one line of numbers; *columns is their number, or 0 when the first line sets it. *blank: the line
 * held nothing. */
static Status read_row(Reader *reader, int *columns, Numbers *numbers, bool *blank) {
  *blank = false;
  for (reader->column = 1;; reader->column++) {
    TRY(read_field(reader));
    bool last = reader->end != END_COMMA;
    if (reader->column == 1 && last && reader->length == 0) {
      *blank = true;
      return STATUS_OK;
    }
    double value = 0;
    TRY(parse_number(reader, &value));
    TRY(append(numbers, value));
    if (*columns > 0 && (last ? reader->column != *columns : reader->column == *columns))
      return status_set(STATUS_INPUT, "%s, line %ld: %s values than the %d of line 1", reader->name,
                        reader->line, last ? "fewer" : "more", *columns);
    if (last) break;
    if (reader->column == INT_MAX) return FIELD_ERROR(reader, "too many columns");
  }
  *columns = (int)reader->column;
  return STATUS_OK;
}

static Status read_rows(Reader *reader, Table *table, Numbers *numbers) {
  long blank_line = 0;
  while (reader->end != END_FILE) {
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

/* Spreadsheets begin UTF-8 files with a byte order mark. */
static void skip_byte_order_mark(Reader *reader) {
  reader->filled = fread(reader->buffer, 1, BUFFER_SIZE, reader->stream);
  if (reader->filled >= 3 && memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0) reader->position = 3;
}

static Status parse(Reader *reader, CsvForm form, Table *table, Numbers *numbers) {
  skip_byte_order_mark(reader);
  if (form == CSV_X_Y_HEADER) {
    reader->line = 1;
    TRY(read_header(reader, &table->columns));
  }
  TRY(read_rows(reader, table, numbers));
  if (form == CSV_NO_HEADER && table->rows == 0) return status_set(STATUS_INPUT, "%s is empty", reader->name);
  return STATUS_OK;
}

Status dataset_csv_parse(FILE *stream, const char *name, CsvForm form, Table *table) {
  SCRATCH_ARENA(scratch);
  *table = (Table){0};
  Reader *reader;
  Numbers numbers = {0};
  ALLOCATE(&scratch, reader, 1);
  reader->stream = stream;
  reader->name = name;
  reader->end = END_LINE;
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
