#include "core/simd_peak.h"

#include "core/clock.h"
#include "core/simd.h"

#include <math.h>
#include <unistd.h>

/* Twelve chains hide a latency of up to six cycles on two units, and leave registers for the factor and the
 * term at every level. They start apart, so that the compiler cannot merge them. */
enum { CHAINS = 12 };
#define PEAK_KERNEL(name, element)                                                                           \
  double name(long steps, double *sum) {                                                                     \
    typedef element Vector __attribute__((vector_size(SIMD_BYTES)));                                         \
    const int lanes = SIMD_BYTES / (int)sizeof(element);                                                     \
    Vector chain[CHAINS], factor = (Vector){0} + (element)0.999, term = (Vector){0} + (element)1e-3;         \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) chain[i] = factor * (element)i;                \
    for (long step = 0; step < steps; step++) {                                                              \
      _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * factor + term;         \
    }                                                                                                        \
    Vector all = (Vector){0};                                                                                \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) all += chain[i];                               \
    *sum = 0;                                                                                                \
    for (int i = 0; i < lanes; i++) *sum += (double)all[i];                                                  \
    return 2.0 * CHAINS * lanes * (double)steps;                                                             \
  }

PEAK_KERNEL(simd_peak_chains_float, float)
PEAK_KERNEL(simd_peak_chains_double, double)

enum { STEPS = 200000, TRIES = 20, TRY_ELEMENTS = 1 << 18 };
static const double LEAST_BYTES = 64 << 20, MOST_BYTES = 256 << 20, LEAST_SHARE = 8 << 20;

static double simd_peak_flop_rate(double (*kernel)(long steps, double *sum)) {
  volatile double kept;
  double sum, start = clock_cpu(), flops = kernel(STEPS, &sum), seconds = clock_cpu() - start;
  kept = sum;
  (void)kept;
  return flops / seconds;
}

double simd_peak_float(void) { return simd_peak_flop_rate(simd_peak_chains_float); }
double simd_peak_double(void) { return simd_peak_flop_rate(simd_peak_chains_double); }

double simd_peak_best(double (*one)(void)) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    double found = one();
    if (found > best) best = found;
  }
  return best;
}

Status simd_peak_memory_create(Arena *memory, int sharers, PeakMemory *out) {
  const double caches = 4.0 * (double)sysconf(_SC_LEVEL3_CACHE_SIZE); /* at most 0 if unknown */
  const double bytes = fmax(fmin(fmax(caches, LEAST_BYTES), MOST_BYTES) / sharers, LEAST_SHARE);
  *out = (PeakMemory){.elements = (size_t)bytes / sizeof(double) / TRY_ELEMENTS * TRY_ELEMENTS};
  ALLOCATE_ARRAYS(memory, out->elements, &out->a, &out->b, &out->c);
  return STATUS_OK;
}

double simd_peak_memory_rate(PeakMemory *memory) {
  double *restrict a = memory->a + memory->next;
  const double *restrict b = memory->b + memory->next, *restrict c = memory->c + memory->next;
  const double start = clock_cpu();
  for (int i = 0; i < TRY_ELEMENTS; i++) a[i] = b[i] + 3 * c[i];
  const double seconds = clock_cpu() - start;
  memory->next = (memory->next + TRY_ELEMENTS) % memory->elements;
  return 3 * sizeof(double) * (double)TRY_ELEMENTS / seconds;
}
