/* The arm of the highest score phi' theta, for many runs at once; one version for each instruction level
 * (core/simd.h). v3 and v4 give the same bits. */
#ifndef PROBLEM_GREEDY_KERNEL_H
#define PROBLEM_GREEDY_KERNEL_H

/* arm[runs] of features[arms, d, runs] and theta[d, runs], the first of equals. */
#define GREEDY_KERNEL_DECLARE(level)                                                                         \
  void greedy_kernel_##level(int arms, int d, int runs, const double *features, const double *theta,         \
                             int *arm);
GREEDY_KERNEL_DECLARE(v1)
GREEDY_KERNEL_DECLARE(v3)
GREEDY_KERNEL_DECLARE(v4)
#undef GREEDY_KERNEL_DECLARE

#endif
