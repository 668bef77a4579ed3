/* Tables of plain numbers in CSV files, for dataset.c and its fuzzer only. */
#ifndef IO_DATASET_CSV_H
#define IO_DATASET_CSV_H

#include "core/status.h"

#include <stdbool.h>
#include <stdio.h>

/* values[rows, columns] */
typedef struct {
  int rows, columns;
  double *values;
} Table;

typedef enum {
  CSV_NO_HEADER, /* at least one row; the first tells how many columns there are */
  CSV_X_Y_HEADER /* the header x1,...,xd,y, then any number of rows of d + 1 numbers */
} CsvForm;

/* Read a stream to its end; `name` stands for it in messages. Fields are finite decimal numbers, between
 * commas, blanks around them ignored; lines end with LF or CR LF; blank lines may only stand at the end;
 * lines may be of any length. Everything else is STATUS_INPUT with line and column. The caller frees
 * table->values, which is NULL after an error. */
Status dataset_csv_parse(FILE *stream, const char *name, CsvForm form, Table *table);

#endif
