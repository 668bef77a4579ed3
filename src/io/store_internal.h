/* Shared by the files store*.c. */
#pragma once

#include "io/store.h"

#include <stdio.h>

struct StoreFile {
  char *temporary; /* name of the file being written; NULL when reading */
  int ncid;
  uint64_t size; /* in bytes, of a file being read */
  bool classic; /* of a file being read: CDF-1, 2 or 5, not netCDF-4 */
  bool failed; /* a call of the library failed while writing */
  char path[];
};

/* Turns a return code of the netCDF library into a Status: "PATH: cannot <printf-style text>: <reason>". */
Status store_check(StoreFile *file, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Defines a variable without chunking and compression. */
Status store_define(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                    const char *long_name, const char *units, int *id);
/* Checks a path, and allocates the structure of its file. */
Status store_new(const char *path, StoreFile **out);
/* Frees the memory of a file that has been closed or was never open. */
void store_release(StoreFile *file);

/* Appends the seal to a closed file; returns 0 or errno. */
int store_seal(const char *path);
/* Returns whether an open file ends with a seal, and so was written by this program; does not check that it
 * is intact. */
bool store_is_sealed(int file);
/* Finds the length of an open stream and rewinds it; returns false on failure. */
bool store_stream_length(FILE *stream, uint64_t *size);

/* Finds whether a file has a seal; returns STATUS_INPUT if the seal does not match. This function and the two
 * below read a `stream` of `size` bytes, whatever its position; messages call it `path`. */
Status store_seal_verify(const char *path, FILE *stream, uint64_t size, bool *sealed);
/* Checks the tail of a file that has no seal and whose data end at `end`. Returns STATUS_INPUT if the few
 * bytes after that are the remains of a seal. */
Status store_seal_check_tail(const char *path, FILE *stream, uint64_t size, uint64_t end);
/* Walks the header of a classic file (CDF-1, 2 or 5) and checks that the file is long enough for what the
 * header describes: the library itself reads what was cut off as zeros. Returns STATUS_INPUT if it is damaged
 * or cut off. *end: where its data end, padding included; UINT64_MAX if the header leaves that open. */
Status store_classic_check(const char *path, FILE *stream, uint64_t size, uint64_t *end);
