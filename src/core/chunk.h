/* The lanes of one call, split into chunks of at most CHUNK_LANES (core/tiling.h), so that a sampler's
 * scratch stays in cache and does not grow with B M. No draw depends on which chunk it falls into. */
#pragma once

#include "core/rng.h"
#include "core/tiling.h"

typedef struct {
  int first, lanes; /* lanes first .. first + lanes - 1 of the call; lane n belongs to run n / rng.draws */
  int total; /* N = B M */
  int most; /* lanes per chunk, at most */
  RngLanes rng; /* the chunk's own streams */
} Chunk;

/* Returns the number of lanes in the chunk of at most `most` lanes that begins at lane `first` of `total`. */
static inline int chunk_size(int total, int first, int most) {
  return total - first < most ? total - first : most;
}

/* Starts the loop over chunks: for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk,
 * rng)) */
Chunk chunk_begin(RngLanes rng);
/* Starts it with chunks of at most `most` lanes. */
Chunk chunk_begin_narrow(RngLanes rng, int most);
void chunk_next(Chunk *chunk, RngLanes rng);

/* Copies z[d, lanes] to the chunk's columns of theta[d, N]. */
void chunk_store(const Chunk *chunk, int d, const double *z, double *theta);
