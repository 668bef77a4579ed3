/* Reading files that may or may not be compressed with gzip, through zlib. */
#pragma once

#include "core/status.h"

#include <stddef.h>

typedef struct {
  struct gzFile_s *stream; /* zlib's gzFile; NULL: not open */
  const char *path; /* not owned; messages name it */
  double size; /* of the file as it is, in bytes */
} GzipFile;

/* Opens a file; gzip_close(out), also after an error. `path` must outlive it. Errors: STATUS_FILE if the file
 * cannot be read. */
Status gzip_open(const char *path, GzipFile *out);
/* Reads the next `size` bytes; fewer only at the end of the file, 0 after it. Compressed data that are
 * damaged or end too early are STATUS_INPUT, with the path and the number of good bytes before that point; a
 * disk error is STATUS_FILE. */
Status gzip_read(GzipFile *file, void *bytes, size_t size, size_t *count);
/* Reads the next line with its line end, at most size - 1 bytes of it, and terminates it with a NUL. *length
 * is the number of bytes read, 0 at the end of the file. Errors: as gzip_read. */
Status gzip_read_line(GzipFile *file, char *line, size_t size, size_t *length);
/* Returns how many bytes of the file have been read, of `size`. */
double gzip_done(const GzipFile *file);
/* Closes the file if it is open. */
void gzip_close(GzipFile *file);
