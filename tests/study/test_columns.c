/* The numbers of a run that are not curves (study/columns.h). */
#include "harness.h"

#include "study/columns.h"

#include <string.h>

enum { RUNS = 7, FIRST = 2, MANY = 3 };

static void test_list(void) {
  for (int c = 0; c < COLUMN_KINDS; c++) {
    const ColumnKind *kind = &column_kinds[c];
    CU_ASSERT_TRUE(strlen(kind->name) > 0 && strlen(kind->long_name) > 0 && strlen(kind->units) > 0);
    for (int i = 0; i < c; i++) CU_ASSERT_STRING_NOT_EQUAL(kind->name, column_kinds[i].name);
  }
}

/* Checks that a copy changes the places of its runs in every column, and no other. */
static void test_copy(void) {
  SCRATCH_ARENA(memory);
  Columns whole, part;
  CHECK_OK(columns_create(&memory, RUNS, &whole));
  CHECK_OK(columns_create(&memory, MANY, &part));
  for (int c = 0; c < COLUMN_KINDS; c++)
    for (int r = 0; r < MANY; r++) {
      if (column_kinds[c].counts)
        ((int64_t *)columns_values(&part, c))[r] = 10 * c + r + 1;
      else
        ((double *)columns_values(&part, c))[r] = 10 * c + r + 1;
    }
  columns_copy(&part, MANY, FIRST, &whole);
  for (int c = 0; c < COLUMN_KINDS; c++)
    for (int r = 0; r < RUNS; r++) {
      const bool counts = column_kinds[c].counts, copied = r >= FIRST && r < FIRST + MANY;
      const double value = counts ? (double)((int64_t *)columns_values(&whole, c))[r]
                                  : ((double *)columns_values(&whole, c))[r];
      const bool cleared = counts ? value == 0 : isnan(value);
      CU_ASSERT_TRUE(copied ? value == 10 * c + r - FIRST + 1 : cleared);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"the list", test_list}, {"copies", test_copy}, CU_TEST_INFO_NULL};
  return harness_run("columns", tests);
}
