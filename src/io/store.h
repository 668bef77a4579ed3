/* NetCDF files, written so that a reader never sees an incomplete one: under a temporary name in the same
 * folder, then closed, synced and renamed. Files of netCDF-4 are written, with deflate on large variables;
 * classic files are read too.
 *
 * Every function returns STATUS_FILE, with the path in the message, if the library or the disk fails, and
 * STATUS_INPUT if a file that a user supplied lacks something or has the wrong shape. */
#pragma once

#include "core/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  STORE_DOUBLE,
  STORE_FLOAT,
  STORE_INT,
  STORE_INT64,
  STORE_BYTE,
  STORE_CHAR,
  STORE_STRING
} StoreType;

typedef struct StoreFile StoreFile;

/* Configures the HDF5 library for the whole process, before its first file. Only for a program to which the
 * process belongs, not for a library. */
void store_prepare_library(void);

/* Checks a path. Returns STATUS_INPUT if it contains a backslash, which NetCDF takes for a slash. */
Status store_path_check(const char *path);
/* Begins writing `path`. End *out with store_finish or store_abandon. */
Status store_create(const char *path, StoreFile **out);
/* Begins writing `path` likewise, but composes the file in memory, and writes it to the disk as it is
 * finished. HDF5 never lets go of a file on a disk that became full: its descriptor stays open, and the
 * process dies at exit, unless store_prepare_library was called first. For libraries, whose files are small.
 */
Status store_create_in_memory(const char *path, StoreFile **out);
/* Closes the file, appends a checksum, syncs it, renames it to its final name, syncs the folder, and frees
 * `file`; on failure the temporary file is removed, and `file` is freed all the same. If `written` is not
 * STATUS_OK, abandons the file instead (NULL: it could not be created) and returns `written`. */
Status store_finish(StoreFile *file, Status written);
/* Closes a file without finishing it, and frees it: a file being written is removed. NULL is allowed. */
void store_abandon(StoreFile *file);
/* Abandons a file at the end of a scope, for SCOPED (core/arena.h). */
static inline void store_close(StoreFile **file) { store_abandon(*file); }

/* Defines a dimension; length 0 makes a record dimension without records. */
Status store_dimension(StoreFile *file, const char *name, size_t length, int *id);
/* Defines a variable over `rank` dimensions; long_name and units may be NULL. Reals get _FillValue = NaN,
 * unless the variable has the name of one of its dimensions: a coordinate has no missing values. */
Status store_variable(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                      const char *long_name, const char *units);
/* Writes a global attribute. */
Status store_real_attribute(StoreFile *file, const char *name, double value);
Status store_int_attribute(StoreFile *file, const char *name, int64_t value);
/* Writes an attribute of a variable; `variable` NULL means global. */
Status store_text_attribute(StoreFile *file, const char *variable, const char *name, const char *value);
/* Writes the attributes that explain a variable of flags: its values, and their meanings separated by blanks.
 */
Status store_flags(StoreFile *file, const char *variable, int count, const signed char *values,
                   const char *meanings);
/* Writes the hyperslab start[rank], count[rank] of a variable, whose type `data` has. */
Status store_put_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                      const void *data);
/* Writes a hyperslab of numbers, converted to the type of the variable. */
Status store_put_doubles_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                              const double *data);
/* Defines a variable and writes all of it. */
Status store_write(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                   const char *long_name, const char *units, const void *data);
/* Writes texts[n] as a char variable (dimension, NAME_length), NUL-padded, with _Encoding = utf-8; as a
 * variable of strings (dimension) if a text has other than ASCII characters. */
Status store_texts(StoreFile *file, const char *name, int dimension, int n, const char *const *texts,
                   const char *long_name);

/* Returns whether `path` ends in .nc, .nc4 or .cdf, or the file begins with the magic bytes of NetCDF. */
bool store_is_netcdf(const char *path);
/* Opens a file for reading; close it with store_abandon. A file that is not NetCDF, damaged or cut off is
 * STATUS_INPUT; one that cannot be read is STATUS_FILE. A checksum (store_finish appends one) must
 * match; a file without one may be a user's, unless a damaged checksum follows its data. */
Status store_open(const char *path, StoreFile **out);
/* Opens a file that only this program writes (finished tasks, fitted priors, results): without its checksum
 * it is damaged. */
Status store_open_own(const char *path, StoreFile **out);
const char *store_path(const StoreFile *file);
bool store_has_variable(StoreFile *file, const char *name);
bool store_has_dimension(StoreFile *file, const char *name);
/* Returns whether there is a global attribute of that name, whatever its type. */
bool store_has_attribute(StoreFile *file, const char *name);
Status store_dimension_length(StoreFile *file, const char *name, size_t *length);
/* Checks that variable `name` has exactly this shape, rank and lengths[rank]; an entry of SIZE_MAX is filled
 * in instead. Arrays of that shape can be allocated: the file is long enough to hold the variable. */
Status store_shape(StoreFile *file, const char *name, int rank, size_t *lengths);
/* Checks that variable `name`, whose rank is known, has the dimensions names[rank], in this order. */
Status store_axes(StoreFile *file, const char *name, int rank, const char *const *names);
/* Returns whether axis `axis` (from 0) of variable `name` has the dimension `dimension`. */
bool store_axis_is(StoreFile *file, const char *name, int axis, const char *dimension);
/* Reads the hyperslab start[rank], count[rank] of a variable, converted to `type`, or all of it if `start` is
 * NULL. Reals are never read as integers, packed variables (scale_factor, add_offset, _Unsigned) are refused,
 * and a value that does not fit is an error. Missing values (_FillValue, missing_value, valid_min, valid_max,
 * valid_range) become NaN in doubles and floats, and are refused in integers. */
Status store_get_part(StoreFile *file, const char *name, StoreType type, const size_t *start,
                      const size_t *count, void *out);
/* What a message adds to a NaN that was read. */
#define STORE_NAN " or marked as missing"
/* Reads a whole variable. */
Status store_get_doubles(StoreFile *file, const char *name, double *out);
Status store_get_int64s(StoreFile *file, const char *name, int64_t *out);
/* Reads a global attribute: a text, into `memory`, or one number. */
Status store_get_text_attribute(Arena *memory, StoreFile *file, const char *name, const char **out);
Status store_get_real_attribute(StoreFile *file, const char *name, double *out);
Status store_get_int_attribute(StoreFile *file, const char *name, int64_t *out);

/* Writes a text file in the same way (temporary name, fsync, rename). Unless `replace`, keeps a file that is
 * already at `path`, or that another process puts there meanwhile. */
Status store_write_text(const char *path, const char *text, bool replace);
/* Reads a whole regular file of at most `limit` bytes as NUL-terminated text; free() it. A longer one is
 * STATUS_INPUT, and is never held in memory as a whole. */
Status store_read_text(const char *path, size_t limit, char **out, size_t *size);
