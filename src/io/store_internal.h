/* Shared by the files store*.c. */
#pragma once

#include "io/store.h"

struct StoreFile {
  char *temporary; /* name of the file being written; NULL when reading */
  int ncid; /* -1: not open yet */
  uint64_t size; /* in bytes, of a file being read */
  bool classic; /* of a file being read: CDF-1, 2 or 5, not netCDF-4 */
  bool sealed; /* of a file being read: as this program wrote it */
  bool in_memory; /* being written: all of it is in memory until it is finished */
  bool failed; /* a call of the library failed while writing */
  char path[];
};

/* Turns a return code of the netCDF library into a Status: "PATH: cannot <printf-style text>: <reason>". */
Status store_check(StoreFile *file, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Checks a path, and allocates the structure of its file. */
Status store_new(const char *path, StoreFile **out);

enum { STORE_HDF5_HEAD = 28 + 3 * 8 }; /* bytes of a file up to its end address, where that is latest */
/* Returns the "end of file address" of an HDF5 file from head[STORE_HDF5_HEAD]; UINT64_MAX if we do not know
 * how to find it, which is left to the library to judge. */
uint64_t store_hdf5_end(const unsigned char *head);

/* Appends the seal to a closed file; returns 0 or errno. */
int store_seal(const char *path);
