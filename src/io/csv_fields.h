/* A reader of CSV files, compressed with gzip or not, one field at a time, shared by the readers of tables
 * and of logs. */
#pragma once

#include "io/gzip.h"

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>

/* The largest magnitude that data may have: squares of products of two such values are still finite, and so
 * are the moments of a prior that is fitted to them (model/prior/prior_mixture.c). */
#define DATASET_MOST 1e45

enum {
  CSV_BUFFER_SIZE = 1 << 16,
  CSV_FIELD_SIZE = 1024 /* exactly printed doubles are at most about 770 characters long */
};

typedef enum { CSV_END_COMMA, CSV_END_LINE, CSV_END_FILE } CsvFieldEnd;

typedef struct {
  GzipFile *file;
  Status failed; /* an error of the file, whose message is set */
  size_t position, filled; /* in the buffer */
  long line, column; /* of the current field, from 1 */
  long blank_line; /* the first blank line that csv_check_blank has seen; 0: none */
  size_t length; /* of the current field */
  CsvFieldEnd end; /* what came after it */
  char field[CSV_FIELD_SIZE + 1]; /* NUL-terminated */
  unsigned char buffer[CSV_BUFFER_SIZE];
} CsvReader;

/* Sets STATUS_INPUT about the current field, with file, line and column. */
#define CSV_FIELD_ERROR(reader, format, ...)                                                                 \
  status_set(STATUS_INPUT, "%s, line %ld, column %ld: " format, (reader)->file->path, (reader)->line,        \
             (reader)->column, ##__VA_ARGS__)

/* Restores what feholdexcept saved, for SCOPED (core/arena.h). A number that is too large is the user's
 * error: readers report it, and it must not be trapped. */
static inline void csv_trap_again(fenv_t *environment) { fesetenv(environment); }
/* Begins reading an open file with a zeroed reader. Skips the byte order mark that spreadsheets put at the
 * start of UTF-8 files. Returns STATUS_INPUT for another encoding, or a format that is not CSV, by its name.
 */
Status csv_begin(GzipFile *file, CsvReader *reader);
/* Reads up to the next comma, line end or end of file, and strips the blanks around the field. Callers set
 * line and column first. */
Status csv_read_field(CsvReader *reader);
/* Reads a text by RFC 4180: between quotes it may contain commas, line ends and "" for a quote. Strips the
 * blanks around it, quoted or not, so that "7" and "7 " are one text. Returns STATUS_INPUT if it is not
 * UTF-8. */
Status csv_read_text(CsvReader *reader);
/* Parses the current field as a finite decimal number of magnitude at most DATASET_MOST; hexadecimal numbers,
 * nan and inf are refused. */
Status csv_number(const CsvReader *reader, double *value);

/* The names of columns: `first` unless it is NULL; x1,...,xd with d at least 1, and at most `most` columns up
 * to there; the names in `last`, a list that ends with NULL, of which all but the first `needed` may be
 * absent; and, unless `each` is NULL, possibly EACH0, EACH1, ..., a column for each of several things. */
typedef struct {
  const char *first;
  const char *const *last;
  int needed, most;
  const char *each;
} CsvHeader;

/* How many columns a header has: all, those of `last`, and those of `each`. */
typedef struct {
  int columns, others, each;
} CsvColumns;

/* Reads a header, in which names may be quoted. */
Status csv_read_header(CsvReader *reader, const CsvHeader *header, CsvColumns *out);
/* Takes note of a blank line if the current line is `blank`. Returns STATUS_INPUT if it is not, but an
 * earlier line was. */
Status csv_check_blank(CsvReader *reader, bool blank);
