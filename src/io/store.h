/* NetCDF files, written so that a reader never sees half of one: a temporary name in the same folder, closed,
 * synced, renamed.
 *
 * Every function returns STATUS_FILE with the path in the sentence when the library or the disk fails,
 * STATUS_INPUT when a file that a user gave lacks something or has the wrong shape. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  STORE_CLASSIC, /* CDF-5: small files that are quick to write (finished tasks) */
  STORE_NETCDF4 /* netCDF-4 with deflate on large variables (results, priors, draws) */
} StoreFormat;

typedef enum { STORE_DOUBLE, STORE_FLOAT, STORE_INT, STORE_INT64, STORE_BYTE, STORE_CHAR } StoreType;

typedef struct StoreFile StoreFile;

/* Makes settings of the HDF5 library for the whole process, for a program whose own this process is,
 * before its first file. */
void store_prepare_library(void);

/* Checks a path. NetCDF takes a backslash for a slash: STATUS_INPUT with a sentence when `path` has one. */
Status store_path_check(const char *path);
/* Begins to write `path`. *out is ended by store_finish, store_commit or store_abandon. */
Status store_create(const char *path, StoreFormat format, StoreFile **out);
/* Closes, append a checksum, fsync, rename to the final name, fsync the folder, free. On failure the
 * temporary file is removed and `file` is freed all the same. */
Status store_commit(StoreFile *file);
/* Removes the temporary file (when writing), closes (when reading), and frees. NULL is allowed. */
void store_abandon(StoreFile *file);
/* Abandons the file of a scope, for SCOPED (core/arena.h). */
static inline void store_close(StoreFile **file) { store_abandon(*file); }
/* Commits a file that was `written`, and otherwise abandons it and hands up why. */
Status store_finish(StoreFile *file, Status written);

/* Defines a dimension; length 0 makes a record dimension without records (at most one in a classic file). */
Status store_dimension(StoreFile *file, const char *name, size_t length, int *id);
/* Defines a variable over `rank` dimensions; long_name and units may be NULL. Reals get _FillValue = NaN,
 * unless the variable bears the name of one of its dimensions: a coordinate has no missing values. */
Status store_variable(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                      const char *long_name, const char *units, int *id);
/* Defines a variable of reals that is neither compressed nor filled, in a netCDF-4 file, for several
 * processes to write (store_plain_write). */
Status store_plain_variable(StoreFile *file, const char *name, int rank, const int *dimensions,
                            const char *long_name, const char *units, int *id);
/* Gives the plain variables ids[count] their room in the file: offsets[count] is the byte of each where
 * its first value stands. All of them are defined before. */
Status store_plain_place(StoreFile *file, int count, const int *ids, uint64_t *offsets);
/* Returns the name under which the file is written. */
char *store_temporary(const StoreFile *file);
/* Writes values[count] at a byte of the file that `fd` is open on, `path` to its user. */
Status store_plain_write(int fd, const char *path, uint64_t offset, size_t count, const double *values);
/* Writes attributes; `variable` NULL means global. */
Status store_text_attribute(StoreFile *file, const char *variable, const char *name, const char *value);
Status store_real_attribute(StoreFile *file, const char *variable, const char *name, double value);
Status store_int_attribute(StoreFile *file, const char *variable, const char *name, int64_t value);
Status store_bytes_attribute(StoreFile *file, const char *variable, const char *name, int count,
                             const signed char *values);
/* Writes a whole variable, or the hyperslab start[rank], count[rank]. The type of `data` is that of the
 * variable. */
Status store_put(StoreFile *file, int variable, const void *data);
Status store_put_part(StoreFile *file, int variable, const size_t *start, const size_t *count,
                      const void *data);
/* Defines a variable, and writes all of it. */
Status store_write(StoreFile *file, const char *name, StoreType type, int rank, const int *dimensions,
                   const char *long_name, const char *units, const void *data);
/* Writes texts[n] as a char variable (dimension, NAME_length), NUL-padded, with _Encoding = utf-8. */
Status store_texts(StoreFile *file, const char *name, int dimension, int n, const char *const *texts,
                   const char *long_name);

/* Returns whether `path` ends in .nc, .nc4 or .cdf, or begins with NetCDF's first bytes. */
bool store_is_netcdf(const char *path);
/* Opens for reading; ended by store_abandon. A file that is not NetCDF, damaged or cut off is
 * STATUS_INPUT; one that cannot be read STATUS_FILE. A file with a checksum (all of store_commit) must fit
 * it; one without may be a user's own, unless a damaged checksum stands behind its data. */
Status store_open(const char *path, StoreFile **out);
/* Opens a file that only this program writes (finished tasks, fitted priors, results): without its
 * checksum it is damaged. */
Status store_open_own(const char *path, StoreFile **out);
const char *store_path(const StoreFile *file);
bool store_has_variable(StoreFile *file, const char *name);
bool store_has_dimension(StoreFile *file, const char *name);
/* Returns whether there is a global attribute of that name, of any type. */
bool store_has_attribute(StoreFile *file, const char *name);
Status store_dimension_length(StoreFile *file, const char *name, size_t *length);
/* Checks that variable `name` has exactly the named dimensions' shape: rank and lengths[rank]; SIZE_MAX in
 * lengths is filled in. What is filled in can be allocated: the file is long enough to hold the variable. */
Status store_shape(StoreFile *file, const char *name, int rank, size_t *lengths);
/* Checks that variable `name`, whose shape is known, lies along the dimensions names[rank], in this order. */
Status store_axes(StoreFile *file, const char *name, int rank, const char *const *names);
/* Returns whether axis `axis` (from 0) of variable `name` is along the dimension of that name. */
bool store_axis_is(StoreFile *file, const char *name, int axis, const char *dimension);
/* Reads a whole variable, converted to the type asked for. Reals are never read as integers, packed
 * variables (scale_factor) are refused, a value that does not fit is an error. Missing values (_FillValue)
 * come as NaN in doubles. */
Status store_get_doubles(StoreFile *file, const char *name, double *out);
/* Reads the hyperslab start[rank], count[rank]. */
Status store_get_doubles_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                              double *out);
Status store_get_int64s_part(StoreFile *file, const char *name, const size_t *start, const size_t *count,
                             int64_t *out);
Status store_get_floats(StoreFile *file, const char *name, float *out);
Status store_get_int64s(StoreFile *file, const char *name, int64_t *out);
Status store_get_bytes(StoreFile *file, const char *name, signed char *out);
/* Reads a text attribute; *out is allocated; free() it. */
Status store_get_text_attribute(StoreFile *file, const char *variable, const char *name, char **out);
Status store_get_real_attribute(StoreFile *file, const char *variable, const char *name, double *out);
Status store_get_int_attribute(StoreFile *file, const char *variable, const char *name, int64_t *out);

/* Writes text files by the same rule (temporary name, fsync, rename). */
Status store_write_text(const char *path, const char *text);
/* Writes likewise, but a file that stands at `path`, or that another process puts there meanwhile, stays. */
Status store_write_text_first(const char *path, const char *text);
/* Reads the whole of a regular file of at most `limit` bytes as NUL-terminated text; free() it. A longer
 * one is STATUS_INPUT, and no more of it than `limit` is ever in memory. */
Status store_read_text(const char *path, size_t limit, char **out, size_t *size);
