#include "core/simd.h"

SimdLevel simd_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("x86-64-v4")) return SIMD_V4;
  if (__builtin_cpu_supports("x86-64-v3")) return SIMD_V3;
#endif
  return SIMD_V1;
}
