/* Replaces grid.c in a build without ScaLAPACK: matrices stay on one rank, with LAPACK. */
#include "parallel/grid.h"

bool grid_is_available(void) { return false; }

Dense grid_create(int block) {
  (void)block;
  ASSERT(grid_is_available());
  return (Dense){0};
}

void grid_destroy(Dense *grid) { (void)grid; }
