/* Reading NetCDF files that this program or a user wrote; nothing in a file is taken on trust. store_open.c
 * opens them. */
#include "core/arena.h"
#include "core/numeral.h"
#include "io/store_internal.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <string.h>

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
  if (nc_inq_dimid(file->ncid, name, &id) != NC_NOERR)
    return status_set(STATUS_INPUT, "%s has no dimension '%s'", file->path, name);
  return store_check(file, nc_inq_dimlen(file->ncid, id, length), "read the dimension '%s'", name);
}

/* A variable to read, with its shape. */
typedef struct {
  const char *name;
  int id, rank, dimensions[NC_MAX_VAR_DIMS];
  size_t lengths[NC_MAX_VAR_DIMS];
  nc_type type;
} Variable;

static Status store_read_find(StoreFile *file, const char *name, Variable *out) {
  out->name = name;
  if (nc_inq_varid(file->ncid, name, &out->id) != NC_NOERR)
    return status_set(STATUS_INPUT, "%s has no variable '%s'", file->path, name);
  int code = nc_inq_var(file->ncid, out->id, NULL, &out->type, &out->rank, out->dimensions, NULL);
  for (int axis = 0; code == NC_NOERR && axis < out->rank; axis++)
    code = nc_inq_dimlen(file->ncid, out->dimensions[axis], &out->lengths[axis]);
  return store_check(file, code, "inspect the variable '%s'", name);
}

/* Writes "(3, any, 5)" into out, SIZE_MAX being "any", or if there are `names`, "(component, dim)". */
static void store_print_axes(int rank, const size_t *lengths, const char *const *names, size_t size,
                             char *out) {
  size_t used = (size_t)snprintf(out, size, "(");
  for (int axis = 0; axis < rank && used < size; axis++) {
    char length[24] = "any";
    if (!names && lengths[axis] != SIZE_MAX) snprintf(length, sizeof length, "%zu", lengths[axis]);
    used += (size_t)snprintf(out + used, size - used, "%s%s", axis == 0 ? "" : ", ",
                             names ? names[axis] : length);
  }
  if (used < size) snprintf(out + used, size - used, ")");
}

/* Deflate packs at most this many bytes into one (zlib, "Technical details", maximum compression factor). */
enum { MOST_PACKED = 1032 };

/* Checks that the file is long enough to hold a variable of this shape. Otherwise it would consist of missing
 * values, and a file of a few bytes could make us allocate any amount of memory. */
static Status store_check_size(StoreFile *file, const char *name, nc_type type, int rank,
                               const size_t *lengths) {
  size_t bytes, most;
  size_t packed = file->classic ? 1 : MOST_PACKED;
  TRY(store_check(file, nc_inq_type(file->ncid, type, NULL, &bytes), "inspect the variable '%s'", name));
  if (__builtin_mul_overflow(file->size, packed, &most)) most = SIZE_MAX;
  bool countable = true;
  for (int axis = 0; axis < rank; axis++)
    countable = countable && !__builtin_mul_overflow(bytes, lengths[axis], &bytes);
  if (countable && bytes <= most) return STATUS_OK;
  char shape[128], size[32] = "above 2^64";
  store_print_axes(rank, lengths, NULL, sizeof shape, shape);
  if (countable) snprintf(size, sizeof size, "%zu", bytes);
  return status_set(
      STATUS_INPUT,
      "%s: the variable '%s' has shape %s, %s bytes, but the file has %ju, which hold at most %zu",
      file->path, name, shape, size, (uintmax_t)file->size, most);
}

