/* Many counter values at once: Philox4x32-10 and the Box-Muller transform, for rng.c only; one version for
 * each instruction level (simd.h). */
#ifndef CORE_RNG_KERNEL_H
#define CORE_RNG_KERNEL_H

#include <stdint.h>

enum { RNG_KERNEL_PAIRS = 64 };

/* The streams and positions of RNG_KERNEL_PAIRS counter values. */
typedef struct {
  uint32_t key[2], round;
  uint32_t run[RNG_KERNEL_PAIRS], draw[RNG_KERNEL_PAIRS], position[RNG_KERNEL_PAIRS];
} RngCounters;

/* Two uniforms in (0, 1) of each counter value: u[RNG_KERNEL_PAIRS], v[RNG_KERNEL_PAIRS]. All versions give
 * the same bits. */
void rng_kernel_uniform_v4(const RngCounters *counters, double *u, double *v);
void rng_kernel_uniform_v3(const RngCounters *counters, double *u, double *v);
void rng_kernel_uniform_v1(const RngCounters *counters, double *u, double *v);

/* In place: u <- sqrt(-2 log u) cos(2 pi v), v <- sqrt(-2 log u) sin(2 pi v). v3 and v4 give the same
 * bits. */
void rng_kernel_normal_v4(double *u, double *v);
void rng_kernel_normal_v3(double *u, double *v);
void rng_kernel_normal_v1(double *u, double *v);

#endif
