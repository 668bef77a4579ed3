/* Orthogonal directions for each lane, lane last; one version for each instruction level (core/simd.h). */
#ifndef CORE_ORTHOGONAL_KERNEL_H
#define CORE_ORTHOGONAL_KERNEL_H

/* e[count, d, lanes] <- the orthonormal vectors of Gram and Schmidt, modified, count <= d; length[count,
 * lanes]
 * <- what they measured before. */
void orthogonal_kernel(int count, int d, int lanes, double *e, double *length);

#endif
