/* libFuzzer target for CSV logs of past tasks (src/io/io_logs.c).
 *
 * Observations that are accepted must be finite, their tasks must be numbered in order of first appearance,
 * and all must come back bit for bit when they are printed with 17 digits and read again.
 *
 * Built and run by preset clang, with -max_len=4096 (tests/fuzz/CMakeLists.txt). */
#include "bytes.h"
#include "io/io_logs.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The observations, printed again. */
typedef struct {
  FILE *out;
  int d, tasks;
  long rows;
} Copy;

static Status begin(void *context, int d) {
  Copy *copy = context;
  if (copy->d != 0 || d < 1) abort();
  copy->d = d;
  fprintf(copy->out, "task,");
  for (int i = 1; i <= d; i++) fprintf(copy->out, "x%d,", i);
  fprintf(copy->out, "y\n");
  return STATUS_OK;
}

static Status take(void *context, int task, const double *x, double y) {
  Copy *copy = context;
  if (task < 0 || task > copy->tasks || !isfinite(y)) abort();
  copy->tasks += task == copy->tasks;
  fprintf(copy->out, "\"task \"\"%d\"\",\"", task);
  for (int i = 0; i < copy->d; i++) {
    if (!isfinite(x[i])) abort();
    fprintf(copy->out, ",%.17g", x[i]);
  }
  fprintf(copy->out, ",%.17g\n", y);
  copy->rows++;
  return STATUS_OK;
}

static Status parse(const void *text, size_t size, char **out, size_t *length, Copy *copy) {
  const LogsSink sink = {.context = copy, .begin = begin, .row = take};
  GzipFile file;
  *copy = (Copy){.out = open_memstream(out, length)};
  if (!copy->out || bytes_open(size, text, &file) != STATUS_OK) abort();
  const Status status = io_logs_read_csv(&file, &sink);
  gzip_close(&file);
  fclose(copy->out);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *first, *second;
  size_t length, again;
  Copy copy;
  const Status status = parse(data, size, &first, &length, &copy);
  if (status != STATUS_OK) {
    if (status_message()[0] == '\0') abort();
    free(first);
    return 0;
  }
  if (copy.rows == 0) abort();
  if (parse(first, length, &second, &again, &copy) != STATUS_OK) abort();
  if (length != again || memcmp(first, second, length) != 0) abort();
  free(first);
  free(second);
  return 0;
}
