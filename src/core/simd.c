#include "core/simd.h"

#include <stdbool.h>

/* Asks for features instead of the level, whose name not every compiler knows. The loader calls it before
 * anything else is set up. */
SimdLevel simd_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) return v4 ? SIMD_V4 : SIMD_V3;
#endif
  return SIMD_V1;
}
