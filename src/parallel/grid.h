/* Dense matrices (core/linalg/dense.h) spread over the ranks of a group, by ScaLAPACK. */
#pragma once

#include "core/linalg/dense.h"

/* Side of the blocks dealt out to ranks; 32 and 128 are equally fast (measured, d = 2 000). */
enum { GRID_BLOCK = 64 };

/* Returns false in a build without ScaLAPACK (grid_none.c), where no grid can be created. */
bool grid_is_available(void);
/* Creates the grid of the ranks of this group (parallel/group.h) that is closest to square. Collective over
 * the group; the caller must call grid_destroy. */
Dense grid_create(int block);
void grid_destroy(Dense *grid);
