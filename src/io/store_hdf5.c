/* Where an HDF5 file says that it ends. After "HDF5 File Format Specification Version 3.0" (The HDF Group),
 * section II.A, "Disk Format: Level 0A - Format Signature and Superblock"; all numbers little-endian. */
#include "io/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 28 + 3 * 8 /* up to the end of the address, where it stands last */ };

static uint64_t read_address(const unsigned char *at, unsigned bytes) {
  uint64_t value = 0;
  while (bytes > 0) value = value << 8 | at[--bytes];
  return value;
}

/* Returns the "end of file address" of the superblock; UINT64_MAX when it has none that we know how to
 * find, which is for the library to judge. */
static uint64_t end_address(const unsigned char head[HEAD]) {
  unsigned version = head[8], bytes = version < 2 ? head[13] : head[9];
  if (version > 3 || (bytes != 4 && bytes != 8)) return UINT64_MAX;
  /* Before it stand the base address and the address of free space (versions 0 and 1) or of the superblock's
   * extension (2 and 3). */
  size_t first = version == 0 ? 24 : version == 1 ? 28 : 12;
  return read_address(head + first + 2 * (size_t)bytes, bytes);
}

Status store_hdf5_end(const char *path, uint64_t *end) {
  unsigned char head[HEAD] = {0};
  FILE *stream = fopen(path, "rb");
  if (!stream) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno));
  bool whole = fread(head, 1, HEAD, stream) == HEAD;
  fclose(stream);
  *end = whole ? end_address(head) : UINT64_MAX;
  return STATUS_OK;
}
