/* Reading NetCDF files that this program or a user wrote; nothing in a file is taken on trust. */
#include "core/memory.h"
#include "io/input.h"
#include "io/store.h"
#include "io/store_internal.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { MAGIC_OTHER, MAGIC_CLASSIC, MAGIC_HDF5 } Magic;

static Magic magic_of(const unsigned char *head, size_t size) {
  if (size >= 8 && memcmp(head, "\211HDF\r\n\032\n", 8) == 0) return MAGIC_HDF5;
  bool classic = size >= 4 && memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5);
  return classic ? MAGIC_CLASSIC : MAGIC_OTHER;
}

/* What the first bytes of a file say it is. */
static Status look(const char *path, Magic *magic) {
  int fd;
  unsigned char head[8];
  TRY(input_open(path, &fd));
  ssize_t n = read(fd, head, sizeof head);
  int error = errno;
  close(fd);
  if (n < 0) return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(error));
  *magic = magic_of(head, (size_t)n);
  return STATUS_OK;
}

bool store_is_netcdf(const char *path) {
  static const char *const endings[] = {".nc", ".nc4", ".cdf"};
  const char *ending = strrchr(path, '.');
  for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
    if (strcmp(ending, endings[i]) == 0) return true;
  Magic magic;
  return look(path, &magic) == STATUS_OK && magic != MAGIC_OTHER;
}

Status store_open(const char *path, StoreFile **out) {
  *out = NULL;
  store_prepare_library();
  Magic magic;
  TRY(store_path_check(path));
  TRY(look(path, &magic));
  if (magic == MAGIC_OTHER) return status_set(STATUS_INPUT, "%s is not a NetCDF file", path);
  TRY(store_seal_check(path));
  if (magic == MAGIC_CLASSIC) TRY(store_classic_check(path));
  StoreFile *file;
  NEW(file, 1);
  Status status;
  NEW_GOTO(status, file->path, strlen(path) + 1, fail);
  strcpy(file->path, path);
  file->format = magic == MAGIC_CLASSIC ? STORE_CLASSIC : STORE_NETCDF4;
  errno = 0;
  int code = nc_open(path, NC_NOWRITE, &file->ncid);
  TRY_GOTO(status, store_check(file, code, "open it as NetCDF (damaged or cut off?)"), fail);
  *out = file;
  return STATUS_OK;
fail:
  free(file->path);
  free(file);
  return status;
}

const char *store_path(const StoreFile *file) { return file->path; }

bool store_has_variable(StoreFile *file, const char *name) {
  int id;
  return nc_inq_varid(file->ncid, name, &id) == NC_NOERR;
}

bool store_has_dimension(StoreFile *file, const char *name) {
  int id;
  return nc_inq_dimid(file->ncid, name, &id) == NC_NOERR;
}

Status store_dimension_length(StoreFile *file, const char *name, size_t *length) {
  int id;
  if (!store_has_dimension(file, name))
    return status_set(STATUS_INPUT, "%s has no dimension '%s'", file->path, name);
  TRY(store_check(file, nc_inq_dimid(file->ncid, name, &id), "find the dimension '%s'", name));
  return store_check(file, nc_inq_dimlen(file->ncid, id, length), "read the dimension '%s'", name);
}

/* A variable that is read: its id, external type and rank. */
typedef struct {
  int id, rank;
  nc_type type;
} Variable;

static Status find(StoreFile *file, const char *name, Variable *variable) {
  if (!store_has_variable(file, name))
    return status_set(STATUS_INPUT, "%s has no variable '%s'", file->path, name);
  TRY(store_check(file, nc_inq_varid(file->ncid, name, &variable->id), "find the variable '%s'", name));
  int code = nc_inq_var(file->ncid, variable->id, NULL, &variable->type, &variable->rank, NULL, NULL);
  return store_check(file, code, "look at the variable '%s'", name);
}

static Status find_dimensions(StoreFile *file, const char *name, const Variable *variable,
                              int dimensions[NC_MAX_VAR_DIMS]) {
  int code = nc_inq_vardimid(file->ncid, variable->id, dimensions);
  return store_check(file, code, "look at the variable '%s'", name);
}

/* Write "(3, any, 5)" into out; SIZE_MAX is "any". */
static void print_shape(int rank, const size_t *lengths, size_t size, char *out) {
  size_t used = (size_t)snprintf(out, size, "(");
  for (int axis = 0; axis < rank && used < size; axis++) {
    const char *comma = axis == 0 ? "" : ", ";
    int n = lengths[axis] == SIZE_MAX ? snprintf(out + used, size - used, "%sany", comma)
                                      : snprintf(out + used, size - used, "%s%zu", comma, lengths[axis]);
    used += (size_t)n;
  }
  if (used < size) snprintf(out + used, size - used, ")");
}

/* Can sizes be computed from these lengths without overflow? No machine holds more elements. */
static bool countable(int rank, const size_t *lengths) {
  const size_t most = (size_t)1 << 48;
  size_t count = 1;
  for (int axis = 0; axis < rank; axis++)
    if (__builtin_mul_overflow(count, lengths[axis], &count)) return false;
  return count <= most;
}

