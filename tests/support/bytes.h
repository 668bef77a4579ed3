/* Bytes in memory that are read like a file. */
#pragma once

#include "io/gzip.h"

/* Opens bytes[size] as a file whose messages call it "it.csv"; the caller must gzip_close it. They are kept
 * until the next call. */
Status bytes_open(size_t size, const void *bytes, GzipFile *out);
