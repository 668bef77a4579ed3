/* The three products of an update of VITS (vits_step.h) for many Gaussians of few dimensions, each fused with
 * what is done to its entries; one version for each instruction level (core/simd.h). N lanes, lane last;
 * vits_step.c has the same in plain steps, for one large matrix. */
#pragma once

#include <stddef.h>

/* Returns the doubles of scratch that the kernels need. */
static inline size_t vits_kernel_scratch(int d) { return (size_t)d * 5 * 8; }

/* Computes excess[d, d, n] = C'C - A and bound[n] = matrix_moment_bound of C'C; B <- B + h (C' - A B) and
 * spread[d, n] = the variances of B B'; C <- C - h C excess. */
void vits_kernel_excess(int d, int lanes, const double *inverse, const double *hessian, double *excess,
                        double *bound);
void vits_kernel_root(int d, int lanes, const double *h, const double *inverse, const double *hessian,
                      double *root, double *spread, double *scratch);
void vits_kernel_inverse(int d, int lanes, const double *h, const double *excess, double *inverse,
                         double *scratch);
