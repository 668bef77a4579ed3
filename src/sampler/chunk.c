#include "sampler/chunk.h"

#include "core/lanes.h"
#include "model/denoiser/chain.h"

#include <math.h>
#include <string.h>

static Chunk chunk_at(RngLanes rng, int first, int most) {
  int total = (int)rng.lanes, lanes = chunk_size(total, first, most);
  rng.first_lane += (uint32_t)first;
  rng.lanes = (uint32_t)lanes;
  return (Chunk){.first = first, .lanes = lanes, .total = total, .most = most, .rng = rng};
}

Chunk chunk_begin(RngLanes rng) { return chunk_at(rng, 0, CHUNK_LANES); }
Chunk chunk_begin_narrow(RngLanes rng, int most) { return chunk_at(rng, 0, most); }
void chunk_next(Chunk *chunk, RngLanes rng) {
  *chunk = chunk_at(rng, chunk->first + chunk->lanes, chunk->most);
}

/* Returns whether x is beyond the guard, or NaN. They are compared as integers, where NaN is larger than
 * every number: a floating-point comparison would raise "invalid" on NaN once it is vectorised. */
static inline bool is_outside(double x) {
  const double limit = CHAIN_GUARD;
  uint64_t bits, limit_bits;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&limit_bits, &limit, sizeof limit_bits);
  return (bits & INT64_MAX) > limit_bits;
}

SIMD_CLONES
static long count_outside(int n, const double *s) {
  long outside = 0;
  for (int i = 0; i < n; i++) outside += is_outside(s[i]);
  return outside;
}

void chunk_guard(const Chunk *chunk, int d, double *s, int64_t *fallbacks) {
  int lanes = chunk->lanes;
  if (count_outside(d * lanes, s) == 0) return;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      double *x = &s[i * lanes + n];
      if (!is_outside(*x)) continue;
      *x = isnan(*x) ? 0 : copysign(CHAIN_GUARD, *x);
      fallbacks[(uint32_t)(chunk->first + n) / chunk->rng.draws]++;
    }
}

void chunk_store(const Chunk *chunk, int d, const double *z, double *theta) {
  lanes_copy(d, chunk->lanes, z, chunk->lanes, theta + chunk->first, chunk->total);
}
