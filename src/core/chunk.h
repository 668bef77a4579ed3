/* The lanes of one call, split into chunks of at most CHUNK_LANES (core/tiling.h), so that a sampler's
 * scratch stays in cache and does not grow with B M. No draw depends on which chunk it falls into. */
#pragma once

#include "core/lanes.h"
#include "core/rng.h"

#include <math.h>
#include <stdbool.h>

typedef struct {
  int first, lanes; /* lanes first .. first + lanes - 1 of the call; lane n belongs to run n / rng.draws */
  int total; /* N = B M */
  int most; /* lanes per chunk, at most */
  bool in_run; /* a chunk ends where a run does */
  RngLanes rng; /* the chunk's own streams */
} Chunk;

/* Returns the number of lanes in the chunk of at most `most` lanes that begins at lane `first` of `total`. */
static inline int chunk_size(int total, int first, int most) {
  return total - first < most ? total - first : most;
}

static inline Chunk chunk_lanes_from(RngLanes rng, int first, int most, bool in_run) {
  int total = (int)rng.lanes, lanes = chunk_size(total, first, most);
  if (in_run) lanes = chunk_size((int)rng.draws, first % (int)rng.draws, lanes);
  rng.first_lane += (uint32_t)first;
  rng.lanes = (uint32_t)lanes;
  return (Chunk){.first = first, .lanes = lanes, .total = total, .most = most, .in_run = in_run, .rng = rng};
}

/* Starts the loop over chunks: for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk,
 * rng)) */
static inline Chunk chunk_begin(RngLanes rng) { return chunk_lanes_from(rng, 0, CHUNK_LANES, false); }
/* Starts it with chunks of at most `most` lanes. */
static inline Chunk chunk_begin_narrow(RngLanes rng, int most) {
  return chunk_lanes_from(rng, 0, most, false);
}
/* Starts it with chunks of lanes that, with `in_run`, are of one run each. */
static inline Chunk chunk_begin_wide(RngLanes rng, int most, bool in_run) {
  return chunk_lanes_from(rng, 0, most, in_run);
}
static inline void chunk_next(Chunk *chunk, RngLanes rng) {
  *chunk = chunk_lanes_from(rng, chunk->first + chunk->lanes, chunk->most, chunk->in_run);
}

/* Makes the chunk's columns of theta[d, N] count as missing. */
static inline void chunk_miss(const Chunk *chunk, double *theta) {
  for (int n = 0; n < chunk->lanes; n++) theta[chunk->first + n] = NAN;
}

/* Copies z[d, lanes] to the chunk's columns of theta[d, N]. */
static inline void chunk_store(const Chunk *chunk, int d, const double *z, double *theta) {
  lanes_copy(d, chunk->lanes, z, chunk->lanes, theta + chunk->first, chunk->total);
}
