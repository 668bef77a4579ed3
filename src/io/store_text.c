/* Whole text files: durable writing, and reading into memory. */
#include "core/arena.h"
#include "io/durable.h"
#include "io/input.h"
#include "io/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

Status store_write_text(const char *path, const char *text, bool replace) {
  char *temporary;
  TRY(durable_begin(path, &temporary));
  FILE *stream = fopen(temporary, "we");
  int error = stream && fputs(text, stream) >= 0 ? 0 : errno;
  if (stream && fclose(stream) != 0 && error == 0) error = errno;
  Status status;
  if (error == 0) {
    status = durable_publish(temporary, path, replace);
  } else {
    unlink(temporary);
    status = status_set(STATUS_FILE, "cannot write %s: %s", path, strerror(error));
  }
  free(temporary);
  return status;
}

Status store_read_text(const char *path, size_t limit, char **out, size_t *size) {
  SCOPED(FILE *, stream, input_close);
  char block[1 << 14];
  size_t total = 0, n;
  *out = NULL, *size = 0;
  TRY(input_stream(path, &stream));
  FILE *text = open_memstream(out, size);
  if (!text) return status_set(STATUS_INTERNAL, "out of memory");
  for (; total <= limit && (n = fread(block, 1, sizeof block, stream)) > 0; total += n)
    fwrite(block, 1, n, text);
  const int error = ferror(stream) ? errno : 0;
  const bool kept = !ferror(text);
  Status status = fclose(text) == 0 && kept ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory");
  if (error != 0)
    status = status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(error));
  else if (total > limit)
    status = status_set(STATUS_INPUT, "%s: more than %zu bytes", path, limit);
  if (status == STATUS_OK) return STATUS_OK;
  free(*out);
  *out = NULL, *size = 0;
  return status;
}
