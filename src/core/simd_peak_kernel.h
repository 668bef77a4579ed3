/* The loops behind simd_peak.h, compiled once for each instruction level (simd.h). Each does `steps` steps of
 * twelve independent chains of fused multiply-adds on full vectors, and returns the number of its
 * floating-point operations; *sum keeps the compiler from removing the loop. */
#pragma once

double simd_peak_kernel_float(long steps, double *sum);
double simd_peak_kernel_double(long steps, double *sum);
