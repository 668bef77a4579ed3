#include "io/gzip.h"

#include "io/input.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_SIZE = 1 << 17 };

Status gzip_open(const char *path, GzipFile *out) {
  int fd;
  struct stat info;
  *out = (GzipFile){.path = path};
  TRY(input_open(path, &fd));
  if (fstat(fd, &info) == 0) out->size = (double)info.st_size;
  out->stream = gzdopen(fd, "rb");
  if (!out->stream) close(fd);
  if (out->stream && gzbuffer(out->stream, BUFFER_SIZE) == 0) return STATUS_OK;
  return status_set(STATUS_INTERNAL, "out of memory while reading %s", path);
}

/* Returns the error that ended a read early, or STATUS_OK at the end of the file. */
static Status gzip_read_status(const GzipFile *file) {
  int code, system_error = errno;
  const char *text = gzerror(file->stream, &code);
  long long good = (long long)gztell(file->stream);
  switch (code) {
  case Z_OK:
  case Z_STREAM_END: return STATUS_OK;
  case Z_ERRNO: return status_set(STATUS_FILE, "cannot read %s: %s", file->path, strerror(system_error));
  case Z_MEM_ERROR: return status_set(STATUS_INTERNAL, "out of memory while reading %s", file->path);
  case Z_BUF_ERROR:
    return status_set(STATUS_INPUT, "%s is cut off: its gzip data end too early, after %lld unpacked bytes",
                      file->path, good);
  default:
    return status_set(STATUS_INPUT, "%s is damaged: %s, after %lld unpacked bytes", file->path, text, good);
  }
}

Status gzip_read(GzipFile *file, void *bytes, size_t size, size_t *count) {
  *count = 0;
  while (*count < size) {
    size_t left = size - *count;
    errno = 0;
    int got = gzread(file->stream, (char *)bytes + *count, left < INT_MAX ? (unsigned)left : INT_MAX);
    if (got > 0) *count += (size_t)got;
    if (got <= 0) return gzip_read_status(file);
  }
  return STATUS_OK;
}

Status gzip_read_line(GzipFile *file, char *line, size_t size, size_t *length) {
  const z_off_t start = gztell(file->stream);
  errno = 0;
  const char *got = gzgets(file->stream, line, (int)size);
  *length = (size_t)(gztell(file->stream) - start);
  if (got && line[*length - 1] == '\n') return STATUS_OK;
  return gzip_read_status(file);
}

double gzip_done(const GzipFile *file) { return (double)gzoffset(file->stream); }

void gzip_close(GzipFile *file) {
  if (file->stream) gzclose(file->stream);
}