Status store_shape(StoreFile *file, const char *name, int rank, size_t *lengths) {
  Variable variable;
  TRY(store_read_find(file, name, &variable));
  const size_t *found = variable.lengths;
  bool same = variable.rank == rank;
  for (int axis = 0; same && axis < rank; axis++)
    same = lengths[axis] == SIZE_MAX || lengths[axis] == found[axis];
  if (!same) {
    char expected_text[128], found_text[128];
    store_print_axes(rank, lengths, NULL, sizeof expected_text, expected_text);
    store_print_axes(variable.rank, found, NULL, sizeof found_text, found_text);
    return variable.rank == rank
               ? status_set(STATUS_INPUT, "%s: the variable '%s' has shape %s, expected %s", file->path, name,
                            found_text, expected_text)
               : status_set(STATUS_INPUT, "%s: the variable '%s' has shape %s, expected %s", file->path, name,
                            found_text, numeral_count(rank, "dimension").text);
  }
  TRY(store_check_size(file, name, variable.type, rank, found));
  if (!file->classic && rank > 0) {
    /* HDF5 reads whole chunks, and they may be larger than the variable. */
    int storage = NC_CONTIGUOUS;
    size_t chunk[NC_MAX_VAR_DIMS];
    int code = nc_inq_var_chunking(file->ncid, variable.id, &storage, chunk);
    TRY(store_check(file, code, "inspect the chunks of the variable '%s'", name));
    if (storage == NC_CHUNKED) TRY(store_check_size(file, name, variable.type, rank, chunk));
  }
  for (int axis = 0; axis < rank; axis++) lengths[axis] = found[axis];
  return STATUS_OK;
}

bool store_axis_is(StoreFile *file, const char *name, int axis, const char *dimension) {
  Variable variable;
  char found[NC_MAX_NAME + 1];
  return store_read_find(file, name, &variable) == STATUS_OK && axis < variable.rank &&
         nc_inq_dimname(file->ncid, variable.dimensions[axis], found) == NC_NOERR &&
         strcmp(found, dimension) == 0;
}

Status store_axes(StoreFile *file, const char *name, int rank, const char *const *names) {
  enum { MOST = 4 };
  Variable variable;
  char found[MOST][NC_MAX_NAME + 1], found_text[128], expected_text[128];
  const char *found_names[MOST];
  bool same = true;
  TRY(store_read_find(file, name, &variable));
  ASSERT(variable.rank == rank && rank <= MOST);
  for (int axis = 0; axis < rank; axis++) {
    int code = nc_inq_dimname(file->ncid, variable.dimensions[axis], found[axis]);
    TRY(store_check(file, code, "inspect the variable '%s'", name));
    found_names[axis] = found[axis];
    same = same && strcmp(found[axis], names[axis]) == 0;
  }
  if (same) return STATUS_OK;
  store_print_axes(rank, NULL, found_names, sizeof found_text, found_text);
  store_print_axes(rank, NULL, names, sizeof expected_text, expected_text);
  return status_set(STATUS_INPUT, "%s: the dimensions of '%s' are %s; they must be %s", file->path, name,
                    found_text, expected_text);
}

static bool is_integer(nc_type type) {
  return (type >= NC_BYTE && type <= NC_INT && type != NC_CHAR) || (type >= NC_UBYTE && type <= NC_UINT64);
}

static bool is_real(nc_type type) { return type == NC_FLOAT || type == NC_DOUBLE; }

static bool has_attribute(StoreFile *file, int variable, const char *name) {
  return nc_inq_att(file->ncid, variable, name, NULL, NULL) == NC_NOERR;
}

bool store_has_attribute(StoreFile *file, const char *name) { return has_attribute(file, NC_GLOBAL, name); }

/* The values of a variable that are missing: those equal to a mark, below `low` or above `high`. */
typedef struct {
  size_t marks;
  double mark[8];
  double low, high;
} Missing;

/* Returns what the library puts where nothing was written; NaN if the type has no such value. */
static double store_default_fill(nc_type type) {
  switch (type) {
  case NC_SHORT: return NC_FILL_SHORT;
  case NC_USHORT: return NC_FILL_USHORT;
  case NC_INT: return NC_FILL_INT;
  case NC_UINT: return NC_FILL_UINT;
  case NC_INT64: return (double)NC_FILL_INT64;
  case NC_UINT64: return (double)NC_FILL_UINT64;
  case NC_FLOAT: return (double)NC_FILL_FLOAT;
  case NC_DOUBLE: return NC_FILL_DOUBLE;
  default: return NAN;
  }
}

/* Reads at most `most` numbers of an attribute, rounded as the values of the variable are; *count is 0 if
 * there is none. */
