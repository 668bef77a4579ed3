/* Many counter values at once: Philox4x32-10 and the Box-Muller transform, for rng.c only; compiled once for
 * each instruction level (simd.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The most counters in a call, and the number that their count is a multiple of. */
enum { RNG_KERNEL_COUNTERS = 64, RNG_KERNEL_GROUP = 32 };

/* The streams of a call, and for each a position that is added to that of the call. */
typedef struct {
  uint32_t key[2];
  uint32_t run[RNG_KERNEL_COUNTERS], round[RNG_KERNEL_COUNTERS], draw[RNG_KERNEL_COUNTERS],
      position[RNG_KERNEL_COUNTERS];
} RngCounters;

/* Computes the two numbers of each of the positions first .. first + positions - 1 for the first `count`
 * counters, a multiple of RNG_KERNEL_GROUP. Those of the p-th position go to rows 2 p and 2 p + 1 of out[2
 * positions, stride]. Uniforms are in (0, 1), the same bits at every level; normals are sqrt(-2 log u) cos(2
 * pi v) and sqrt(-2 log u) sin(2 pi v) of two such uniforms u and v, the same bits at v3 and v4. */
void rng_kernel_uniform(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                        size_t stride, double *out);
void rng_kernel_normal(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                       size_t stride, double *out);
