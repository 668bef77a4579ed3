/* Random directions at right angles. */
#ifndef PROBLEM_ROTATION_H
#define PROBLEM_ROTATION_H

#include "core/rng.h"

/* Draws `rows` <= d orthonormal rows q[rows, d], uniform among all, from rows * d normals of the stream. */
void rotation_draw(Rng *rng, int rows, int d, double *q);

#endif