static Status store_get_numbers(StoreFile *file, const Variable *variable, const char *name, size_t most,
                                size_t *count, double *out) {
  nc_type type;
  *count = 0;
  if (nc_inq_att(file->ncid, variable->id, name, &type, count) != NC_NOERR) return STATUS_OK;
  if ((!is_integer(type) && !is_real(type)) || *count < 1 || *count > most)
    return status_set(STATUS_INPUT, "%s: the attribute %s of '%s' is not %s%zu number%s", file->path, name,
                      variable->name, most > 1 ? "1 to " : "", most, most > 1 ? "s" : "");
  TRY(store_check(file, nc_get_att_double(file->ncid, variable->id, name, out),
                  "read the attribute %s of '%s'", name, variable->name));
  for (size_t i = 0; i < *count; i++)
    if (variable->type == NC_FLOAT && islessequal(fabs(out[i]), (double)FLT_MAX))
      out[i] = (double)(float)out[i];
  return STATUS_OK;
}

/* Finds which values are missing ("NetCDF Users Guide", Attribute Conventions; CF-1.10, section 2.5.1). */
static Status store_find_missing(StoreFile *file, const Variable *variable, Missing *out) {
  double range[2];
  size_t count;
  *out = (Missing){.low = -INFINITY, .high = INFINITY};
  TRY(store_get_numbers(file, variable, "_FillValue", 1, &out->marks, out->mark));
  if (out->marks == 0) out->mark[out->marks++] = store_default_fill(variable->type);
  TRY(store_get_numbers(file, variable, "missing_value", 7, &count, out->mark + out->marks));
  out->marks += count;
  TRY(store_get_numbers(file, variable, "valid_range", 2, &count, range));
  if (count == 1)
    return status_set(STATUS_INPUT, "%s: the attribute valid_range of '%s' is one number instead of two",
                      file->path, variable->name);
  if (count == 2) {
    out->low = range[0];
    out->high = range[1];
  }
  TRY(store_get_numbers(file, variable, "valid_min", 1, &count, range));
  if (count == 1) out->low = fmax(out->low, range[0]);
  TRY(store_get_numbers(file, variable, "valid_max", 1, &count, range));
  if (count == 1) out->high = fmin(out->high, range[0]);
  return STATUS_OK;
}

static bool store_is_missing(const Missing *missing, double value) {
  bool found = isless(value, missing->low) || isgreater(value, missing->high); /* quiet for NaN */
  for (size_t i = 0; i < missing->marks; i++) found = found || value == missing->mark[i];
  return found;
}

/* Replaces by NaN those of values[count[rank]] that are missing. Refuses them where the caller reads
 * integers. Files that this program wrote have no other marks than NaN. */
static Status store_mark_missing(StoreFile *file, const Variable *variable, StoreType type,
                                 const size_t *count, void *values) {
  Missing missing;
  size_t elements = 1;
  if (file->sealed) return STATUS_OK;
  TRY(store_find_missing(file, variable, &missing));
  for (int axis = 0; axis < variable->rank; axis++) elements *= count[axis];
  for (size_t i = 0; i < elements; i++) {
    const double value = type == STORE_DOUBLE  ? ((double *)values)[i]
                         : type == STORE_FLOAT ? (double)((float *)values)[i]
                         : type == STORE_BYTE  ? ((signed char *)values)[i]
                                               : (double)((int64_t *)values)[i];
    if (!store_is_missing(&missing, value)) continue;
    if (type == STORE_DOUBLE)
      ((double *)values)[i] = NAN;
    else if (type == STORE_FLOAT)
      ((float *)values)[i] = NAN;
    else
      return status_set(STATUS_INPUT,
                        "%s: the variable '%s' has the value %g, which its attributes mark as missing",
                        file->path, variable->name, value);
  }
  return STATUS_OK;
}

