/* Dense matrices (core/dense.h) spread over all ranks, by ScaLAPACK. */
#pragma once

#include "core/dense.h"
#include "parallel/parallel.h"

/* Side of the blocks that are dealt out; 32 and 128 take as long (measured, d = 2 000). */
enum { GRID_BLOCK = 64 };

/* Returns false in a build without ScaLAPACK (grid_none.c): then there is nothing to be created. */
bool grid_is_available(void);
/* Creates the most square grid of all ranks. Collective; the caller ends with grid_destroy. */
Dense grid_create(const Parallel *parallel, int block);
void grid_destroy(Dense *grid);
