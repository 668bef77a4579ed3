/* Writing NetCDF files, and writing and reading text files; NetCDF files are read by store_read.c. */
#include "io/store.h"

#include "core/arena.h"
#include "io/durable.h"
#include "io/input.h"
#include "io/store_internal.h"

#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <netcdf.h>
#include <netcdf_mem.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
  COMPRESS_FROM = 1 << 16, /* bytes of a variable; below this, deflate costs more than it saves */
  CHUNK_BYTES = 1 << 20 /* the largest chunk; the library caches many of them */
};

static const nc_type external_types[] = {
    [STORE_DOUBLE] = NC_DOUBLE, [STORE_FLOAT] = NC_FLOAT, [STORE_INT] = NC_INT,      [STORE_INT64] = NC_INT64,
    [STORE_BYTE] = NC_BYTE,     [STORE_CHAR] = NC_CHAR,   [STORE_STRING] = NC_STRING};

void store_prepare_library(void) {
  /* Files are renamed into place, never written while they are read, so HDF5's locks guard nothing; and on
   * network file systems without flock they make every open fail. The user's own setting wins. */
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
  /* A file whose close failed (full disk) stays in HDF5's tables; flushing it once more at exit crashes. */
  H5dont_atexit();
}

Status store_check(StoreFile *file, int code, const char *format, ...) {
  if (code == NC_NOERR) return STATUS_OK;
  file->failed = true;
  const int error = errno;
  struct statvfs disk;
  const char *reason = code > 0 ? strerror(code) : nc_strerror(code);
  /* If the disk is full, HDF5 says only "HDF error" or "permission denied"; the system knows better. */
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO || error == EROFS)
    reason = strerror(error);
  else if (file->temporary && (code == NC_EHDFERR || code == EACCES) &&
           statvfs(file->temporary, &disk) == 0 && disk.f_bavail == 0)
    reason = strerror(ENOSPC);
  errno = 0;
  char action[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(action, sizeof action, format, arguments);
  va_end(arguments);
  Status kind = file->temporary || code > 0 ? STATUS_FILE : STATUS_INPUT;
  return status_set(kind, "%s: cannot %s: %s", file->path, action, reason);
}

/* Writes a whole file and returns 0 or errno. */
static int store_write_bytes(const char *path, size_t size, const void *bytes) {
  errno = 0;
  FILE *stream = fopen(path, "we");
  if (!stream) return errno;
  const bool written = fwrite(bytes, 1, size, stream) == size;
  const int error = written ? 0 : errno;
  return fclose(stream) == 0 || error != 0 ? error : errno;
}

/* Removes the temporary file. After a failed close HDF5 keeps the file open until the program ends, so its
 * space is released first. */
static void store_discard_temporary(const char *temporary) {
  if (truncate(temporary, 0) == 0) unlink(temporary);
}

Status store_path_check(const char *path) {
  if (!strchr(path, '\\')) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "'%s' contains a backslash, which NetCDF treats as a slash; use another name", path);
}

Status store_new(const char *path, StoreFile **out) {
  TRY(store_path_check(path));
  TRY(memory_new((void **)out, 1, sizeof **out + strlen(path) + 1));
  strcpy((*out)->path, path);
  (*out)->ncid = -1;
  return STATUS_OK;
}

Status store_create(const char *path, StoreFile **out) {
  SCOPED(StoreFile *, file, store_close);
  *out = NULL;
  TRY(store_new(path, &file));
  TRY(durable_begin(path, &file->temporary));
  errno = 0;
  TRY(store_check(file, nc_create(file->temporary, NC_CLOBBER | NC_NETCDF4, &file->ncid), "create it"));
  *out = file;
  file = NULL;
  return STATUS_OK;
}

Status store_create_in_memory(const char *path, StoreFile **out) {
  SCOPED(StoreFile *, file, store_close);
  *out = NULL;
  TRY(store_new(path, &file));
  TRY(durable_begin(path, &file->temporary));
  errno = 0;
  TRY(store_check(file, nc_create_mem(file->temporary, NC_NETCDF4, 0, &file->ncid), "create it"));
  file->in_memory = true;
  *out = file;
  file = NULL;
  return STATUS_OK;
}

/* Closes the file of the netCDF library, and writes what is still in memory. */
static Status store_end(StoreFile *file) {
  NC_memio content = {0};
  if (!file->in_memory) return store_check(file, nc_close(file->ncid), "write it");
  TRY(store_check(file, nc_close_memio(file->ncid, &content), "write it"));
  /* What follows the end is room that HDF5 did not need. */
  const uint64_t end = content.size < STORE_HDF5_HEAD ? UINT64_MAX : store_hdf5_end(content.memory);
  const size_t size = end < content.size ? (size_t)end : content.size;
  const int error = store_write_bytes(file->temporary, size, content.memory);
  free(content.memory);
  return store_check(file, error, "write it");
}

