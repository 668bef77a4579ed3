#include "core/simd.h"

#include <stdatomic.h>
#include <stdbool.h>

/* By features and not by level, of which not every compiler knows the names. */
static SimdLevel find_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) return v4 ? SIMD_V4 : SIMD_V3;
#endif
  return SIMD_V1;
}

SimdLevel simd_level(void) {
  static _Atomic(SimdLevel) level; /* 0: not asked yet */
  SimdLevel known = atomic_load_explicit(&level, memory_order_relaxed);
  if (known == 0) atomic_store_explicit(&level, known = find_level(), memory_order_relaxed);
  return known;
}
