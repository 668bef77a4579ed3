/* libFuzzer target for CSV samples, histories and logs of events (src/io/io_dataset.c).
 *
 * Every input is read in each of these forms. A table that is accepted must hold finite numbers only, and
 * must come back bit for bit when it is printed with 17 digits and read again.
 *
 * Built and run by preset clang, with -max_len=4096 (tests/fuzz/CMakeLists.txt). */
#include "bytes.h"
#include "core/status.h"
#include "io/io_dataset.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Arena parsed; /* tables */

static Status parse(const void *text, size_t size, CsvForm form, Table *table) {
  GzipFile file;
  if (bytes_open(size, text, &file) != STATUS_OK) abort();
  const Status status = io_dataset_csv_parse(&parsed, &file, form, table);
  gzip_close(&file);
  return status;
}

/* Prints a table as CSV; *text belongs to the caller. */
static size_t print(const Table *table, CsvForm form, char **text) {
  size_t size;
  FILE *stream = open_memstream(text, &size);
  if (!stream) abort();
  const int last = table->others + table->each;
  for (int j = 0; form != CSV_NO_HEADER && j + last < table->columns; j++) fprintf(stream, "x%d,", j + 1);
  if (form == CSV_X_Y_HEADER) fprintf(stream, "y");
  if (form == CSV_EVENT_HEADER)
    fprintf(stream, "arm,reward,propensity%s", table->others > 3 ? ",target" : "");
  for (int k = 0; k < table->each; k++) fprintf(stream, ",available%d", k);
  if (form != CSV_NO_HEADER) fprintf(stream, "\n");
  for (int i = 0; i < table->rows; i++)
    for (int j = 0; j < table->columns; j++)
      fprintf(stream, "%.16e%s", table->values[(size_t)i * (size_t)table->columns + (size_t)j],
              j + 1 < table->columns ? "," : "\n");
  fclose(stream);
  return size;
}

static void try_form(const uint8_t *data, size_t size, CsvForm form) {
  Table table, again;
  if (parse(data, size, form, &table) != STATUS_OK) {
    if (status_message()[0] == '\0') abort();
    arena_free(&parsed);
    return;
  }
  size_t count = (size_t)table.rows * (size_t)table.columns;
  for (size_t i = 0; i < count; i++)
    if (!isfinite(table.values[i])) abort();
  char *text;
  size_t length = print(&table, form, &text);
  if (parse(text, length, form, &again) != STATUS_OK) abort();
  if (again.rows != table.rows || again.columns != table.columns) abort();
  if (count > 0 && memcmp(again.values, table.values, count * sizeof *table.values) != 0) abort();
  free(text);
  arena_free(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try_form(data, size, CSV_NO_HEADER);
  try_form(data, size, CSV_X_Y_HEADER);
  try_form(data, size, CSV_EVENT_HEADER);
  return 0;
}
