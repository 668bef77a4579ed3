/* The versions of a kernel for each instruction level (core/simd.h). */
#pragma once

#include "core/simd.h"

#define DECLARE_LEVELS(f) extern __typeof__(f) f##_v1, f##_v3, f##_v4

/* Returns how many of v1, v3, v4 this machine runs. */
int runnable_levels(void);
