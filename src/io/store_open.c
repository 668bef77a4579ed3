/* Whether NetCDF files are complete: their seal and their format; opening them for reading; and whether a
 * file is this program's own. */
#include "core/arena.h"
#include "io/digest.h"
#include "io/durable.h"
#include "io/input.h"
#include "io/ownership.h"
#include "io/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netcdf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A seal after the last byte of every NetCDF file that this program writes: "thompson" and the SHA-256
 * of everything before it.
 *
 * Readers of NetCDF ignore what follows the data. The seal reveals a flipped bit in a finished task or a
 * cached prior before it is used; HDF5 by itself would read on, and can crash. A file without a seal may be
 * somebody else's, unless it is where only this program writes (store_open_own), or unless what follows its
 * data is the remains of a seal after a power cut (store_open). */

enum { SEAL_SIZE = 8 + DIGEST_SIZE - 1, PAGE = 4096 };
static const char mark[] = "thompson";

int store_seal(const char *path) {
  errno = 0;
  FILE *stream = fopen(path, "r+b");
  if (!stream) return errno;
  uint64_t left;
  char digest[DIGEST_SIZE];
  bool good = digest_stream(stream, UINT64_MAX, digest, &left) == STATUS_OK && !ferror(stream) &&
              fseeko(stream, 0, SEEK_END) == 0 && fprintf(stream, "%s%s", mark, digest) == SEAL_SIZE;
  good = fclose(stream) == 0 && good;
  return good ? 0 : errno != 0 ? errno : EIO;
}

/* Finds whether a file of `size` bytes has a seal; STATUS_INPUT if the seal does not match. This function and
 * the two below read the stream whatever its position. */
static Status store_seal_verify(const char *path, FILE *stream, uint64_t size, bool *sealed) {
  char tail[SEAL_SIZE], digest[DIGEST_SIZE];
  uint64_t left;
  *sealed = size >= SEAL_SIZE && fseeko(stream, -SEAL_SIZE, SEEK_END) == 0 &&
            fread(tail, 1, SEAL_SIZE, stream) == SEAL_SIZE && memcmp(tail, mark, 8) == 0;
  if (!*sealed) return STATUS_OK;
  rewind(stream);
  TRY(digest_stream(stream, size - SEAL_SIZE, digest, &left));
  if (left == 0 && memcmp(tail + 8, digest, DIGEST_SIZE - 1) == 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s is damaged: its checksum does not match its content", path);
}

/* Checks the tail of a file that has no seal at its end and whose data end at `end`. STATUS_INPUT if the data
 * are followed by a seal and further bytes, or by the remains of a seal. */
static Status store_seal_check_tail(const char *path, FILE *stream, uint64_t size, uint64_t end) {
  char tail[SEAL_SIZE];
  if (size <= end) return STATUS_OK;
  const size_t length = size - end < SEAL_SIZE ? (size_t)(size - end) : SEAL_SIZE;
  const bool read = fseeko(stream, (off_t)end, SEEK_SET) == 0 && fread(tail, 1, length, stream) == length;
  if (size - end > SEAL_SIZE) {
    if (!read || memcmp(tail, mark, 8) != 0) return STATUS_OK;
    return status_set(STATUS_INPUT, "%s is damaged: %ju bytes were appended after its checksum", path,
                      (uintmax_t)(size - end - SEAL_SIZE));
  }
  /* The netCDF library pads a classic file that is written without fill values to a whole page, with zeros.
   */
  bool padding = size % PAGE == 0 && read;
  for (size_t i = 0; i < length && padding; i++) padding = tail[i] == 0;
  if (padding) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s is damaged: the last %ju bytes, after its data, are not a checksum",
                    path, (uintmax_t)(size - end));
}

/* ---- Whether a classic NetCDF file is complete, after "The NetCDF Classic Format Specification" (Unidata,
 * appendix B of the user's guide): header = magic numrecs dimensions attributes variables; all numbers are
 * big-endian, names and values are padded to 4 bytes. */

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
  for (uint64_t i = 0; i < count; i++) {
    if (walk->bad) return;
    skip_name(walk);
    uint64_t size = read_type_size(walk), length = read_count(walk, size);
    netcdf_skip_bytes(walk, length * size);
  }
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

/* Walks the header of a classic file (CDF-1, 2 or 5) and checks that the file is long enough for what the
 * header describes: the library itself reads what was cut off as zeros. STATUS_INPUT if it is damaged or cut
 * off. *end: where its data end, padding included; UINT64_MAX if the header leaves that open. */
