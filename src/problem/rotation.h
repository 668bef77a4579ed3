/* Random orthonormal directions. */
#pragma once

#include "core/rng.h"

/* Draws `rows` <= d orthonormal rows q[rows, d], uniformly distributed, from rows * d normals of the
 * stream. */
void rotation_draw(Rng *rng, int rows, int d, double *q);