Status store_shape(StoreFile *file, const char *name, int rank, size_t *lengths) {
  Variable variable;
  int dimensions[NC_MAX_VAR_DIMS];
  size_t found[NC_MAX_VAR_DIMS];
  TRY(find(file, name, &variable));
  TRY(find_dimensions(file, name, &variable, dimensions));
  bool same = variable.rank == rank;
  for (int axis = 0; axis < variable.rank; axis++) {
    int code = nc_inq_dimlen(file->ncid, dimensions[axis], &found[axis]);
    TRY(store_check(file, code, "look at the variable '%s'", name));
    same = same && (lengths[axis] == SIZE_MAX || lengths[axis] == found[axis]);
  }
  if (!same) {
    char expected_text[128], found_text[128];
    print_shape(rank, lengths, sizeof expected_text, expected_text);
    print_shape(variable.rank, found, sizeof found_text, found_text);
    return status_set(STATUS_INPUT, "%s: the variable '%s' has shape %s, expected %s", file->path, name,
                      found_text, expected_text);
  }
  if (!countable(rank, found))
    return status_set(STATUS_INPUT, "%s: the variable '%s' is too large", file->path, name);
  for (int axis = 0; axis < rank; axis++) lengths[axis] = found[axis];
  return STATUS_OK;
}

bool store_axis_is(StoreFile *file, const char *name, int axis, const char *dimension) {
  int id, rank, dimensions[NC_MAX_VAR_DIMS];
  char found[NC_MAX_NAME + 1];
  return nc_inq_varid(file->ncid, name, &id) == NC_NOERR &&
         nc_inq_varndims(file->ncid, id, &rank) == NC_NOERR && axis < rank &&
         nc_inq_vardimid(file->ncid, id, dimensions) == NC_NOERR &&
         nc_inq_dimname(file->ncid, dimensions[axis], found) == NC_NOERR && strcmp(found, dimension) == 0;
}

static bool is_integer(nc_type type) {
  return (type >= NC_BYTE && type <= NC_INT && type != NC_CHAR) || (type >= NC_UBYTE && type <= NC_UINT64);
}

static bool is_real(nc_type type) { return type == NC_FLOAT || type == NC_DOUBLE; }

static bool has_attribute(StoreFile *file, int variable, const char *name) {
  return nc_inq_att(file->ncid, variable, name, NULL, NULL) == NC_NOERR;
}

/* Find a variable whose type can be handed out as what the caller wants. */
static Status find_numbers(StoreFile *file, const char *name, bool integer_only, Variable *variable) {
  TRY(find(file, name, variable));
  if (!is_integer(variable->type) && (integer_only || !is_real(variable->type)))
    return status_set(STATUS_INPUT, "%s: the variable '%s' does not hold %s", file->path, name,
                      integer_only ? "integers" : "numbers");
  if (has_attribute(file, variable->id, "scale_factor") || has_attribute(file, variable->id, "add_offset"))
    return status_set(STATUS_INPUT,
                      "%s: the variable '%s' is packed (scale_factor or add_offset); store it unpacked",
                      file->path, name);
  return STATUS_OK;
}

bool store_has_attribute(StoreFile *file, const char *name) { return has_attribute(file, NC_GLOBAL, name); }

static Status count_elements(StoreFile *file, const char *name, const Variable *variable, size_t *count) {
  int dimensions[NC_MAX_VAR_DIMS];
  TRY(find_dimensions(file, name, variable, dimensions));
  *count = 1;
  for (int axis = 0; axis < variable->rank; axis++) {
    size_t length;
    int code = nc_inq_dimlen(file->ncid, dimensions[axis], &length);
    TRY(store_check(file, code, "look at the variable '%s'", name));
    *count *= length;
  }
  return STATUS_OK;
}

/* The value that stands for "missing" in a variable of reals: its own _FillValue, or the library's default.
 * The library hands out a _FillValue of any length and type from a classic file. */
static Status missing_value(StoreFile *file, const char *name, const Variable *variable, double *value) {
  double as_double;
  float as_float;
  nc_type type;
  size_t length;
  if (nc_inq_att(file->ncid, variable->id, "_FillValue", &type, &length) == NC_NOERR &&
      (length != 1 || type != variable->type))
    return status_set(STATUS_INPUT, "%s: the _FillValue of '%s' is not one number of the variable's type",
                      file->path, name);
  void *fill = variable->type == NC_DOUBLE ? (void *)&as_double : &as_float;
  int code = nc_inq_var_fill(file->ncid, variable->id, NULL, fill);
  TRY(store_check(file, code, "read the missing value of '%s'", name));
  *value = variable->type == NC_DOUBLE ? as_double : (double)as_float;
  return STATUS_OK;
}

