/* The arm of the highest index phi' mean + z sqrt(phi' S phi), for many runs at once; one version for each
 * instruction level (core/simd.h). v3 and v4 give the same bits. */
#ifndef RULE_INDEX_KERNEL_H
#define RULE_INDEX_KERNEL_H

/* arm[runs] of features[arms, d, runs], mean[d, runs] and covariance[d, d, runs], the first of equals, and
 * top[runs], its index, unless that is NULL. Without covariance (NULL) the index is phi' mean. */
#define INDEX_KERNEL_DECLARE(level)                                                                          \
  void index_kernel_##level(int arms, int d, int runs, const double *features, const double *mean,           \
                            const double *covariance, double z, int *arm, double *top);
INDEX_KERNEL_DECLARE(v1)
INDEX_KERNEL_DECLARE(v3)
INDEX_KERNEL_DECLARE(v4)
#undef INDEX_KERNEL_DECLARE

#endif
