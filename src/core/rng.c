#include "core/rng.h"

#include "core/box_muller.h"
#include "core/simd.h"
#include "core/status.h"

#include <Random123/philox.h>

/* A fixed, arbitrary key under which (seed, purpose) is hashed into a stream key. */
static const philox4x32_key_t HASH_KEY = {{0x54686f6du, 0x70736f6eu}};

enum { CHUNK = 64 }; /* counter values handled at once: small enough for L1, long enough for vectors */

RngKey rng_key(uint64_t seed, RngPurpose purpose) {
  philox4x32_ctr_t name = {{(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)purpose, 0}};
  philox4x32_ctr_t hash = philox4x32(name, HASH_KEY);
  return (RngKey){{hash.v[0], hash.v[1]}};
}

/* 64 bits to the middle of one of 2^52 equal cells of (0, 1): never 0 or 1. */
static inline double unit_interval(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

static inline void two_uniforms(RngKey key, uint32_t run, uint32_t round, uint32_t draw, uint32_t position,
                                double *first, double *second) {
  philox4x32_ctr_t counter = {{position, draw, round, run}};
  philox4x32_key_t philox_key = {{key.word[0], key.word[1]}};
  philox4x32_ctr_t bits = philox4x32(counter, philox_key);
  *first = unit_interval(bits.v[0], bits.v[1]);
  *second = unit_interval(bits.v[2], bits.v[3]);
}

static void to_normal(double *u, double *v) { SIMD_CALL(box_muller, CHUNK, u, v); }

static uint32_t take_positions(uint32_t *position, int n) {
  ASSERT(n >= 0);
  uint32_t start = *position, count = ((uint32_t)n + 1) / 2;
  ASSERT(start <= UINT32_MAX - count);
  *position = start + count;
  return start;
}

/* Fill out[n, lanes] with uniforms or normals; `transform` maps CHUNK pairs in place. */
static void fill(RngLanes *rng, int n, double *out, void (*transform)(double *, double *)) {
  ASSERT(rng->draws >= 1 && rng->lanes >= 1);
  uint32_t lanes = rng->lanes, start = take_positions(&rng->position, n);
  uint32_t first_run = rng->run + rng->first_lane / rng->draws, first_draw = rng->first_lane % rng->draws;
  for (int row = 0; row < n; row += 2) {
    uint32_t run = first_run, draw = first_draw, position = start + (uint32_t)row / 2;
    for (uint32_t lane = 0; lane < lanes; lane += CHUNK) {
      double first[CHUNK], second[CHUNK];
      uint32_t count = lanes - lane < CHUNK ? lanes - lane : CHUNK;
      for (uint32_t i = 0; i < count; i++) {
        two_uniforms(rng->key, run, rng->round, draw, position, &first[i], &second[i]);
        if (++draw == rng->draws) draw = 0, run++;
      }
      if (transform) {
        for (uint32_t i = count; i < CHUNK; i++) first[i] = second[i] = 0.5;
        transform(first, second);
      }
      double *row0 = out + (size_t)row * lanes + lane, *row1 = row0 + lanes;
      for (uint32_t i = 0; i < count; i++) row0[i] = first[i];
      if (row + 1 < n)
        for (uint32_t i = 0; i < count; i++) row1[i] = second[i];
    }
  }
}

void rng_lanes_uniform(RngLanes *rng, int n, double *out) { fill(rng, n, out, 0); }
void rng_lanes_normal(RngLanes *rng, int n, double *out) { fill(rng, n, out, to_normal); }

/* A single stream runs along positions instead of lanes. */
static void fill_one(Rng *rng, int n, double *out, void (*transform)(double *, double *)) {
  uint32_t start = take_positions(&rng->position, n), pairs = ((uint32_t)n + 1) / 2;
  for (uint32_t pair = 0; pair < pairs; pair += CHUNK) {
    double first[CHUNK], second[CHUNK];
    uint32_t count = pairs - pair < CHUNK ? pairs - pair : CHUNK;
    for (uint32_t i = 0; i < count; i++)
      two_uniforms(rng->key, rng->run, rng->round, rng->draw, start + pair + i, &first[i], &second[i]);
    if (transform) {
      for (uint32_t i = count; i < CHUNK; i++) first[i] = second[i] = 0.5;
      transform(first, second);
    }
    for (uint32_t i = 0; i < count; i++) {
      uint32_t at = 2 * (pair + i);
      out[at] = first[i];
      if (at + 1 < (uint32_t)n) out[at + 1] = second[i];
    }
  }
}

void rng_uniform(Rng *rng, int n, double *out) { fill_one(rng, n, out, 0); }
void rng_normal(Rng *rng, int n, double *out) { fill_one(rng, n, out, to_normal); }

uint64_t rng_index(Rng *rng, uint64_t bound) {
  ASSERT(bound >= 1);
  philox4x32_ctr_t counter = {{take_positions(&rng->position, 1), rng->draw, rng->round, rng->run}};
  philox4x32_key_t key = {{rng->key.word[0], rng->key.word[1]}};
  philox4x32_ctr_t bits = philox4x32(counter, key);
  uint64_t word = (uint64_t)bits.v[1] << 32 | bits.v[0];
  return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}
