/* Random directions at right angles. */
#pragma once

#include "core/rng.h"

/* Draws `rows` <= d orthonormal rows q[rows, d], uniform among all, from rows * d normals of the stream. */
void rotation_draw(Rng *rng, int rows, int d, double *q);
