/* Cholesky factors of many small matrices, lane last, for linalg_lanes.c; one version for each instruction
 * level (core/simd.h). All take the same sums in the same order as linalg_cholesky_strided. */
#ifndef CORE_CHOLESKY_KERNEL_H
#define CORE_CHOLESKY_KERNEL_H

/* a[d, d, lanes] <- L in the lower triangle; jitters[lanes] += bad pivots (linalg.h); NULL: not counted. */
void cholesky_kernel_factor(int d, int lanes, double *a, int *jitters);

#endif
