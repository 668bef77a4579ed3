#include "io/io_logs.h"

#include "core/arena.h"
#include "io/csv_fields.h"
#include "io/store.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- names: numbered 0, 1, .. in order of first appearance; a name may be any sequence of bytes */

typedef struct {
  uint64_t hash;
  const char *text; /* [length]; many texts share a block */
  uint16_t length;
  int number; /* plus 1; 0: no name is here */
} Name;

typedef struct {
  int count;
  size_t capacity; /* of the hash table; a power of 2 */
  Name *table; /* [capacity] */
  char *block;
  size_t left; /* bytes left in the current block */
  Arena texts, memory; /* of the blocks; of the table alone */
} Names; /* zeroed: empty */

/* Returns the place of a name in the table, or the free place where it belongs. */
static Name *names_place_of(const Names *names, uint64_t hash, const char *text, size_t length) {
  for (size_t at = hash & (names->capacity - 1);; at = (at + 1) & (names->capacity - 1)) {
    Name *name = &names->table[at];
    if (name->number == 0 ||
        (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0))
      return name;
  }
}

/* Doubles the size of the hash table. */
static Status names_grow_table(Names *names) {
  enum { FIRST = 1024 };
  SCOPED(Arena, memory, arena_free);
  Names larger = *names;
  larger.capacity = names->capacity > 0 ? 2 * names->capacity : FIRST;
  ALLOCATE(&memory, larger.table, larger.capacity);
  for (size_t i = 0; i < names->capacity; i++) {
    const Name *name = &names->table[i];
    if (name->number) *names_place_of(&larger, name->hash, name->text, name->length) = *name;
  }
  larger.memory = memory;
  memory = names->memory; /* to be freed */
  *names = larger;
  return STATUS_OK;
}

/* Finds the *number of text[length], or assigns the next one to a name that is new. Returns STATUS_INPUT
 * beyond INT_MAX names. */
static Status names_number(Names *names, const char *text, size_t length, int *number) {
  enum { BLOCK = 1 << 18 };
  ASSERT(length <= UINT16_MAX);
  /* The FNV-1a hash (Fowler, Noll and Vo), its upper bits mixed into the lower ones, since the size of the
   * table is a power of 2. */
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
  hash ^= hash >> 32;
  if (2 * (size_t)names->count >= names->capacity) TRY(names_grow_table(names));
  Name *name = names_place_of(names, hash, text, length);
  if (name->number == 0) {
    if (names->count == INT_MAX) return status_set(STATUS_INPUT, "more than %d names", INT_MAX);
    if (names->left < length) {
      ALLOCATE(&names->texts, names->block, BLOCK);
      names->left = BLOCK;
    }
    memcpy(names->block, text, length);
    *name = (Name){hash, names->block, (uint16_t)length, ++names->count};
    names->block += length;
    names->left -= length;
  }
  *number = name->number - 1;
  return STATUS_OK;
}

static void names_free(Names *names) {
  arena_free(&names->texts);
  arena_free(&names->memory);
  *names = (Names){0};
}

/* ---- CSV */

typedef struct {
  CsvReader csv;
  const LogsSink *sink;
  Names *names;
  int columns; /* task, x1 .. xd and y */
  double *x; /* [d] */
} LogsReader;

/* Reads a row, whose first field has been read, and passes it on. */
static Status io_logs_read_row(LogsReader *reader) {
  CsvReader *csv = &reader->csv;
  const int columns = reader->columns;
  const long line = csv->line;
  int task = 0;
  double y = 0;
  if (csv->length == 0) return CSV_FIELD_ERROR(csv, "the name of the task is missing");
  TRY(names_number(reader->names, csv->field, csv->length, &task));
  for (csv->column = 2; csv->column <= columns; csv->column++) {
    if (csv->end != CSV_END_COMMA)
      return status_set(STATUS_INPUT, "%s, line %ld: %ld values, but the header has %d", csv->file->path,
                        line, csv->column - 1, columns);
    TRY(csv_read_field(csv));
    TRY(csv_number(csv, csv->column < columns ? &reader->x[csv->column - 2] : &y));
  }
  if (csv->end == CSV_END_COMMA)
    return status_set(STATUS_INPUT, "%s, line %ld: more values than the %d in the header", csv->file->path,
                      line, columns);
  const Status status = reader->sink->row(reader->sink->context, task, reader->x, y);
  return status == STATUS_INPUT ? status_prefix(status, "%s, line %ld: ", csv->file->path, line) : status;
}

