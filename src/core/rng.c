#include "core/rng.h"

#include "core/rng_kernel.h"
#include "core/simd.h"
#include "core/status.h"

#include <Random123/philox.h>
#include <string.h>

/* A fixed, arbitrary key under which (seed, purpose) is hashed into a stream key. */
static const philox4x32_key_t HASH_KEY = {{0x54686f6du, 0x70736f6eu}};

/* What a key is derived from: a seed, or another key. */
enum { OF_SEED, OF_KEY };

static RngKey rng_hash_key(uint32_t first, uint32_t second, RngPurpose purpose, uint32_t of) {
  philox4x32_ctr_t name = {{first, second, (uint32_t)purpose, of}};
  philox4x32_ctr_t hash = philox4x32(name, HASH_KEY);
  return (RngKey){{hash.v[0], hash.v[1]}};
}

RngKey rng_key(uint64_t seed, RngPurpose purpose) {
  return rng_hash_key((uint32_t)seed, (uint32_t)(seed >> 32), purpose, OF_SEED);
}

RngKey rng_subkey(RngKey key, RngPurpose purpose) {
  return rng_hash_key(key.word[0], key.word[1], purpose, OF_KEY);
}

typedef __typeof__(rng_kernel_uniform) Law; /* the kernel that draws from it */
enum { COUNTERS = RNG_KERNEL_COUNTERS, GROUP = RNG_KERNEL_GROUP };

static uint32_t rng_take_positions(uint32_t *position, int n) {
  ASSERT(n >= 0);
  uint32_t start = *position, count = ((uint32_t)n + 1) / 2;
  ASSERT(start <= UINT32_MAX - count);
  *position = start + count;
  return start;
}

/* Computes to[i] = first + i step. */
SIMD_CLONES
static void rng_counter_sequence(uint32_t first, uint32_t step, uint32_t *to) {
  for (uint32_t i = 0; i < COUNTERS; i++) to[i] = first + i * step;
}

Rng rng_of_lane(const RngLanes *rng, uint32_t lane) {
  const uint32_t index = rng->first_lane + lane, r = index / rng->draws;
  return (Rng){.key = rng->key,
               .run = rng->runs ? rng->runs[r] : rng->run + r,
               .round = rng->rounds ? rng->rounds[r] : rng->round,
               .draw = index % rng->draws};
}

/* Sets counters at .. at + count - 1 to `position` in the streams of lanes lane .. lane + count - 1. */
SIMD_CLONES
static void rng_set_counters(const RngLanes *rng, uint32_t position, uint32_t lane, uint32_t at,
                             uint32_t count, RngCounters *counters) {
  const uint32_t index = rng->first_lane + lane, draws = rng->draws;
  uint32_t run = rng->run + index / draws, draw = index % draws;
  for (uint32_t i = at; i < at + count; i++) {
    counters->position[i] = position;
    counters->round[i] = rng->round;
  }
  if (rng->runs) {
    for (uint32_t i = 0; i < count; i++) {
      const Rng stream = rng_of_lane(rng, lane + i);
      counters->run[at + i] = stream.run;
      counters->round[at + i] = stream.round;
      counters->draw[at + i] = stream.draw;
    }
    return;
  }
  if (draws == 1) { /* a bandit's lanes need no division */
    for (uint32_t i = 0; i < count; i++) {
      counters->run[at + i] = run + i;
      counters->draw[at + i] = 0;
    }
    return;
  }
  for (uint32_t i = at; i < at + count; i++) {
    counters->run[i] = run;
    counters->draw[i] = draw;
    draw++;
    if (draw == draws) {
      draw = 0;
      run++;
    }
  }
}

/* A stretch of neighbouring lanes at one position. Counters are numbered along the lanes of one position
 * after the other; a stretch begins at number `item` and has at most `left` of them. */
typedef struct {
  uint32_t position, lane, count;
} Stretch;

static Stretch rng_lane_stretch(uint32_t lanes, uint64_t item, uint32_t left) {
  const uint32_t lane = (uint32_t)(item % lanes), most = lanes - lane;
  return (Stretch){(uint32_t)(item / lanes), lane, left < most ? left : most};
}

/* Fills lanes that are not whole groups, and the last row of an odd n: COUNTERS counters at a time, from
 * however many positions they span. */
static void rng_fill_lane_stretches(const RngLanes *rng, Law *law, uint32_t start, uint32_t n, double *out) {
  const uint32_t lanes = rng->lanes;
  const uint64_t total = ((uint64_t)n + 1) / 2 * lanes;
  RngCounters counters = {.key = {rng->key.word[0], rng->key.word[1]}};
  for (uint64_t item = 0; item < total; item += COUNTERS) {
    const uint32_t count = total - item < COUNTERS ? (uint32_t)(total - item) : COUNTERS;
    double pair[2][COUNTERS];
    for (uint32_t at = 0; at < count;) {
      const Stretch part = rng_lane_stretch(lanes, item + at, count - at);
      rng_set_counters(rng, part.position, part.lane, at, part.count, &counters);
      at += part.count;
    }
    law(&counters, (int)((count + GROUP - 1) / GROUP * GROUP), start, 1, COUNTERS, pair[0]);
    for (uint32_t at = 0; at < count;) {
      const Stretch part = rng_lane_stretch(lanes, item + at, count - at);
      double *row = out + 2 * (size_t)part.position * lanes + part.lane;
      memcpy(row, pair[0] + at, part.count * sizeof *row);
      if (2 * part.position + 1 < n) memcpy(row + lanes, pair[1] + at, part.count * sizeof *row);
      at += part.count;
    }
  }
}