static Status walk_header(Walk *walk, const char *path, uint64_t *end) {
  SCRATCH_ARENA(scratch);
  rewind(walk->stream);
  uint64_t version = netcdf_read_number(walk, 4) & 0xff, more = 0;
  walk->count_bytes = version == 5 ? 8 : 4;
  walk->offset_bytes = version == 1 ? 4 : 8;
  walk->records = netcdf_read_number(walk, walk->count_bytes);
  /* A file that was written to a pipe leaves the number of records open. */
  const bool streamed = walk->records == (walk->count_bytes == 8 ? UINT64_MAX : UINT32_MAX);
  walk->dimension_count = open_list(walk, TAG_DIMENSION, 8);
  ALLOCATE(&scratch, walk->dimensions, walk->dimension_count);
  for (uint64_t i = 0; i < walk->dimension_count; i++) {
    if (walk->bad) break;
    skip_name(walk);
    walk->dimensions[i] = netcdf_read_number(walk, walk->count_bytes);
  }
  walk_attributes(walk);
  const uint64_t variables = open_list(walk, TAG_VARIABLE, 20);
  for (uint64_t i = 0; i < variables; i++) {
    if (walk->bad) break;
    walk_variable(walk);
  }
  uint64_t needed = (uint64_t)ftello(walk->stream);
  if (walk->records > 0 && !streamed) {
    /* With only one record variable, records are not padded. */
    uint64_t step = walk->record_variables == 1 ? walk->record_last : walk->record_size;
    if (__builtin_mul_overflow(walk->records - 1, step, &more)) walk->bad = true;
    netcdf_raise_end(&needed, walk->record_start, more, &walk->bad);
  }
  netcdf_raise_end(&needed, walk->fixed_end, 0, &walk->bad);
  if (walk->bad) return status_set(STATUS_INPUT, "%s: the NetCDF header is damaged or cut off", path);
  if (needed > walk->size)
    return status_set(STATUS_INPUT, "%s is cut off: it has %ju bytes, its NetCDF header says %ju", path,
                      (uintmax_t)walk->size, (uintmax_t)needed);
  *end = streamed ? UINT64_MAX : (needed + 3) / 4 * 4;
  return STATUS_OK;
}

/* ---- formats */

typedef enum { MAGIC_OTHER, MAGIC_CLASSIC, MAGIC_HDF5 } Magic;

/* Finds the format of a file from its first bytes. */
static Magic magic_of(FILE *stream) {
  unsigned char head[8] = {0};
  rewind(stream);
  const size_t size = fread(head, 1, sizeof head, stream);
  if (size == sizeof head && memcmp(head, "\211HDF\r\n\032\n", sizeof head) == 0) return MAGIC_HDF5;
  bool classic = memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5);
  return classic ? MAGIC_CLASSIC : MAGIC_OTHER;
}

bool store_is_netcdf(const char *path) {
  static const char *const endings[] = {".nc", ".nc4", ".cdf"};
  const char *ending = strrchr(path, '.');
  if (ending)
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
      if (strcmp(ending, endings[i]) == 0) return true;
  SCOPED(FILE *, stream, input_close);
  return input_stream(path, &stream) == STATUS_OK && magic_of(stream) != MAGIC_OTHER;
}

/* ---- where an HDF5 file says that it ends: "HDF5 File Format Specification Version 3.0" (The HDF Group),
 * section II.A, "Disk Format: Level 0A - Format Signature and Superblock"; all numbers little-endian */

uint64_t store_hdf5_end(const unsigned char *head) {
  const unsigned version = head[8], bytes = version < 2 ? head[13] : head[9];
  if (version > 3 || (bytes != 4 && bytes != 8)) return UINT64_MAX;
  /* It comes after the base address and the address of free space (versions 0 and 1) or of the superblock
   * extension (2 and 3). */
  const unsigned first = version == 0 ? 24 : version == 1 ? 28 : 12;
  uint64_t end = 0;
  for (unsigned i = bytes; i > 0; i--) end = end << 8 | head[first + 2 * bytes + i - 1];
  return end;
}

static uint64_t hdf5_end(FILE *stream) {
  unsigned char head[STORE_HDF5_HEAD];
  rewind(stream);
  return fread(head, 1, sizeof head, stream) == sizeof head ? store_hdf5_end(head) : UINT64_MAX;
}

/* ---- opening */

static Status store_refuse_format(const char *path, FILE *stream) {
  char head[8];
  rewind(stream);
  const char *kind = input_kind(fread(head, 1, sizeof head, stream), head);
  return status_set(STATUS_INPUT, "%s is not a NetCDF file%s%s", path, kind ? ", but " : "",
                    kind ? kind : "");
}

/* Finds the size and the format of a file, and checks that it is complete, as far as that is visible without
 * the library. A file that may be a user's (not `own`) need not be sealed. */
