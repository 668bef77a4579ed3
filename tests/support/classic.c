#include "classic.h"

#include "io/store_internal.h"

#include <limits.h>
#include <netcdf.h>
#include <stdio.h>

/* Copies what a file defines and holds to another, open one; returns an error of the library. */
static int classic_copy(int from, int to) {
  int dimensions, variables, attributes, id, code;
  size_t length;
  char name[NC_MAX_NAME + 1];
  code = nc_inq(from, &dimensions, &variables, &attributes, NULL);
  for (int i = 0; i < dimensions && code == NC_NOERR; i++) {
    code = nc_inq_dim(from, i, name, &length);
    if (code == NC_NOERR) code = nc_def_dim(to, name, length, &id);
  }
  for (int i = 0; i < attributes && code == NC_NOERR; i++) {
    code = nc_inq_attname(from, NC_GLOBAL, i, name);
    if (code == NC_NOERR) code = nc_copy_att(from, NC_GLOBAL, name, to, NC_GLOBAL);
  }
  for (int i = 0; i < variables && code == NC_NOERR; i++) code = nc_copy_var(from, i, to);
  return code;
}

Status classic_convert(const char *path) {
  char before[PATH_MAX + sizeof ".before"];
  int from, to;
  snprintf(before, sizeof before, "%s.before", path);
  if (rename(path, before) != 0 || nc_open(before, NC_NOWRITE, &from) != NC_NOERR ||
      nc_create(path, NC_CLOBBER | NC_64BIT_DATA, &to) != NC_NOERR)
    return status_set(STATUS_FILE, "%s: cannot convert it", path);
  const int code = classic_copy(from, to);
  nc_close(from);
  remove(before);
  if (nc_close(to) != NC_NOERR || code != NC_NOERR || store_seal(path) != 0)
    return status_set(STATUS_FILE, "%s: cannot convert it: %s", path, nc_strerror(code));
  return STATUS_OK;
}
