/* Tables of plain numbers in CSV files, for dataset.c and its fuzzer only. */
#pragma once

#include "core/arena.h"

#include <stdio.h>

/* values[rows, columns] */
typedef struct {
  int rows, columns;
  double *values;
} Table;

typedef enum {
  CSV_NO_HEADER, /* at least one row; the first shows how many columns there are */
  CSV_X_Y_HEADER, /* the header x1,...,xd,y, then any number of rows of d + 1 numbers */
  CSV_X_CLASS_HEADER, /* the same with x1,...,xd,class */
  CSV_EVENT_HEADER /* the same with x1,...,xd,arm,reward,propensity */
} CsvForm;

/* Reads a stream to its end; `name` stands for it in messages. Fields are finite decimal numbers, between
 * commas, blanks around them ignored; lines end with LF or CR LF; blank lines may only stand at the end;
 * lines may be of any length; values are at most DATASET_MOST in size. Everything else is STATUS_INPUT
 * with line and column. */
Status dataset_csv_parse(Arena *memory, FILE *stream, const char *name, CsvForm form, Table *table);