static Status check_whole(StoreFile *file, bool own) {
  SCOPED(FILE *, stream, input_close);
  const char *path = file->path;
  struct stat info;
  uint64_t end = 0;
  TRY(input_stream(path, &stream));
  const Magic magic = magic_of(stream);
  if (fstat(fileno(stream), &info) != 0 || ferror(stream))
    return status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno));
  if (magic == MAGIC_OTHER) return store_refuse_format(path, stream);
  file->size = (uint64_t)info.st_size;
  file->classic = magic == MAGIC_CLASSIC;
  TRY(store_seal_verify(path, stream, file->size, &file->sealed));
  if (own && !file->sealed)
    return status_set(STATUS_INPUT,
                      "%s is damaged: it does not end with the checksum that it was written with", path);
  if (file->classic)
    TRY(walk_header(&(Walk){.stream = stream, .size = file->size}, path, &end));
  else
    end = hdf5_end(stream);
  return file->sealed ? STATUS_OK : store_seal_check_tail(path, stream, file->size, end);
}

static Status open_checked(const char *path, bool own, StoreFile **out) {
  SCOPED(StoreFile *, file, store_close);
  *out = NULL;
  TRY(store_new(path, &file));
  TRY(check_whole(file, own));
  errno = 0;
  TRY(store_check(file, nc_open(path, NC_NOWRITE, &file->ncid), "open it as NetCDF (damaged or cut off?)"));
  *out = file;
  file = NULL;
  return STATUS_OK;
}

Status store_open(const char *path, StoreFile **out) { return open_checked(path, false, out); }

Status store_open_own(const char *path, StoreFile **out) { return open_checked(path, true, out); }

/* ---- ownership */

/* Returns whether an open file ends with a seal, and so was written by this program; does not check that it
 * is intact. */
static bool store_is_sealed(int file) {
  struct stat info;
  char tail[SEAL_SIZE];
  return fstat(file, &info) == 0 && info.st_size >= SEAL_SIZE &&
         pread(file, tail, SEAL_SIZE, info.st_size - SEAL_SIZE) == SEAL_SIZE && memcmp(tail, mark, 8) == 0;
}

/* Opens a regular file for reading, without waiting for the other end of a pipe; negative for anything
 * else. */
static int open_regular(int folder, const char *name, struct stat *info) {
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return -1;
  if (fstat(file, info) == 0 && S_ISREG(info->st_mode)) return file;
  close(file);
  return -1;
}

Ownership io_ownership_of(int folder, const char *name) {
  struct stat info;
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return OWNERSHIP_NOTHING;
  if (!S_ISREG(info.st_mode)) return OWNERSHIP_OTHER;
  if (info.st_size == 0) return OWNERSHIP_NOTHING;
  int file = open_regular(folder, name, &info);
  bool sealed = file >= 0 && store_is_sealed(file);
  if (file >= 0) close(file);
  return sealed ? OWNERSHIP_OURS : OWNERSHIP_UNKNOWN;
}

bool io_ownership_carries(int folder, const char *name, const char *text) {
  enum { BUFFER = 1 << 16, LONGEST = 128 };
  char bytes[LONGEST + BUFFER]; /* a match may begin in one block and end in the next */
  struct stat info;
  const size_t length = strlen(text);
  int file = open_regular(folder, name, &info);
  ASSERT(length > 0 && length <= LONGEST);
  if (file < 0) return false;
  bool found = false;
  ssize_t n;
  for (size_t kept = 0; !found && (n = read(file, bytes + kept, BUFFER)) > 0;) {
    size_t size = kept + (size_t)n;
    found = memmem(bytes, size, text, length) != NULL;
    kept = size < length ? size : length - 1;
    memmove(bytes, bytes + size - kept, kept);
  }
  close(file);
  return found;
}

/* Returns whether a file of this program is of a kind. */
static bool store_is_of_kind(const char *path, const OwnershipKind *kind) {
  SCOPED(StoreFile *, file, store_close);
  return kind->has && store_open(path, &file) == STATUS_OK && store_has_attribute(file, kind->has) &&
         !(kind->lacks && store_has_attribute(file, kind->lacks));
}

Status io_ownership_check_output(const char *path, const OwnershipKind *kind) {
  switch (io_ownership_of(AT_FDCWD, path)) {
  case OWNERSHIP_OURS:
    if (!kind || store_is_of_kind(path, kind)) return durable_try(path);
    return status_set(
        STATUS_FILE,
        "cannot write %s: it exists, and holds something other than %s (or is damaged); remove it or "
        "choose another name",
        path, kind->what);
  case OWNERSHIP_NOTHING: return durable_try(path);
  case OWNERSHIP_UNKNOWN:
    return status_set(STATUS_FILE,
                      "cannot write %s: it exists, but this program did not write it (or it is damaged); "
                      "remove it or choose another name",
                      path);
  case OWNERSHIP_OTHER: break;
  }
  return status_set(STATUS_FILE, "cannot write %s: it is a link or not a regular file", path);
}
