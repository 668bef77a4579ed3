/* The lanes of one call, taken at most CHUNK_LANES (core/tiling.h) at a time, so that the scratch of a
 * sampler stays in cache and does not grow with B M. No draw depends on which chunk it falls into. */
#pragma once

#include "core/rng.h"
#include "core/tiling.h"

typedef struct {
  int first, lanes; /* lanes first .. first + lanes - 1 of the call; lane n belongs to run n / rng.draws */
  int total; /* N = B M */
  int most; /* lanes of a chunk */
  RngLanes rng; /* the chunk's own streams */
} Chunk;

/* Returns the lanes of the chunk of at most `most` that begins at lane `first` of `total`. */
static inline int chunk_size(int total, int first, int most) {
  return total - first < most ? total - first : most;
}

/* Begins the chunks: for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) */
Chunk chunk_begin(RngLanes rng);
/* Begins chunks of `most` lanes. */
Chunk chunk_begin_narrow(RngLanes rng, int most);
void chunk_next(Chunk *chunk, RngLanes rng);

/* Stores columns first .. of theta[d, N] <- z[d, lanes]. */
void chunk_store(const Chunk *chunk, int d, const double *z, double *theta);
