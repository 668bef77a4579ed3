/* Checks that a classic NetCDF file is complete, after "The NetCDF Classic Format Specification" (Unidata,
 * appendix B of the user's guide): header = magic numrecs dimensions attributes variables; all numbers are
 * big-endian, names and values are padded to 4 bytes. */
#include "core/memory.h"
#include "io/store_internal.h"

#include <netcdf.h>
#include <string.h>

enum { TAG_DIMENSION = 10, TAG_VARIABLE = 11, TAG_ATTRIBUTE = 12 };

typedef struct {
  FILE *stream;
  uint64_t size; /* of the file */
  int count_bytes; /* width of counts and lengths: 8 in CDF-5, else 4 */
  int offset_bytes; /* width of file offsets: 4 in CDF-1, else 8 */
  bool bad; /* something did not make sense, or the file ended */
  uint64_t records; /* length of the record dimension */
  uint64_t *dimensions; /* [dimension_count]; 0 for the record dimension */
  uint64_t dimension_count;
  uint64_t fixed_end; /* where the last fixed variable ends */
  uint64_t record_start; /* where the record variables' parts of the first record end */
  uint64_t record_size; /* bytes of one record, its parts padded to 4 */
  uint64_t record_last; /* bytes of the last part seen, unpadded */
  int record_variables;
} Walk;

static uint64_t netcdf_read_number(Walk *walk, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) {
    int c = getc(walk->stream);
    if (c == EOF) {
      walk->bad = true;
      return 0;
    }
    value = value << 8 | (uint64_t)c;
  }
  return value;
}

/* Reads a count of items; `bad` if the file is too short for so many, of at least `least` bytes each. */
static uint64_t read_count(Walk *walk, uint64_t least) {
  uint64_t count = netcdf_read_number(walk, walk->count_bytes);
  if (least > 0 && count > walk->size / least) walk->bad = true;
  return walk->bad ? 0 : count;
}

static void netcdf_skip_bytes(Walk *walk, uint64_t bytes) {
  uint64_t padded = (bytes + 3) / 4 * 4;
  if (bytes > walk->size || fseeko(walk->stream, (off_t)padded, SEEK_CUR) != 0 ||
      (uint64_t)ftello(walk->stream) > walk->size)
    walk->bad = true;
}

/* Skips a name. The library promises its callers names of at most NC_MAX_NAME bytes and variables of at most
 * NC_MAX_VAR_DIMS axes, but returns longer ones just as they are in a file, past the end of the caller's
 * buffer. */
static void skip_name(Walk *walk) {
  uint64_t length = read_count(walk, 1);
  if (length > NC_MAX_NAME) walk->bad = true;
  netcdf_skip_bytes(walk, length);
}

/* Returns the size in bytes of one value of an external type; for an unknown type, 0, and sets `bad`. */
static uint64_t read_type_size(Walk *walk) {
  static const uint64_t sizes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
  uint64_t type = netcdf_read_number(walk, 4);
  if (type == 0 || type >= sizeof sizes / sizeof *sizes) walk->bad = true;
  return walk->bad ? 0 : sizes[type];
}

/* Reads the number of elements of a list that begins with `tag`; an absent list is two zeros. */
static uint64_t open_list(Walk *walk, uint64_t tag, uint64_t least) {
  uint64_t found = netcdf_read_number(walk, 4), count = read_count(walk, least);
  if (found != tag && (found != 0 || count != 0)) walk->bad = true;
  return walk->bad ? 0 : count;
}

static void walk_attributes(Walk *walk) {
  uint64_t count = open_list(walk, TAG_ATTRIBUTE, 12);
  for (uint64_t i = 0; i < count && !walk->bad; i++) {
    skip_name(walk);
    uint64_t size = read_type_size(walk), length = read_count(walk, size);
    netcdf_skip_bytes(walk, length * size);
  }
}

static Status walk_dimensions(Walk *walk) {
  walk->dimension_count = open_list(walk, TAG_DIMENSION, 8);
  NEW(walk->dimensions, walk->dimension_count);
  for (uint64_t i = 0; i < walk->dimension_count && !walk->bad; i++) {
    skip_name(walk);
    walk->dimensions[i] = netcdf_read_number(walk, walk->count_bytes);
  }
  return STATUS_OK;
}

