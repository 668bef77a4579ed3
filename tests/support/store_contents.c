#include "store_contents.h"

#include "io/store_internal.h"

#include <float.h>
#include <math.h>
#include <netcdf.h>
#include <string.h>

#define LENGTH_OF(array) (sizeof(array) / sizeof *(array))

enum { MOST_DIMENSIONS = 9, MOST_VARIABLES = 16, MOST_RANK = 5, MOST_ELEMENTS = 4096, RECORDS = 3 };

typedef struct {
  const uint8_t *at, *end;
} Script;

typedef struct {
  int file, enumeration, vlen; /* ids of the file and of its own types */
  int dimensions, variables;
  int dimension[MOST_DIMENSIONS], variable[MOST_VARIABLES];
  size_t length[MOST_DIMENSIONS], elements[MOST_VARIABLES];
  size_t last[MOST_VARIABLES]; /* length of the last axis */
} Contents;

static size_t next_byte(Script *script) { return script->at < script->end ? *script->at++ : 0; }

static const char *next_name(Script *script, size_t count, const char *const *names) {
  return names[next_byte(script) % count];
}

/* Returns a value: mostly small multiples of 1/16, otherwise one that arithmetic stumbles over. */
static double next_value(Script *script) {
  static const double odd[] = {
      NAN,        INFINITY,       -INFINITY,   1e308,   -1e308, 1e200,   -1e200,   1e154, 1e100,
      1e-100,     1e-154,         1e-200,      DBL_MIN, 5e-324, FLT_MAX, 1e30,     -1e30, 1e-30,
      1e-45,      NC_FILL_DOUBLE, NC_FILL_INT, 0.1,     0.9,    1.0 / 3, 1 - 1e-9, 1e-9,  1 + 1e-7,
      2147483647, 4.3e9,          9.3e18,      1e16,    -0.0,   100,     255,      65536};
  size_t byte = next_byte(script);
  return byte < 220 ? ((double)byte - 96) / 16 : odd[(byte - 220) % LENGTH_OF(odd)];
}

static const char *next_text(Script *script) {
  static const char *const texts[] = {
      "gaussian", "mixture",           "diffusion", "literal",  "repaired",
      "",         "odd, \"quoted\"\n", "%s%n",      "\xff\xfe", "0123456789abcdef"};
  return next_name(script, LENGTH_OF(texts), texts);
}

static nc_type next_type(Script *script, const Contents *contents) {
  const nc_type types[] = {NC_DOUBLE,
                           NC_FLOAT,
                           NC_INT,
                           NC_SHORT,
                           NC_BYTE,
                           NC_CHAR,
                           NC_INT64,
                           NC_STRING,
                           NC_UINT,
                           NC_UINT64,
                           NC_USHORT,
                           NC_UBYTE,
                           contents->enumeration,
                           contents->vlen};
  return types[next_byte(script) % LENGTH_OF(types)];
}

static void add_attribute(Script *script, const Contents *contents, int owner) {
  static const char *const names[] = {
      "prior",        "noise",      "last_stage", "training_samples", "training_samples_sha256",
      "scale_factor", "add_offset", "_FillValue", "_Unsigned",        "missing_value"};
  enum { MOST = 4 };
  const char *name = next_name(script, LENGTH_OF(names), names);
  nc_type type = next_type(script, contents);
  size_t length = next_byte(script) % MOST;
  if (type == NC_CHAR) {
    const char *text = next_text(script);
    nc_put_att_text(contents->file, owner, name, strlen(text) + length % 2, text);
  } else if (type == NC_STRING) {
    const char *texts[MOST];
    for (size_t i = 0; i < length; i++) texts[i] = next_text(script);
    nc_put_att_string(contents->file, owner, name, length, texts);
  } else if (type <= NC_UINT64) {
    double values[MOST];
    for (size_t i = 0; i < length; i++) values[i] = next_value(script);
    nc_put_att_double(contents->file, owner, name, type, length, values);
  }
}

static void add_attributes(Script *script, const Contents *contents, int owner) {
  for (size_t count = next_byte(script) % 8; count > 0; count--) add_attribute(script, contents, owner);
}

static void add_dimension(Script *script, Contents *contents) {
  static const char *const names[] = {"sample", "dim",   "observation", "item",    "arm",     "component",
                                      "dim2",   "stage", "units_0",     "units_1", "units_2", "odd"};
  const char *name = next_name(script, LENGTH_OF(names), names);
  size_t length = next_byte(script) % 16; /* 0: unlimited */
  int *id = &contents->dimension[contents->dimensions];
  if (nc_def_dim(contents->file, name, length, id) == NC_NOERR)
    contents->length[contents->dimensions++] = length == 0 ? RECORDS : length;
}

