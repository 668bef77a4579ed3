/* Bytes of a file that may be compressed with gzip or not, through zlib. */
#pragma once

#include "core/status.h"

#include <stddef.h>

typedef struct GzipFile GzipFile;

/* Opens a file; *out is ended by gzip_close, and `path` outlives it. Errors: STATUS_FILE when the file cannot
 * be read. */
Status gzip_open(const char *path, GzipFile **out);
/* Reads the next `size` bytes; fewer only at the end of the file, 0 after it. Compressed data that are
 * damaged or end too early are STATUS_INPUT with the path and the number of good bytes before the place, a
 * disk that fails is STATUS_FILE. */
Status gzip_read(GzipFile *file, void *bytes, size_t size, size_t *count);
/* Reads the next line with its end, at most size - 1 bytes of it, and ends it with a NUL; *length counts
 * these bytes, 0 at the end of the file. Errors: as gzip_read. */
Status gzip_read_line(GzipFile *file, char *line, size_t size, size_t *length);
/* Closes the file; NULL is allowed. */
void gzip_close(GzipFile *file);
