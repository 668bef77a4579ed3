/* The numbers that a study keeps for each run, apart from its curves: one row of this list each. Journals,
 * the reducer, results.nc, `thompson verify` and the scripts of analysis/ walk the list. TIME: CPU seconds,
 * never the same twice. COUNT: whole numbers. REAL: any numbers, NaN where they are not known.
 *
 * A new row goes last, because the records of earlier versions lack it. */
#pragma once

#include "core/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define COLUMN_LIST(TIME, COUNT, REAL)                                                                       \
  TIME(seconds, "CPU seconds of the block's simulation divided by its runs")                                 \
  COUNT(fallbacks, "numerical fallbacks")                                                                    \
  REAL(draws_offset, "how far the mean of the draws lies beyond the posterior mean, on the line from the "   \
                     "prior mean, in posterior standard deviations")                                         \
  REAL(draws_spread, "mean squared distance of the draws from the posterior mean, relative to its "          \
                     "expectation")

/* The columns of some runs, by name: [runs] each. */
typedef struct {
#define COLUMN_REAL(name, words) double *name;
#define COLUMN_COUNT(name, words) int64_t *name;
  COLUMN_LIST(COLUMN_REAL, COLUMN_COUNT, COLUMN_REAL)
#undef COLUMN_REAL
#undef COLUMN_COUNT
} Columns;

enum {
#define COLUMN_PLACE(name, words) COLUMN_##name,
  COLUMN_LIST(COLUMN_PLACE, COLUMN_PLACE, COLUMN_PLACE)
#undef COLUMN_PLACE
      COLUMN_KINDS
};

enum { COLUMN_BYTES = 8 /* of a number, of any kind */ };

typedef struct {
  const char *name, *long_name, *units;
  bool counts; /* int64_t, 0 where nothing was counted; else double, NaN where it is not known */
  bool repeats; /* the same whenever a run is run again */
} ColumnKind;

extern const ColumnKind column_kinds[COLUMN_KINDS];

/* Returns column number `c` of the list: [runs], int64_t or double. */
void *columns_values(const Columns *columns, int c);
/* Creates cleared columns of `runs` runs. */
Status columns_create(Arena *memory, size_t runs, Columns *out);
/* Sets the columns of `runs` runs to what is stored where nothing is known. */
void columns_clear(size_t runs, Columns *columns);
/* Copies all columns of `runs` runs to the places from `first` on of other ones. */
void columns_copy(const Columns *from, size_t runs, size_t first, Columns *to);
