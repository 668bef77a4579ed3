/* The loops behind peak.h, one version for each instruction level (simd.h). Each does `steps` steps of
 * twelve independent chains of fused multiply-adds on full vectors, and returns its floating-point
 * operations; *sum keeps the compiler from leaving it out. */
#ifndef CORE_PEAK_KERNEL_H
#define CORE_PEAK_KERNEL_H

double peak_kernel_float(long steps, double *sum);
double peak_kernel_double(long steps, double *sum);

#endif
