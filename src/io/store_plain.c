/* Variables that are stored in the file exactly as in memory, one value after another, so that several
 * processes can write them at once, bypassing the library: HDF5 on one process allocates them and says where.
 * It relies on H5Dget_offset, which exists for this, and on "HDF5 File Format Specification Version 3.0",
 * section IV.A.2.i (contiguous storage). */
#include "core/memory.h"
#include "io/store_internal.h"

#include <errno.h>
#include <hdf5.h>
#include <netcdf.h>
#include <string.h>
#include <unistd.h>

Status store_plain_variable(StoreFile *file, const char *name, int rank, const int *dimensions,
                            const char *long_name, const char *units, int *id) {
  TRY(store_define(file, name, STORE_DOUBLE, rank, dimensions, long_name, units, id));
  int code = nc_def_var_chunking(file->ncid, *id, NC_CONTIGUOUS, NULL);
  if (code == NC_NOERR) code = nc_def_var_fill(file->ncid, *id, NC_NOFILL, NULL);
  return store_check(file, code, "store the variable '%s' uncompressed", name);
}

/* Writes one value, which makes the library allocate the whole variable in the file; also returns its
 * name. */
static Status store_plain_allocate(StoreFile *file, int id, char name[NC_MAX_NAME + 1]) {
  static const size_t first[NC_MAX_VAR_DIMS];
  size_t one[NC_MAX_VAR_DIMS];
  for (int axis = 0; axis < NC_MAX_VAR_DIMS; axis++) one[axis] = 1;
  const double zero = 0;
  TRY(store_check(file, nc_inq_varname(file->ncid, id, name), "find a variable"));
  return store_put_part(file, id, first, one, &zero);
}

static bool store_plain_find(hid_t file, const char *name, uint64_t *offset) {
  const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
  if (set < 0) return false;
  const haddr_t address = H5Dget_offset(set);
  H5Dclose(set);
  *offset = address;
  return address != HADDR_UNDEF;
}

Status store_plain_place(StoreFile *file, int count, const int *ids, uint64_t *offsets) {
  char(*names)[NC_MAX_NAME + 1];
  NEW(names, count);
  Status status = STATUS_OK;
  for (int i = 0; i < count && status == STATUS_OK; i++)
    status = store_plain_allocate(file, ids[i], names[i]);
  /* The library must not have the file open while HDF5 reads it; on reopening it gives the variables the same
   * ids. */
  if (status == STATUS_OK) status = store_check(file, nc_close(file->ncid), "write it");
  if (status == STATUS_OK) {
    const hid_t hdf5 = H5Fopen(file->temporary, H5F_ACC_RDONLY, H5P_DEFAULT);
    bool good = hdf5 >= 0;
    for (int i = 0; i < count && good; i++) good = store_plain_find(hdf5, names[i], &offsets[i]);
    if (hdf5 >= 0) H5Fclose(hdf5);
    if (!good) status = status_set(STATUS_FILE, "%s: cannot place its variables", file->path);
    const Status opened =
        store_check(file, nc_open(file->temporary, NC_WRITE, &file->ncid), "continue writing it");
    if (status == STATUS_OK) status = opened;
  }
  free(names);
  return status;
}

char *store_temporary(const StoreFile *file) { return file->temporary; }

Status store_plain_write(int fd, const char *path, uint64_t offset, size_t count, const double *values) {
  const char *at = (const char *)values;
  for (size_t left = count * sizeof *values; left > 0;) {
    const ssize_t written = pwrite(fd, at, left, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return status_set(STATUS_FILE, "%s: cannot write it: %s", path, strerror(written < 0 ? errno : ENOSPC));
    at += written, left -= (size_t)written, offset += (uint64_t)written;
  }
  return STATUS_OK;
}
