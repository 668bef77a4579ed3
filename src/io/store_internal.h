/* Shared by the files store*.c. */
#pragma once

#include "io/store.h"

struct StoreFile {
  char *temporary; /* name of the file being written; NULL when reading */
  int ncid; /* -1: not open yet */
  uint64_t size; /* in bytes, of a file being read */
  bool classic; /* of a file being read: CDF-1, 2 or 5, not netCDF-4 */
  bool failed; /* a call of the library failed while writing */
  char path[];
};

/* Turns a return code of the netCDF library into a Status: "PATH: cannot <printf-style text>: <reason>". */
Status store_check(StoreFile *file, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Checks a path, and allocates the structure of its file. */
Status store_new(const char *path, StoreFile **out);

/* Appends the seal to a closed file; returns 0 or errno. */
int store_seal(const char *path);
