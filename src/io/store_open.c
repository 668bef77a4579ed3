/* Opening NetCDF files for reading: finding their format, and whether they are complete. */
#include "core/memory.h"
#include "io/input.h"
#include "io/store_internal.h"

#include <errno.h>
#include <netcdf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum { MAGIC_OTHER, MAGIC_CLASSIC, MAGIC_HDF5 } Magic;

static Magic magic_of(const unsigned char *head, size_t size) {
  if (size >= 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0) return MAGIC_HDF5;
  bool classic = size >= 4 && memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5);
  return classic ? MAGIC_CLASSIC : MAGIC_OTHER;
}

/* Finds the format of a regular file, from its first bytes, and its length. */
static Status store_inspect_file(const char *path, Magic *magic, uint64_t *size) {
  int fd;
  struct stat info;
  unsigned char head[8];
  *magic = MAGIC_OTHER, *size = 0;
  TRY(input_open(path, &fd));
  ssize_t n = fstat(fd, &info) == 0 ? read(fd, head, sizeof head) : -1;
  int error = errno;
  close(fd);
  if (n < 0) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(error));
  *magic = magic_of(head, (size_t)n);
  *size = (uint64_t)info.st_size;
  return STATUS_OK;
}

bool store_is_netcdf(const char *path) {
  static const char *const endings[] = {".nc", ".nc4", ".cdf"};
  const char *ending = strrchr(path, '.');
  for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
    if (strcmp(ending, endings[i]) == 0) return true;
  Magic magic;
  uint64_t size;
  return store_inspect_file(path, &magic, &size) == STATUS_OK && magic != MAGIC_OTHER;
}

/* ---- where an HDF5 file says that it ends: "HDF5 File Format Specification Version 3.0" (The HDF Group),
 * section II.A, "Disk Format: Level 0A - Format Signature and Superblock"; all numbers little-endian */

enum { HDF5_HEAD = 28 + 3 * 8 /* up to the end of the address, in the version with the longest header */ };

static uint64_t hdf5_read_address(const unsigned char *at, unsigned bytes) {
  uint64_t value = 0;
  while (bytes > 0) value = value << 8 | at[--bytes];
  return value;
}

/* Returns the "end of file address" of the superblock; UINT64_MAX if we do not know how to find it, which is
 * left to the library to judge. */
static uint64_t hdf5_end_address(const unsigned char head[HDF5_HEAD]) {
  unsigned version = head[8], bytes = version < 2 ? head[13] : head[9];
  if (version > 3 || (bytes != 4 && bytes != 8)) return UINT64_MAX;
  /* It comes after the base address and the address of free space (versions 0 and 1) or of the superblock
   * extension (2 and 3). */
  size_t first = version == 0 ? 24 : version == 1 ? 28 : 12;
  return hdf5_read_address(head + first + 2 * (size_t)bytes, bytes);
}

/* Finds *end, where an HDF5 file says that it ends; UINT64_MAX if that is unknown. */
static Status hdf5_end(const char *path, uint64_t *end) {
  unsigned char head[HDF5_HEAD] = {0};
  FILE *stream = fopen(path, "rb");
  if (!stream) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno));
  bool whole = fread(head, 1, HDF5_HEAD, stream) == HDF5_HEAD;
  fclose(stream);
  *end = whole ? hdf5_end_address(head) : UINT64_MAX;
  return STATUS_OK;
}

/* ---- opening */

/* Checks that the file is complete, as far as that is visible without the library. A file that may be a
 * user's (not `own`) need not be sealed. */
static Status check_whole(const char *path, Magic magic, uint64_t size, bool own) {
  bool sealed;
  uint64_t end;
  if (magic == MAGIC_OTHER) return status_set(STATUS_INPUT, "%s is not a NetCDF file", path);
  TRY(store_seal_verify(path, &sealed));
  if (own && !sealed)
    return status_set(STATUS_INPUT,
                      "%s is damaged: it does not end with the checksum that it was written with", path);
  TRY(magic == MAGIC_CLASSIC ? store_classic_check(path, &end) : hdf5_end(path, &end));
  return sealed ? STATUS_OK : store_seal_check_tail(path, size, end);
}

static Status store_open_begin(const char *path, StoreFile *file) {
  NEW(file->path, strlen(path) + 1);
  strcpy(file->path, path);
  errno = 0;
  return store_check(file, nc_open(path, NC_NOWRITE, &file->ncid), "open it as NetCDF (damaged or cut off?)");
}

static Status open_checked(const char *path, bool own, StoreFile **out) {
  *out = NULL;
  Magic magic;
  uint64_t size;
  TRY(store_path_check(path));
  TRY(store_inspect_file(path, &magic, &size));
  TRY(check_whole(path, magic, size, own));
  StoreFile *file;
  NEW(file, 1);
  file->size = size;
  file->format = magic == MAGIC_CLASSIC ? STORE_CLASSIC : STORE_NETCDF4;
  const Status status = store_open_begin(path, file);
  if (status == STATUS_OK)
    *out = file;
  else
    store_release(file);
  return status;
}

Status store_open(const char *path, StoreFile **out) { return open_checked(path, false, out); }

Status store_open_own(const char *path, StoreFile **out) { return open_checked(path, true, out); }
