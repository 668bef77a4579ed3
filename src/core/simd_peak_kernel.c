/* Compiled once for each instruction level. Twelve chains hide a latency of up to six cycles on two units,
 * and leave registers for the factor and the term at every level. */
#include "core/simd_peak_kernel.h"

#include "core/simd.h"

enum { CHAINS = 12 };

/* The chains start apart, so that the compiler cannot merge them. */
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

PEAK_KERNEL(simd_peak_kernel_float, float)
PEAK_KERNEL(simd_peak_kernel_double, double)
