#include "levels.h"

int runnable_levels(void) { return simd_level() == SIMD_V4 ? 3 : simd_level() == SIMD_V3 ? 2 : 1; }
