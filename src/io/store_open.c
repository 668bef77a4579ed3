/* Opening NetCDF files for reading: finding their format, and whether they are complete. */
#include "core/arena.h"
#include "io/input.h"
#include "io/store_internal.h"

#include <errno.h>
#include <netcdf.h>
#include <string.h>

typedef enum { MAGIC_OTHER, MAGIC_CLASSIC, MAGIC_HDF5 } Magic;

/* Finds the format of a file from its first bytes. */
static Magic magic_of(FILE *stream) {
  unsigned char head[8] = {0};
  rewind(stream);
  const size_t size = fread(head, 1, sizeof head, stream);
  if (size == sizeof head && memcmp(head, "\211HDF\r\n\032\n", sizeof head) == 0) return MAGIC_HDF5;
  bool classic = memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5);
  return classic ? MAGIC_CLASSIC : MAGIC_OTHER;
}

bool store_is_netcdf(const char *path) {
  static const char *const endings[] = {".nc", ".nc4", ".cdf"};
  const char *ending = strrchr(path, '.');
  for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
    if (strcmp(ending, endings[i]) == 0) return true;
  SCOPED(FILE *, stream, input_close);
  return input_stream(path, &stream) == STATUS_OK && magic_of(stream) != MAGIC_OTHER;
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

/* Returns where an HDF5 file says that it ends; UINT64_MAX if that is unknown. */
static uint64_t hdf5_end(FILE *stream) {
  unsigned char head[HDF5_HEAD];
  rewind(stream);
  return fread(head, 1, HDF5_HEAD, stream) == HDF5_HEAD ? hdf5_end_address(head) : UINT64_MAX;
}

/* ---- opening */

/* Finds the size and the format of a file, and checks that it is complete, as far as that is visible without
 * the library. A file that may be a user's (not `own`) need not be sealed. */
static Status check_whole(StoreFile *file, bool own) {
  SCOPED(FILE *, stream, input_close);
  const char *path = file->path;
  bool sealed;
  uint64_t end = 0;
  TRY(input_stream(path, &stream));
  const bool known = store_stream_length(stream, &file->size);
  const Magic magic = magic_of(stream);
  if (!known || ferror(stream)) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno));
  if (magic == MAGIC_OTHER) return status_set(STATUS_INPUT, "%s is not a NetCDF file", path);
  file->classic = magic == MAGIC_CLASSIC;
  TRY(store_seal_verify(path, stream, file->size, &sealed));
  if (own && !sealed)
    return status_set(STATUS_INPUT,
                      "%s is damaged: it does not end with the checksum that it was written with", path);
  if (file->classic)
    TRY(store_classic_check(path, stream, file->size, &end));
  else
    end = hdf5_end(stream);
  return sealed ? STATUS_OK : store_seal_check_tail(path, stream, file->size, end);
}

static Status open_checked(const char *path, bool own, StoreFile **out) {
  StoreFile *file;
  *out = NULL;
  TRY(store_new(path, &file));
  Status status = check_whole(file, own);
  errno = 0;
  if (status == STATUS_OK)
    status =
        store_check(file, nc_open(path, NC_NOWRITE, &file->ncid), "open it as NetCDF (damaged or cut off?)");
  if (status == STATUS_OK)
    *out = file;
  else
    store_release(file);
  return status;
}

Status store_open(const char *path, StoreFile **out) { return open_checked(path, false, out); }

Status store_open_own(const char *path, StoreFile **out) { return open_checked(path, true, out); }
