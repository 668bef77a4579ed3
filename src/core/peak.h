/* What one core can do at best, measured: the roof that speeds are compared with. Rates are of CPU time. One
 * try takes about a millisecond, so that it can stand between two pieces of the work that is measured: a core
 * that is shared, or warm, changes its speed from second to second. */
#pragma once

#include "core/status.h"

#include <stddef.h>

/* Returns the flop/s of one try of fused multiply-adds on full vectors of the widest instruction level of
 * this processor. */
double peak_float(void);
double peak_double(void);
/* Returns the best of twenty tries. */
double peak_best(double (*one)(void));

/* Memory traffic of a = b + s c (the triad of STREAM: McCalpin, IEEE TCCA Newsletter, December 1995), 24
 * bytes for each element. A try goes on through the arrays where the last one ended. */
typedef struct {
  size_t elements, next;
  double *a, *b, *c; /* [elements] each */
} PeakMemory;

/* Creates arrays of four times the size of the last cache each, but at least 64 and at most 256 MB;
 * `sharers` processes that measure at once share that cache, and these sizes: each takes its part, but at
 * least 8 MB, more than a core has for itself. The caller ends with peak_memory_destroy, also after an
 * error. */
Status peak_memory_create(int sharers, PeakMemory *out);
void peak_memory_destroy(PeakMemory *memory);
/* Returns the bytes per second of one try. */
double peak_memory_rate(PeakMemory *memory);