static void netcdf_raise_end(uint64_t *end, uint64_t start, uint64_t bytes, bool *bad) {
  uint64_t sum;
  if (__builtin_add_overflow(start, bytes, &sum))
    *bad = true;
  else if (sum > *end)
    *end = sum;
}

static void walk_variable(Walk *walk) {
  skip_name(walk);
  uint64_t rank = read_count(walk, (uint64_t)walk->count_bytes), bytes = 1;
  bool record = false;
  if (rank > NC_MAX_VAR_DIMS) walk->bad = true;
  for (uint64_t axis = 0; axis < rank && !walk->bad; axis++) {
    uint64_t id = netcdf_read_number(walk, walk->count_bytes);
    if (id >= walk->dimension_count)
      walk->bad = true;
    else if (walk->dimensions[id] == 0 && axis == 0)
      record = true;
    else if (__builtin_mul_overflow(bytes, walk->dimensions[id], &bytes))
      walk->bad = true;
  }
  walk_attributes(walk);
  if (__builtin_mul_overflow(bytes, read_type_size(walk), &bytes)) walk->bad = true;
  netcdf_read_number(walk, walk->count_bytes); /* the size again, which old formats may be unable to hold */
  uint64_t begin = netcdf_read_number(walk, walk->offset_bytes);
  if (walk->bad) return;
  netcdf_raise_end(record ? &walk->record_start : &walk->fixed_end, begin, bytes, &walk->bad);
  if (record) {
    walk->record_variables++;
    walk->record_last = bytes;
    if (bytes > walk->size ||
        __builtin_add_overflow(walk->record_size, (bytes + 3) / 4 * 4, &walk->record_size))
      walk->bad = true;
  }
}

/* Returns whether the file was written to a pipe, with the number of records left open. */
static bool netcdf_is_streamed(const Walk *walk) {
  return walk->records == (walk->count_bytes == 8 ? UINT64_MAX : UINT32_MAX);
}

/* Returns the least size that the file must have; sets `bad` if the header is damaged. */
static uint64_t netcdf_needed_size(Walk *walk) {
  uint64_t variables = open_list(walk, TAG_VARIABLE, 20), end, more = 0;
  for (uint64_t i = 0; i < variables && !walk->bad; i++) walk_variable(walk);
  end = (uint64_t)ftello(walk->stream);
  if (walk->records > 0 && !netcdf_is_streamed(walk)) {
    /* With only one record variable, records are not padded. */
    uint64_t step = walk->record_variables == 1 ? walk->record_last : walk->record_size;
    if (__builtin_mul_overflow(walk->records - 1, step, &more)) walk->bad = true;
    netcdf_raise_end(&end, walk->record_start, more, &walk->bad);
  }
  netcdf_raise_end(&end, walk->fixed_end, 0, &walk->bad);
  return end;
}

static Status walk_header(Walk *walk, const char *path, uint64_t *end) {
  uint64_t version = netcdf_read_number(walk, 4) & 0xff;
  walk->count_bytes = version == 5 ? 8 : 4;
  walk->offset_bytes = version == 1 ? 4 : 8;
  walk->records = netcdf_read_number(walk, walk->count_bytes);
  TRY(walk_dimensions(walk));
  walk_attributes(walk);
  uint64_t needed = netcdf_needed_size(walk);
  if (walk->bad) return status_set(STATUS_INPUT, "%s: the NetCDF header is damaged or cut off", path);
  if (needed > walk->size)
    return status_set(STATUS_INPUT, "%s is cut off: it has %ju bytes, its NetCDF header says %ju", path,
                      (uintmax_t)walk->size, (uintmax_t)needed);
  *end = netcdf_is_streamed(walk) ? UINT64_MAX : (needed + 3) / 4 * 4;
  return STATUS_OK;
}

Status store_classic_check(const char *path, FILE *stream, uint64_t size, uint64_t *end) {
  Walk walk = {.stream = stream, .size = size};
  rewind(stream);
  Status status = walk_header(&walk, path, end);
  free(walk.dimensions);
  return status;
}
