#include "core/simd_peak.h"

#include "core/clock.h"
#include "core/memory.h"
#include "core/simd.h"
#include "core/simd_peak_kernel.h"

#include <unistd.h>

enum { STEPS = 200000, TRIES = 20, TRY_ELEMENTS = 1 << 18 };
static const size_t LEAST_BYTES = 64 << 20, MOST_BYTES = 256 << 20, LEAST_SHARE = 8 << 20;

static double simd_peak_flop_rate(double (*kernel)(long steps, double *sum)) {
  volatile double kept;
  double sum, start = clock_cpu(), flops = kernel(STEPS, &sum), seconds = clock_cpu() - start;
  kept = sum;
  (void)kept;
  return flops / seconds;
}

double simd_peak_float(void) { return simd_peak_flop_rate(simd_peak_kernel_float); }
double simd_peak_double(void) { return simd_peak_flop_rate(simd_peak_kernel_double); }

double simd_peak_best(double (*one)(void)) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    double found = one();
    if (found > best) best = found;
  }
  return best;
}

static size_t simd_peak_clamp_bytes(size_t bytes, size_t least, size_t most) {
  return bytes < least ? least : bytes > most ? most : bytes;
}

static size_t simd_peak_array_bytes(int sharers) {
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE); /* 0 or -1 if unknown */
  size_t bytes = simd_peak_clamp_bytes(cache > 0 ? 4 * (size_t)cache : 0, LEAST_BYTES, MOST_BYTES);
  return simd_peak_clamp_bytes(bytes / (size_t)sharers, LEAST_SHARE, MOST_BYTES);
}

Status simd_peak_memory_create(int sharers, PeakMemory *out) {
  *out =
      (PeakMemory){.elements = simd_peak_array_bytes(sharers) / sizeof(double) / TRY_ELEMENTS * TRY_ELEMENTS};
  NEW(out->a, out->elements);
  NEW(out->b, out->elements);
  NEW(out->c, out->elements);
  return STATUS_OK;
}

void simd_peak_memory_destroy(PeakMemory *memory) {
  free(memory->a);
  free(memory->b);
  free(memory->c);
  *memory = (PeakMemory){0};
}

SIMD_CLONES
static void simd_peak_stream_triad(double *restrict a, const double *restrict b, const double *restrict c) {
  for (int i = 0; i < TRY_ELEMENTS; i++) a[i] = b[i] + 3 * c[i];
}

double simd_peak_memory_rate(PeakMemory *memory) {
  const size_t at = memory->next;
  double start = clock_cpu();
  simd_peak_stream_triad(memory->a + at, memory->b + at, memory->c + at);
  double seconds = clock_cpu() - start;
  memory->next = (at + TRY_ELEMENTS) % memory->elements;
  return 3 * sizeof(double) * (double)TRY_ELEMENTS / seconds;
}