Status io_logs_read_csv(GzipFile *file, const LogsSink *sink) {
  enum {
    MOST = 10000 /* dimensions */,
    REPORTED = 1 << 14 /* rows from one report of progress to the next */
  };
  SCRATCH_ARENA(scratch);
  SCOPED(Names, names, names_free);
  SCOPED(fenv_t, environment, csv_trap_again);
  feholdexcept(&environment);
  LogsReader *reader;
  long rows = 0;
  ALLOCATE(&scratch, reader, 1);
  static const char *const last[] = {"y", NULL};
  const CsvHeader header = {.first = "task", .last = last, .needed = 1, .most = MOST};
  CsvColumns columns;
  reader->sink = sink;
  reader->names = &names;
  CsvReader *csv = &reader->csv;
  TRY(csv_begin(file, csv));
  TRY(csv_read_header(csv, &header, &columns));
  reader->columns = columns.columns;
  ALLOCATE(&scratch, reader->x, reader->columns - 2);
  TRY(sink->begin(sink->context, reader->columns - 2));
  while (csv->end != CSV_END_FILE) {
    csv->line++;
    csv->column = 1;
    TRY(csv_read_text(csv));
    const bool blank = csv->length == 0 && csv->end != CSV_END_COMMA;
    TRY(csv_check_blank(csv, blank));
    if (blank) continue;
    TRY(io_logs_read_row(reader));
    if (++rows % REPORTED == 0 && sink->progress) sink->progress(gzip_done(file), file->size);
  }
  return rows > 0 ? STATUS_OK
                  : status_set(STATUS_INPUT, "%s has a header, but no observations", csv->file->path);
}

/* ---- NetCDF, in blocks of ROWS rows */

enum { ROWS = 1 << 14 };

static Status io_logs_check_value(const StoreFile *file, const char *name, size_t row, double value) {
  if (isfinite(value) && fabs(value) <= DATASET_MOST) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "%s: %s of observation %zu (counted from 0) is %g%s; every value must be finite and at most "
      "%g in size",
      store_path(file), name, row, value, isnan(value) ? STORE_NAN : "", DATASET_MOST);
}

static Status io_logs_read_netcdf(const char *path, const LogsSink *sink) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, file, store_close);
  SCOPED(Names, names, names_free);
  size_t shape[2] = {SIZE_MAX, SIZE_MAX};
  TRY(store_open(path, &file));
  TRY(store_shape(file, "x", 2, shape));
  TRY(store_axes(file, "x", 2, (const char *[]){"observation", "dim"}));
  TRY(store_shape(file, "task", 1, shape));
  TRY(store_shape(file, "y", 1, shape));
  if (shape[0] == 0 || shape[1] == 0 || shape[1] > INT_MAX)
    return status_set(STATUS_INPUT, "%s: 'x' has shape (%zu, %zu); there are no observations",
                      store_path(file), shape[0], shape[1]);
  const size_t rows = shape[0], d = shape[1];
  double *x, *y; /* [ROWS, d], [ROWS] */
  int64_t *task; /* [ROWS] */
  ALLOCATE(&scratch, x, ROWS * d);
  ALLOCATE(&scratch, y, ROWS);
  ALLOCATE(&scratch, task, ROWS);
  TRY(sink->begin(sink->context, (int)d));
  for (size_t first = 0; first < rows; first += ROWS) {
    const size_t start[2] = {first, 0}, count[2] = {rows - first < ROWS ? rows - first : ROWS, d};
    TRY(store_get_part(file, "task", STORE_INT64, start, count, task));
    TRY(store_get_part(file, "x", STORE_DOUBLE, start, count, x));
    TRY(store_get_part(file, "y", STORE_DOUBLE, start, count, y));
    for (size_t r = 0; r < count[0]; r++) {
      const double *row = x + r * d;
      int number = 0;
      for (size_t i = 0; i < d; i++) TRY(io_logs_check_value(file, "x", first + r, row[i]));
      TRY(io_logs_check_value(file, "y", first + r, y[r]));
      TRY(names_number(&names, (const char *)&task[r], sizeof *task, &number));
      const Status status = sink->row(sink->context, number, row, y[r]);
      if (status == STATUS_INPUT)
        return status_prefix(status, "%s, observation %zu (counted from 0): ", store_path(file), first + r);
      TRY(status);
    }
    if (sink->progress) sink->progress((double)(first + count[0]), (double)rows);
  }
  return STATUS_OK;
}

Status io_logs_read(const char *path, const LogsSink *sink) {
  SCOPED(GzipFile, file, gzip_close);
  if (store_is_netcdf(path)) return io_logs_read_netcdf(path, sink);
  TRY(gzip_open(path, &file));
  return io_logs_read_csv(&file, sink);
}
