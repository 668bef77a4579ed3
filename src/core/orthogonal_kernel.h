/* Orthogonal directions for each lane, lane last; one version for each instruction level (core/simd.h). */
#pragma once

/* Computes e[count, d, lanes] <- the orthonormal vectors of modified Gram-Schmidt, count <= d, and
 * length[count, lanes] <- the lengths that they had before. */
void orthogonal_kernel(int count, int d, int lanes, double *e, double *length);