/* Fills out[2 whole, lanes] straight to its columns, COUNTERS lanes at a time. */
static void rng_fill_columns(const RngLanes *rng, Law *law, uint32_t start, uint32_t whole, double *out) {
  const uint32_t lanes = rng->lanes;
  for (uint32_t lane = 0; lane < lanes; lane += COUNTERS) {
    const uint32_t count = lanes - lane < COUNTERS ? lanes - lane : COUNTERS;
    RngCounters counters; /* only what is set here and in rng_set_counters is read */
    counters.key[0] = rng->key.word[0];
    counters.key[1] = rng->key.word[1];
    rng_set_counters(rng, 0, lane, 0, count, &counters);
    law(&counters, (int)count, start, whole, lanes, out + lane);
  }
}

/* Fills out[n, lanes]: the two numbers of a position are in rows 2 position and 2 position + 1; for odd n the
 * last row is missing. */
static void rng_fill(RngLanes *rng, int n, double *out, Law *law) {
  ASSERT(rng->draws >= 1 && rng->lanes >= 1);
  const uint32_t start = rng_take_positions(&rng->position, n), lanes = rng->lanes;
  const uint32_t whole = lanes % GROUP == 0 ? (uint32_t)n / 2 : 0; /* positions of which both are needed */
  if (whole > 0) rng_fill_columns(rng, law, start, whole, out);
  if (2 * whole < (uint32_t)n)
    rng_fill_lane_stretches(rng, law, start + whole, (uint32_t)n - 2 * whole,
                            out + 2 * (size_t)whole * lanes);
}

void rng_lanes_uniform(RngLanes *rng, int n, double *out) { rng_fill(rng, n, out, rng_kernel_uniform); }
void rng_lanes_normal(RngLanes *rng, int n, double *out) { rng_fill(rng, n, out, rng_kernel_normal); }

/* Fills out[n] from a single stream, along positions instead of lanes. */
static void rng_fill_stream(Rng *rng, int n, double *out, Law *law) {
  RngCounters counters = {.key = {rng->key.word[0], rng->key.word[1]}};
  uint32_t start = rng_take_positions(&rng->position, n), pairs = ((uint32_t)n + 1) / 2;
  rng_counter_sequence(rng->run, 0, counters.run);
  rng_counter_sequence(rng->round, 0, counters.round);
  rng_counter_sequence(rng->draw, 0, counters.draw);
  rng_counter_sequence(0, 1, counters.position);
  for (uint32_t done = 0; done < pairs; done += COUNTERS) {
    const uint32_t left = pairs - done,
                   count = left < COUNTERS ? (left + GROUP - 1) / GROUP * GROUP : COUNTERS;
    double pair[2][COUNTERS];
    law(&counters, (int)count, start + done, 1, COUNTERS, pair[0]);
    for (uint32_t i = 0; i < COUNTERS && i < left; i++) {
      const uint32_t at = 2 * (done + i);
      out[at] = pair[0][i];
      if (at + 1 < (uint32_t)n) out[at + 1] = pair[1][i];
    }
  }
}

void rng_uniform(Rng *rng, int n, double *out) { rng_fill_stream(rng, n, out, rng_kernel_uniform); }
void rng_normal(Rng *rng, int n, double *out) { rng_fill_stream(rng, n, out, rng_kernel_normal); }

uint64_t rng_index(Rng *rng, uint64_t bound) {
  ASSERT(bound >= 1);
  philox4x32_ctr_t counter = {{rng_take_positions(&rng->position, 1), rng->draw, rng->round, rng->run}};
  philox4x32_key_t key = {{rng->key.word[0], rng->key.word[1]}};
  philox4x32_ctr_t bits = philox4x32(counter, key);
  uint64_t word = (uint64_t)bits.v[1] << 32 | bits.v[0];
  return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}

void rng_permutation(Rng *rng, int n, int *order) {
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    const int j = (int)rng_index(rng, (uint64_t)i + 1), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
}

int rng_permuted(int n, RngKey key, uint32_t run, int place) {
  unsigned bits = 2;
  while (1u << bits < (unsigned)n) bits += 2;
  uint32_t half = bits / 2, mask = (1u << half) - 1, value = (uint32_t)place;
  do { /* walk the cycle until it is back inside [0, n) */
    uint32_t left = value >> half, right = value & mask;
    for (uint32_t round = 0; round < 4; round++) {
      Rng rng = {.key = key, .run = run, .round = round, .draw = right};
      uint32_t mixed = (uint32_t)rng_index(&rng, UINT32_MAX) & mask;
      uint32_t swapped = left ^ mixed;
      left = right;
      right = swapped;
    }
    value = left << half | right;
  } while (value >= (uint32_t)n);
  return (int)value;
}