Status store_finish(StoreFile *file, Status written) {
  if (written != STATUS_OK) {
    store_abandon(file);
    return written;
  }
  ASSERT(file->temporary);
  Status status = store_end(file);
  if (status == STATUS_OK) status = store_check(file, store_seal(file->temporary), "write it");
  if (status == STATUS_OK)
    status = durable_publish(file->temporary, file->path, true);
  else
    store_discard_temporary(file->temporary);
  free(file->temporary);
  free(file);
  return status;
}

void store_abandon(StoreFile *file) {
  if (!file) return;
  if (file->temporary) {
    /* Aborting a file that HDF5 could not write (full disk) crashes in HDF5, so such a file stays open until
     * the program ends. */
    if (!file->failed) nc_abort(file->ncid);
    store_discard_temporary(file->temporary);
  } else {
    nc_close(file->ncid);
  }
  free(file->temporary);
  free(file);
}

Status store_dimension(StoreFile *file, const char *name, size_t length, int *id) {
  return store_check(file, nc_def_dim(file->ncid, name, length, id), "define the dimension '%s'", name);
}

/* Chooses how the values of variable `id` lie in the file. */
static Status store_lay_out(StoreFile *file, int id, const char *name, StoreType type, int rank,
                            const size_t *lengths) {
  if (type == STORE_STRING) return STATUS_OK; /* the texts lie elsewhere in the file */
  size_t chunk[NC_MAX_VAR_DIMS] = {0}, bytes;
  TRY(store_check(file, nc_inq_type(file->ncid, external_types[type], NULL, &bytes),
                  "define the variable '%s'", name));
  for (int axis = 0; axis < rank; axis++) {
    chunk[axis] = lengths[axis];
    bytes *= lengths[axis];
  }
  if (bytes < COMPRESS_FROM || rank == 0) return STATUS_OK;
  /* A large variable is cut into chunks, which are deflated. A chunk keeps the last axes whole as far as they
   * fit, since data are written in that order. */
  for (int axis = 0; axis < rank; axis++)
    while (bytes > CHUNK_BYTES && chunk[axis] > 1) {
      const size_t half = (chunk[axis] + 1) / 2;
      bytes = bytes / chunk[axis] * half;
      chunk[axis] = half;
    }
  TRY(store_check(file, nc_def_var_chunking(file->ncid, id, NC_CHUNKED, chunk), "chunk the variable '%s'",
                  name));
  return store_check(file, nc_def_var_deflate(file->ncid, id, 1, 1, 1), "compress the variable '%s'", name);
}

Status store_variable(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                      const char *long_name, const char *units) {
  const double missing_double = NAN;
  const float missing_float = NAN;
  const bool real = type == STORE_DOUBLE || type == STORE_FLOAT;
  bool coordinate = false; /* the name is that of one of the dimensions */
  size_t lengths[NC_MAX_VAR_DIMS];
  int id;
  for (int axis = 0; axis < rank; axis++) {
    char dimension[NC_MAX_NAME + 1];
    TRY(store_check(file, nc_inq_dim(file->ncid, dimensions[axis], dimension, &lengths[axis]),
                    "inspect a dimension of '%s'", name));
    coordinate = coordinate || strcmp(dimension, name) == 0;
  }
  int code = nc_def_var(file->ncid, name, external_types[type], rank, dimensions, &id);
  /* CF: a coordinate variable has no missing values. */
  if (code == NC_NOERR && real && !coordinate)
    code = nc_put_att(file->ncid, id, "_FillValue", external_types[type], 1,
                      type == STORE_FLOAT ? (const void *)&missing_float : &missing_double);
  TRY(store_check(file, code, "define the variable '%s'", name));
  if (type == STORE_CHAR) TRY(store_text_attribute(file, name, "_Encoding", "utf-8"));
  if (long_name) TRY(store_text_attribute(file, name, "long_name", long_name));
  if (units) TRY(store_text_attribute(file, name, "units", units));
  return store_lay_out(file, id, name, type, rank, lengths);
}

/* Writes values[count], which are in memory as in the file. */
static Status store_put_attribute(StoreFile *file, const char *variable, const char *name, nc_type type,
                                  size_t count, const void *values) {
  int id = NC_GLOBAL;
  if (variable)
    TRY(store_check(file, nc_inq_varid(file->ncid, variable, &id), "find the variable '%s'", variable));
  return store_check(file, nc_put_att(file->ncid, id, name, type, count, values), "write the attribute '%s'",
                     name);
}

