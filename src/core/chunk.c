#include "core/chunk.h"

#include "core/lanes.h"

static Chunk chunk_lanes_from(RngLanes rng, int first, int most) {
  int total = (int)rng.lanes, lanes = chunk_size(total, first, most);
  rng.first_lane += (uint32_t)first;
  rng.lanes = (uint32_t)lanes;
  return (Chunk){.first = first, .lanes = lanes, .total = total, .most = most, .rng = rng};
}

Chunk chunk_begin(RngLanes rng) { return chunk_lanes_from(rng, 0, CHUNK_LANES); }
Chunk chunk_begin_narrow(RngLanes rng, int most) { return chunk_lanes_from(rng, 0, most); }
void chunk_next(Chunk *chunk, RngLanes rng) {
  *chunk = chunk_lanes_from(rng, chunk->first + chunk->lanes, chunk->most);
}

void chunk_store(const Chunk *chunk, int d, const double *z, double *theta) {
  lanes_copy(d, chunk->lanes, z, chunk->lanes, theta + chunk->first, chunk->total);
}
