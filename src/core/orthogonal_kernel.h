/* Orthogonal directions for each lane, lane last; one version for each instruction level (core/simd.h). */
#ifndef CORE_ORTHOGONAL_KERNEL_H
#define CORE_ORTHOGONAL_KERNEL_H

/* e[count, d, lanes] <- the orthonormal vectors of Gram and Schmidt, modified, count <= d; length[count,
 * lanes]
 * <- what they measured before. */
#define ORTHOGONAL_KERNEL_DECLARE(level)                                                                     \
  void orthogonal_kernel_##level(int count, int d, int lanes, double *e, double *length);
ORTHOGONAL_KERNEL_DECLARE(v1)
ORTHOGONAL_KERNEL_DECLARE(v3)
ORTHOGONAL_KERNEL_DECLARE(v4)
#undef ORTHOGONAL_KERNEL_DECLARE

#endif
