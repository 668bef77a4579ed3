/* The versions of a kernel for each instruction level (core/simd.h). */
#ifndef TESTS_LEVELS_H
#define TESTS_LEVELS_H

#include "core/simd.h"

#define DECLARE_LEVELS(f) extern __typeof__(f) f##_v1, f##_v3, f##_v4

/* Returns how many of v1, v3, v4 this machine runs. */
static inline int runnable_levels(void) {
  return simd_level() == SIMD_V4 ? 3 : simd_level() == SIMD_V3 ? 2 : 1;
}

#endif
