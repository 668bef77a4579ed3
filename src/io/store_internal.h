/* What the files store*.c share. */
#pragma once

#include "io/store.h"

struct StoreFile {
  char *path;
  char *temporary; /* the name that is written; NULL in a file that is read */
  int ncid;
  uint64_t size; /* bytes of a file that is read */
  StoreFormat format;
  bool defining; /* the library is in define mode */
  bool failed; /* a call of the library failed while it was written */
};

/* Turns a return code of the netCDF library into a Status: "PATH: cannot <printf-style text>: <reason>". */
Status store_check(StoreFile *file, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Defines a variable without chunks and compression. */
Status store_define(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                    const char *long_name, const char *units, int *id);
/* Frees the memory of a file that is closed, or was never open. */
void store_release(StoreFile *file);

/* Appends the seal to a closed file; 0 or errno. */
int store_seal(const char *path);
/* Returns whether a file has a seal; STATUS_INPUT when it does not fit. */
Status store_seal_verify(const char *path, bool *sealed);
/* Checks the tail of a file of `size` bytes without a seal, whose data end at `end`: STATUS_INPUT when the
 * few bytes behind are what is left of one. */
Status store_seal_check_tail(const char *path, uint64_t size, uint64_t end);
/* Returns whether an open file ends with a seal: this program wrote it. Whether it is whole is not
 * checked. */
bool store_is_sealed(int file);

/* Walks through the header of a classic file (CDF-1, 2 or 5) and checks that the file is long enough for
 * what it speaks of. The library itself reads a file that was cut off as zeros. STATUS_INPUT when it is
 * damaged or cut off. *end: where its data end, padding included; UINT64_MAX when the header leaves that
 * open. */
Status store_classic_check(const char *path, uint64_t *end);
