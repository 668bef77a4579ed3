#include "study/columns.h"

#include <math.h>
#include <string.h>

const ColumnKind column_kinds[COLUMN_KINDS] = {
#define COLUMN_TIME(is, words) {.name = #is, .long_name = words, .units = "s"},
#define COLUMN_COUNT(is, words)                                                                              \
  {.name = #is, .long_name = words, .units = "1", .counts = true, .repeats = true},
#define COLUMN_REAL(is, words) {.name = #is, .long_name = words, .units = "1", .repeats = true},
    COLUMN_LIST(COLUMN_TIME, COLUMN_COUNT, COLUMN_REAL)
#undef COLUMN_TIME
#undef COLUMN_COUNT
#undef COLUMN_REAL
};

void *columns_values(const Columns *columns, int c) {
  void *const values[COLUMN_KINDS] = {
#define COLUMN_VALUES(name, words) columns->name,
      COLUMN_LIST(COLUMN_VALUES, COLUMN_VALUES, COLUMN_VALUES)
#undef COLUMN_VALUES
  };
  return values[c];
}

Status columns_create(Arena *memory, size_t runs, Columns *out) {
#define COLUMN_CREATE(name, words) ALLOCATE(memory, out->name, runs);
  COLUMN_LIST(COLUMN_CREATE, COLUMN_CREATE, COLUMN_CREATE)
#undef COLUMN_CREATE
  columns_clear(runs, out);
  return STATUS_OK;
}

void columns_clear(size_t runs, Columns *columns) {
  for (int c = 0; c < COLUMN_KINDS; c++) {
    void *values = columns_values(columns, c);
    if (column_kinds[c].counts)
      memset(values, 0, runs * COLUMN_BYTES);
    else
      for (size_t r = 0; r < runs; r++) ((double *)values)[r] = NAN;
  }
}

void columns_copy(const Columns *from, size_t runs, size_t first, Columns *to) {
  for (int c = 0; c < COLUMN_KINDS; c++)
    memcpy((char *)columns_values(to, c) + first * COLUMN_BYTES, columns_values(from, c),
           runs * COLUMN_BYTES);
}