static void add_variable(Script *script, Contents *contents) {
  static const char *const names[] = {"theta",      "x",        "y",      "features", "weight", "mean",
                                      "covariance", "alpha",    "shift",  "scale",    "loss",   "weight_1",
                                      "bias_1",     "weight_2", "bias_2", "a"};
  const char *name = next_name(script, LENGTH_OF(names), names);
  nc_type type = next_type(script, contents);
  int rank = (int)(next_byte(script) % MOST_RANK), axes[MOST_RANK], v = contents->variables;
  size_t elements = 1, last = 1;
  for (int axis = 0; axis < rank; axis++) {
    size_t byte = next_byte(script);
    if (contents->dimensions == 0) return;
    size_t which = byte % (size_t)contents->dimensions;
    axes[axis] = contents->dimension[which];
    last = contents->length[which];
    elements *= last;
  }
  if (elements > MOST_ELEMENTS ||
      nc_def_var(contents->file, name, type, rank, axes, &contents->variable[v]) != NC_NOERR)
    return;
  contents->elements[v] = elements;
  contents->last[v] = last;
  contents->variables++;
  add_attributes(script, contents, contents->variable[v]);
}

/* Fills in no values, one value, a ramp, identity matrices, or a value for each element. */
static void fill(Script *script, size_t elements, size_t last, double *values) {
  enum { ONE_VALUE, RAMP, IDENTITY, EACH, FORMS };
  size_t form = next_byte(script) % FORMS;
  double value = next_value(script);
  for (size_t i = 0; i < elements; i++) {
    bool diagonal = i / last % last == i % last;
    values[i] = form == ONE_VALUE  ? value
                : form == RAMP     ? value + (double)i
                : form == IDENTITY ? (diagonal ? value : 0)
                                   : next_value(script);
  }
}

static void put_values(Script *script, const Contents *contents, int v) {
  static double values[MOST_ELEMENTS];
  size_t start[MOST_RANK] = {0}, count[MOST_RANK];
  int file = contents->file, id = contents->variable[v], rank, axes[MOST_RANK];
  nc_type type;
  if (nc_inq_var(file, id, NULL, &type, &rank, axes, NULL) != NC_NOERR || type == NC_CHAR) return;
  if (type > NC_UINT64 || next_byte(script) % 8 == 7) return;
  fill(script, contents->elements[v], contents->last[v], values);
  for (int axis = 0; axis < rank; axis++)
    for (int i = 0; i < contents->dimensions; i++)
      if (contents->dimension[i] == axes[axis]) count[axis] = contents->length[i];
  nc_put_vara_double(file, id, start, count, values);
}

bool store_contents_write(const char *path, const uint8_t *data, size_t size, bool *sealed) {
  static const int modes[] = {NC_NETCDF4, 0, NC_64BIT_OFFSET, NC_64BIT_DATA};
  Script script = {data, data + size};
  Contents contents = {.enumeration = NC_INT, .vlen = NC_INT};
  store_prepare_library();
  int mode = modes[next_byte(&script) % LENGTH_OF(modes)];
  *sealed = next_byte(&script) % 4 == 3;
  if (nc_create(path, NC_CLOBBER | mode, &contents.file) != NC_NOERR) return false;
  if (mode == NC_NETCDF4) {
    signed char one = 1;
    nc_def_enum(contents.file, NC_BYTE, "choice", &contents.enumeration);
    nc_insert_enum(contents.file, contents.enumeration, "yes", &one);
    nc_def_vlen(contents.file, "list", NC_DOUBLE, &contents.vlen);
  }
  for (size_t n = next_byte(&script) % (MOST_DIMENSIONS + 1); n > 0; n--) add_dimension(&script, &contents);
  for (size_t n = next_byte(&script) % (MOST_VARIABLES + 1); n > 0; n--) add_variable(&script, &contents);
  add_attributes(&script, &contents, NC_GLOBAL);
  if (nc_enddef(contents.file) == NC_NOERR)
    for (int v = 0; v < contents.variables; v++) put_values(&script, &contents, v);
  return nc_close(contents.file) == NC_NOERR && (!*sealed || store_seal(path) == 0);
}