/* Run one reading call of the library. A value that does not fit is its error to report, not a trap's. */
#define READ(file, name, call)                                                                               \
  do {                                                                                                       \
    fenv_t environment_;                                                                                     \
    feholdexcept(&environment_);                                                                             \
    errno = 0;                                                                                               \
    int code_ = (call);                                                                                      \
    fesetenv(&environment_);                                                                                 \
    TRY(store_check(file, code_, "read the variable '%s'", name));                                           \
  } while (0)

Status store_get_doubles(StoreFile *file, const char *name, double *out) {
  Variable variable;
  TRY(find_numbers(file, name, false, &variable));
  READ(file, name, nc_get_var_double(file->ncid, variable.id, out));
  if (!is_real(variable.type)) return STATUS_OK;
  double missing = NAN;
  size_t count;
  TRY(missing_value(file, name, &variable, &missing));
  TRY(count_elements(file, name, &variable, &count));
  for (size_t i = 0; i < count; i++)
    if (out[i] == missing) out[i] = NAN;
  return STATUS_OK;
}

Status store_get_floats(StoreFile *file, const char *name, float *out) {
  Variable variable;
  TRY(find_numbers(file, name, false, &variable));
  READ(file, name, nc_get_var_float(file->ncid, variable.id, out));
  return STATUS_OK;
}

Status store_get_ints(StoreFile *file, const char *name, int *out) {
  Variable variable;
  TRY(find_numbers(file, name, true, &variable));
  READ(file, name, nc_get_var_int(file->ncid, variable.id, out));
  return STATUS_OK;
}

Status store_get_int64s(StoreFile *file, const char *name, int64_t *out) {
  Variable variable;
  TRY(find_numbers(file, name, true, &variable));
  _Static_assert(sizeof(long long) == sizeof *out, "NetCDF reads 64-bit integers as long long");
  READ(file, name, nc_get_var_longlong(file->ncid, variable.id, (long long *)out));
  return STATUS_OK;
}

Status store_get_bytes(StoreFile *file, const char *name, signed char *out) {
  Variable variable;
  TRY(find_numbers(file, name, true, &variable));
  READ(file, name, nc_get_var_schar(file->ncid, variable.id, out));
  return STATUS_OK;
}

/* Find an attribute; `variable` NULL means global. */
static Status find_attribute(StoreFile *file, const char *variable, const char *name, int *owner,
                             nc_type *type, size_t *length) {
  *owner = NC_GLOBAL;
  if (variable) {
    Variable found;
    TRY(find(file, variable, &found));
    *owner = found.id;
  }
  if (nc_inq_att(file->ncid, *owner, name, type, length) != NC_NOERR)
    return status_set(STATUS_INPUT, "%s has no attribute '%s%s%s'", file->path, variable ? variable : "",
                      variable ? ":" : "", name);
  return STATUS_OK;
}

/* An attribute of the netCDF-4 type string, as some Python writers make them. */
static Status get_string_attribute(StoreFile *file, int owner, const char *name, char **out) {
  char *text = NULL;
  TRY(store_check(file, nc_get_att_string(file->ncid, owner, name, &text), "read the attribute '%s'", name));
  size_t length = text ? strlen(text) : 0;
  Status status;
  NEW_GOTO(status, *out, length + 1, end);
  if (length > 0) memcpy(*out, text, length);
end:
  nc_free_string(1, &text);
  return status;
}

Status store_get_text_attribute(StoreFile *file, const char *variable, const char *name, char **out) {
  int owner;
  nc_type type;
  size_t length;
  *out = NULL;
  TRY(find_attribute(file, variable, name, &owner, &type, &length));
  if (type == NC_STRING && length == 1) return get_string_attribute(file, owner, name, out);
  if (type != NC_CHAR)
    return status_set(STATUS_INPUT, "%s: the attribute '%s' is not a text", file->path, name);
  NEW(*out, length + 1);
  Status status =
      store_check(file, nc_get_att_text(file->ncid, owner, name, *out), "read the attribute '%s'", name);
  if (status != STATUS_OK) {
    free(*out);
    *out = NULL;
  }
  return status;
}

/* Find an attribute that is one number. */
static Status find_number(StoreFile *file, const char *variable, const char *name, bool integer_only,
                          int *owner) {
  nc_type type;
  size_t length;
  TRY(find_attribute(file, variable, name, owner, &type, &length));
  if (length != 1 || (!is_integer(type) && (integer_only || !is_real(type))))
    return status_set(STATUS_INPUT, "%s: the attribute '%s' is not one %s", file->path, name,
                      integer_only ? "integer" : "number");
  return STATUS_OK;
}

Status store_get_real_attribute(StoreFile *file, const char *variable, const char *name, double *out) {
  int owner;
  TRY(find_number(file, variable, name, false, &owner));
  return store_check(file, nc_get_att_double(file->ncid, owner, name, out), "read the attribute '%s'", name);
}

Status store_get_int_attribute(StoreFile *file, const char *variable, const char *name, int64_t *out) {
  int owner;
  TRY(find_number(file, variable, name, true, &owner));
  long long value = 0;
  TRY(store_check(file, nc_get_att_longlong(file->ncid, owner, name, &value), "read the attribute '%s'",
                  name));
  *out = value;
  return STATUS_OK;
}