Status store_get_part(StoreFile *file, const char *name, StoreType type, const size_t *start,
                      const size_t *count, void *out) {
  static const size_t origin[NC_MAX_VAR_DIMS];
  static const char *const packing[] = {"scale_factor", "add_offset", "_Unsigned", NULL};
  Variable variable;
  fenv_t environment;
  int code;
  const bool integer_only = type == STORE_INT64 || type == STORE_BYTE;
  TRY(store_read_find(file, name, &variable));
  if (!is_integer(variable.type) && (integer_only || !is_real(variable.type)))
    return status_set(STATUS_INPUT, "%s: the variable '%s' does not hold %s", file->path, name,
                      integer_only ? "integers" : "numbers");
  for (int i = 0; packing[i]; i++)
    if (has_attribute(file, variable.id, packing[i]))
      return status_set(STATUS_INPUT, "%s: the variable '%s' is packed (attribute %s); store it unpacked",
                        file->path, name, packing[i]);
  if (!start) start = origin, count = variable.lengths;
  feholdexcept(&environment); /* a value that does not fit is reported, not trapped */
  errno = 0;
  switch (type) {
  case STORE_FLOAT: code = nc_get_vara_float(file->ncid, variable.id, start, count, out); break;
  case STORE_INT64: code = nc_get_vara_longlong(file->ncid, variable.id, start, count, out); break;
  case STORE_BYTE: code = nc_get_vara_schar(file->ncid, variable.id, start, count, out); break;
  default: code = nc_get_vara_double(file->ncid, variable.id, start, count, out); break;
  }
  fesetenv(&environment);
  TRY(store_check(file, code, "read the variable '%s'", name));
  return store_mark_missing(file, &variable, type, count, out);
}

Status store_get_doubles(StoreFile *file, const char *name, double *out) {
  return store_get_part(file, name, STORE_DOUBLE, NULL, NULL, out);
}

Status store_get_int64s(StoreFile *file, const char *name, int64_t *out) {
  _Static_assert(sizeof(long long) == sizeof *out, "NetCDF reads 64-bit integers as long long");
  return store_get_part(file, name, STORE_INT64, NULL, NULL, out);
}

/* Finds an attribute of the file. */
static Status find_attribute(StoreFile *file, const char *name, nc_type *type, size_t *length) {
  if (nc_inq_att(file->ncid, NC_GLOBAL, name, type, length) != NC_NOERR)
    return status_set(STATUS_INPUT, "%s has no attribute '%s'", file->path, name);
  if (*length > file->size)
    return status_set(STATUS_INPUT, "%s: the attribute '%s' has %zu values, but the file has %ju bytes",
                      file->path, name, *length, (uintmax_t)file->size);
  return STATUS_OK;
}

Status store_get_text_attribute(Arena *memory, StoreFile *file, const char *name, const char **out) {
  nc_type type;
  size_t length;
  char *text = NULL;
  TRY(find_attribute(file, name, &type, &length));
  if (type == NC_STRING && length == 1) { /* as some Python programs write it */
    TRY(store_check(file, nc_get_att_string(file->ncid, NC_GLOBAL, name, &text), "read the attribute '%s'",
                    name));
    const Status status = arena_print(memory, out, "%s", text ? text : "");
    nc_free_string(1, &text);
    return status;
  }
  if (type != NC_CHAR)
    return status_set(STATUS_INPUT, "%s: the attribute '%s' is not text", file->path, name);
  ALLOCATE(memory, text, length + 1);
  *out = text;
  return store_check(file, nc_get_att_text(file->ncid, NC_GLOBAL, name, text), "read the attribute '%s'",
                     name);
}

/* Checks that an attribute is one number. */
static Status store_check_number(StoreFile *file, const char *name, bool integer_only) {
  nc_type type;
  size_t length;
  TRY(find_attribute(file, name, &type, &length));
  if (length != 1 || (!is_integer(type) && (integer_only || !is_real(type))))
    return status_set(STATUS_INPUT, "%s: the attribute '%s' is not a single %s", file->path, name,
                      integer_only ? "integer" : "number");
  return STATUS_OK;
}

Status store_get_real_attribute(StoreFile *file, const char *name, double *out) {
  TRY(store_check_number(file, name, false));
  return store_check(file, nc_get_att_double(file->ncid, NC_GLOBAL, name, out), "read the attribute '%s'",
                     name);
}

Status store_get_int_attribute(StoreFile *file, const char *name, int64_t *out) {
  TRY(store_check_number(file, name, true));
  long long value = 0;
  TRY(store_check(file, nc_get_att_longlong(file->ncid, NC_GLOBAL, name, &value), "read the attribute '%s'",
                  name));
  *out = value;
  return STATUS_OK;
}
