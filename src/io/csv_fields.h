/* Fields of CSV files, one after the other: what the readers of tables and of logs share. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The largest value that data may have in size: squares of products of two of them are still finite, and so
 * are the moments of a prior that is fitted to them (model/prior/prior_mixture.c). */
#define DATASET_MOST 1e45

enum {
  CSV_BUFFER_SIZE = 1 << 16,
  CSV_FIELD_SIZE = 1024, /* exactly printed doubles are at most about 770 characters long */
  CSV_SHOWN_SIZE = 40 /* of a bad field, in a message */
};

typedef enum { CSV_END_COMMA, CSV_END_LINE, CSV_END_FILE } CsvFieldEnd;

typedef struct {
  FILE *stream;
  const char *name;
  size_t position, filled; /* in the buffer */
  long line, column; /* of the present field, from 1 */
  long blank_line; /* the first one that csv_check_blank was told of; 0: none */
  size_t length; /* of the present field */
  CsvFieldEnd end; /* what came after it */
  char field[CSV_FIELD_SIZE + 1]; /* NUL-terminated */
  unsigned char buffer[CSV_BUFFER_SIZE];
} CsvReader;

/* STATUS_INPUT about the present field, with file, line and column. */
#define CSV_FIELD_ERROR(reader, format, ...)                                                                 \
  status_set(STATUS_INPUT, "%s, line %ld, column %ld: " format, (reader)->name, (reader)->line,              \
             (reader)->column, ##__VA_ARGS__)

/* Begins a zeroed reader of a stream, which `name` stands for in messages, behind the byte order mark with
 * which spreadsheets begin UTF-8 files. */
void csv_begin(FILE *stream, const char *name, CsvReader *reader);
/* Reads up to the next comma, line end or end of file, blanks around it removed. Callers set line and
 * column before. */
Status csv_read_field(CsvReader *reader);
/* Reads a text by RFC 4180: between quotes it may hold commas, line ends and "" for a quote, and blanks
 * belong to it. Returns STATUS_INPUT when it is not UTF-8. */
Status csv_read_text(CsvReader *reader);
/* Reads the present field as a finite decimal number of at most DATASET_MOST in size; hexadecimal numbers,
 * nan and inf are not. */
Status csv_number(const CsvReader *reader, double *value);

/* Reads a header: `first` unless it is NULL, x1,...,xd with d at least 1, and then the names of `last`, which
 * NULL ends; more than `most` columns before those are refused. *columns counts all. Columns are read as
 * texts where there is a `first`. */
Status csv_read_header(CsvReader *reader, const char *first, const char *const *last, int most, int *columns);
/* Tells whether the present line is blank. Returns STATUS_INPUT where it is not, but one before it was. */
Status csv_check_blank(CsvReader *reader, bool blank);

bool csv_field_is(const CsvReader *reader, const char *text);
/* Returns the present field as it can be shown in a message. */
const char *csv_shown(const CsvReader *reader, char out[CSV_SHOWN_SIZE + 4]);
