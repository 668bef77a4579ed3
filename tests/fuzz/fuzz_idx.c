/* libFuzzer target for IDX files, compressed or not (src/problem/embedding/embedding_idx.c, src/io/gzip.c).
 *
 * A file that is accepted must agree with its header: the number of bytes that the header promises, and
 * labels below 10. It must be refused when the last byte is missing, unless it is compressed (then merely
 * reading it tests zlib's own check).
 *
 * Built and run by preset clang, with -max_len=4096 (tests/fuzz/CMakeLists.txt). */
#include "core/status.h"
#include "problem/embedding/embedding_idx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Arena kept; /* what an input gives */

static Status read_bytes(const uint8_t *data, size_t size, IdxFile *out) {
  static int memory = -1;
  char path[64];
  GzipFile file;
  if (memory < 0) memory = memfd_create("idx", 0);
  if (memory < 0 || ftruncate(memory, 0) != 0 || pwrite(memory, data, size, 0) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  if (gzip_open(path, &file) != STATUS_OK) abort();
  Status status = embedding_idx_read(&kept, &file, "input", out);
  gzip_close(&file);
  if (status != STATUS_OK && (status != STATUS_INPUT || status_message()[0] == '\0')) abort();
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  IdxFile file, shorter;
  arena_free(&kept);
  if (read_bytes(data, size, &file) != STATUS_OK) return 0;
  bool packed = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
  size_t values = (size_t)file.count * (size_t)file.rows * (size_t)file.columns;
  if (!packed && size != values + (file.magic == IDX_IMAGES ? 16 : 8)) abort();
  for (size_t i = 0; i < values; i++) /* reads all of them, for the address sanitizer */
    if (file.magic == IDX_LABELLED && file.values[i] >= IDX_LABELS) abort();
  if (!packed && read_bytes(data, size - 1, &shorter) == STATUS_OK) abort();
  return 0;
}
