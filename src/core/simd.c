#include "core/simd.h"

#include <stdbool.h>

/* By features and not by level, of which not every compiler knows the names. */
SimdLevel simd_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3 && v4) return SIMD_V4;
  if (v3) return SIMD_V3;
#endif
  return SIMD_V1;
}
