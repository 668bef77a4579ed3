#include "library/library.h"

#include "io/csv_fields.h"
#include "io/version.h"

#include <math.h>
#include <netcdf.h>
#include <pthread.h>
#include <string.h>

const char *thompson_version(void) { return VERSION_NUMBER; }

const char *thompson_error(void) { return status_message(); }

Status library_check(const char *name, size_t count, const double *values) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs(values[i]) <= DATASET_MOST))
      return status_set(STATUS_INPUT,
                        "%s: element %zu (from 0) is %g; every value must be finite and at most %g in size",
                        name, i, values[i], DATASET_MOST);
  return STATUS_OK;
}

Status library_options(Arena *memory, const char *options, LibraryOptions *out) {
  *out = (LibraryOptions){0};
  if (!options || !*options) return STATUS_OK;
  const size_t size = strlen(options) + 1;
  char *copy;
  ALLOCATE(memory, copy, size);
  memcpy(copy, options, size);
  int depth = 0;
  out->text[out->count++] = copy;
  for (char *c = copy; *c; c++) {
    depth += (*c == '[') - (*c == ']');
    if (*c != ',' || depth > 0) continue;
    if (out->count == LIBRARY_MOST_OPTIONS)
      return status_set(STATUS_INPUT, "more than %d options", LIBRARY_MOST_OPTIONS);
    *c = '\0';
    out->text[out->count++] = c + 1;
  }
  return STATUS_OK;
}

const char *library_take_option(LibraryOptions *options, const char *name) {
  const size_t length = strlen(name);
  const char *value = NULL;
  int kept = 0;
  for (int i = 0; i < options->count; i++) {
    const char *text = options->text[i];
    if (strncmp(text, name, length) == 0 && text[length] == '=')
      value = text + length + 1;
    else
      options->text[kept++] = text;
  }
  options->count = kept;
  return value;
}

static pthread_mutex_t files = PTHREAD_MUTEX_INITIALIZER;

LibraryFiles library_enter_files(void) {
  LibraryFiles before;
  pthread_mutex_lock(&files);
  /* At its first use NetCDF silences HDF5 for good, which library_leave_files must not undo. */
  nc_initialize();
  H5Eget_auto2(H5E_DEFAULT, &before.print, &before.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return before;
}

void library_leave_files(LibraryFiles before) {
  H5Eset_auto2(H5E_DEFAULT, before.print, before.data);
  pthread_mutex_unlock(&files);
}
