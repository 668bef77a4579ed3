/* What one core can do at best, measured: the roof that speeds are compared with. Rates are per second of CPU
 * time. Compiled once for each instruction level (simd.h). One try takes about a millisecond, so that it fits
 * between two pieces of the work that is measured: a core that is shared, or hot, changes its speed from
 * second to second. */
#pragma once

#include "core/arena.h"

/* Does `steps` steps of twelve independent chains of fused multiply-adds on full vectors, and returns the
 * number of its floating-point operations; *sum keeps the compiler from removing the loop. */
double simd_peak_chains_float(long steps, double *sum);
double simd_peak_chains_double(long steps, double *sum);
/* Returns the flop/s of one try of fused multiply-adds on full vectors of the widest instruction level of
 * this processor. */
double simd_peak_float(void);
double simd_peak_double(void);
/* Returns the best of twenty tries. */
double simd_peak_best(double (*one)(void));

/* Memory traffic of a = b + s c (the triad of STREAM: McCalpin, IEEE TCCA Newsletter, December 1995), 24
 * bytes per element. Each try continues through the arrays where the last one ended. */
typedef struct {
  size_t elements, next;
  double *a, *b, *c; /* [elements] each */
} PeakMemory;

/* Creates three arrays, each four times as large as the last-level cache, but at least 64 and at most 256 MB.
 * When `sharers` processes measure at once, they share that cache and divide these sizes by their number,
 * down to 8 MB, which is more than the private caches of a core. */
Status simd_peak_memory_create(Arena *memory, int sharers, PeakMemory *out);
/* Returns the bytes per second of one try. */
double simd_peak_memory_rate(PeakMemory *memory);
