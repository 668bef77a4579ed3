/* The fused multiply-add peak of one core, measured: the roof that kernel benchmarks are compared with.
 * Flop/s at the widest instruction level of this processor, in CPU time. */
#ifndef BENCH_FMA_PEAK_H
#define BENCH_FMA_PEAK_H

#include "core/simd.h"

#include <time.h>

/* CPU seconds of this process. */
static inline double bench_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 16 independent chains hide the latency of the multiply-add; the empty asm keeps the compiler from merging
 * chains that are equal. */
#define FMA_PEAK_LOOP(name, target_name, element, bytes, constraint)                                         \
  __attribute__((target(target_name), noinline)) static double name(long steps) {                            \
    typedef element Vector __attribute__((vector_size(bytes)));                                              \
    Vector sum[16], factor = (Vector){0} + (element)0.999, term = (Vector){0} + (element)1e-3;               \
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) sum[i] = factor;                                   \
    double start = bench_seconds();                                                                          \
    for (long step = 0; step < steps; step++) {                                                              \
      _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) {                                                \
        sum[i] = sum[i] * factor + term;                                                                     \
        __asm__ volatile("" : "+" constraint(sum[i]));                                                       \
      }                                                                                                      \
    }                                                                                                        \
    double seconds = bench_seconds() - start;                                                                \
    Vector all = (Vector){0};                                                                                \
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) all += sum[i];                                     \
    __asm__ volatile("" : : constraint(all));                                                                \
    return 2.0 * 16.0 * (double)(sizeof(Vector) / sizeof(element)) * (double)steps / seconds;                \
  }

#if defined(__x86_64__)
FMA_PEAK_LOOP(fma_rate_float_v4, "arch=x86-64-v4", float, 64, "v")
FMA_PEAK_LOOP(fma_rate_float_v3, "arch=x86-64-v3", float, 32, "x")
FMA_PEAK_LOOP(fma_rate_float_v1, "arch=x86-64", float, 16, "x")
FMA_PEAK_LOOP(fma_rate_double_v4, "arch=x86-64-v4", double, 64, "v")
FMA_PEAK_LOOP(fma_rate_double_v3, "arch=x86-64-v3", double, 32, "x")
FMA_PEAK_LOOP(fma_rate_double_v1, "arch=x86-64", double, 16, "x")
#else
#error "the peak loop knows x86-64 only"
#endif

static inline double fma_one_try(double (*v4)(long), double (*v3)(long), double (*v1)(long)) {
  SimdLevel level = simd_level();
  return (level == SIMD_V4 ? v4 : level == SIMD_V3 ? v3 : v1)(200000);
}

/* One try, under a millisecond, for benchmarks that measure the roof and the kernel in turns. */
static inline double fma_rate_float(void) {
  return fma_one_try(fma_rate_float_v4, fma_rate_float_v3, fma_rate_float_v1);
}
static inline double fma_rate_double(void) {
  return fma_one_try(fma_rate_double_v4, fma_rate_double_v3, fma_rate_double_v1);
}

/* The best of 20. */
static inline double fma_best_of(double (*rate)(void)) {
  double best = 0;
  for (int i = 0; i < 20; i++) {
    double found = rate();
    if (found > best) best = found;
  }
  return best;
}
static inline double fma_peak_float(void) { return fma_best_of(fma_rate_float); }
static inline double fma_peak_double(void) { return fma_best_of(fma_rate_double); }

#endif