Status store_text_attribute(StoreFile *file, const char *variable, const char *name, const char *value) {
  return store_put_attribute(file, variable, name, NC_CHAR, strlen(value), value);
}

Status store_real_attribute(StoreFile *file, const char *name, double value) {
  return store_put_attribute(file, NULL, name, NC_DOUBLE, 1, &value);
}

Status store_int_attribute(StoreFile *file, const char *name, int64_t value) {
  return store_put_attribute(file, NULL, name, NC_INT64, 1, &value);
}

Status store_flags(StoreFile *file, const char *variable, int count, const signed char *values,
                   const char *meanings) {
  TRY(store_put_attribute(file, variable, "flag_values", NC_BYTE, (size_t)count, values));
  return store_text_attribute(file, variable, "flag_meanings", meanings);
}

Status store_write(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                   const char *long_name, const char *units, const void *data) {
  int id;
  TRY(store_variable(file, name, type, rank, dimensions, long_name, units));
  int code = nc_inq_varid(file->ncid, name, &id);
  if (code == NC_NOERR) code = nc_put_var(file->ncid, id, data);
  return store_check(file, code, "write the variable '%s'", name);
}

Status store_put_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                      const void *data) {
  int id, code = nc_inq_varid(file->ncid, name, &id);
  if (code == NC_NOERR) code = nc_put_vara(file->ncid, id, start, count, data);
  return store_check(file, code, "write the variable '%s'", name);
}

Status store_put_doubles_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                              const double *data) {
  int id, code = nc_inq_varid(file->ncid, name, &id);
  if (code == NC_NOERR) code = nc_put_vara_double(file->ncid, id, start, count, data);
  return store_check(file, code, "write the variable '%s'", name);
}

static bool store_is_ascii(const char *text) {
  while (*text && (unsigned char)*text < 0x80) text++;
  return *text == '\0';
}

Status store_texts(StoreFile *file, const char *name, int dimension, int n, const char *const *texts,
                   const char *long_name) {
  SCRATCH_ARENA(scratch);
  size_t length = 1;
  bool ascii = true;
  for (int i = 0; i < n; i++) {
    if (strlen(texts[i]) > length) length = strlen(texts[i]);
    ascii = ascii && store_is_ascii(texts[i]);
  }
  /* netCDF4-python cuts a char variable into texts after decoding, by characters instead of bytes, so that
   * every text after one with a longer character would be wrong. */
  if (!ascii) return store_write(file, name, STORE_STRING, 1, &dimension, long_name, NULL, texts);
  char length_name[NC_MAX_NAME + 1];
  snprintf(length_name, sizeof length_name, "%s_length", name);
  int dimensions[2] = {dimension};
  TRY(store_dimension(file, length_name, length, &dimensions[1]));
  TRY(store_variable(file, name, STORE_CHAR, 2, dimensions, long_name, NULL));
  if (n == 0) return STATUS_OK;
  char *padded; /* [n, length] */
  ALLOCATE(&scratch, padded, (size_t)n * length);
  for (int i = 0; i < n; i++) memcpy(padded + (size_t)i * length, texts[i], strlen(texts[i]));
  return store_put_part(file, name, (size_t[]){0, 0}, (size_t[]){(size_t)n, length}, padded);
}

/* ---- whole text files */

Status store_write_text(const char *path, const char *text, bool replace) {
  SCOPED(char *, temporary, memory_free_text);
  TRY(durable_begin(path, &temporary));
  FILE *stream = fopen(temporary, "we");
  int error = stream && fputs(text, stream) >= 0 ? 0 : errno;
  if (stream && fclose(stream) != 0 && error == 0) error = errno;
  if (error == 0) return durable_publish(temporary, path, replace);
  unlink(temporary);
  return status_set(STATUS_FILE, "cannot write %s: %s", path, strerror(error));
}

Status store_read_text(const char *path, size_t limit, char **out, size_t *size) {
  SCOPED(FILE *, stream, input_close);
  char block[1 << 14];
  size_t total = 0, n;
  *out = NULL;
  *size = 0;
  TRY(input_stream(path, &stream));
  FILE *text = open_memstream(out, size);
  if (!text) return status_set(STATUS_INTERNAL, "out of memory");
  while (total <= limit && (n = fread(block, 1, sizeof block, stream)) > 0) {
    fwrite(block, 1, n, text);
    total += n;
  }
  const int error = ferror(stream) ? errno : 0;
  const bool kept = !ferror(text);
  Status status = fclose(text) == 0 && kept ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory");
  if (error != 0)
    status = status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(error));
  else if (total > limit)
    status = status_set(STATUS_INPUT, "%s: more than %zu bytes", path, limit);
  if (status == STATUS_OK) return STATUS_OK;
  free(*out);
  *out = NULL;
  *size = 0;
  return status;
}
