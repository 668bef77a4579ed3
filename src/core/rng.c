#include "core/rng.h"

#include "core/rng_kernel.h"
#include "core/simd.h"
#include "core/status.h"

#include <Random123/philox.h>
#include <stdbool.h>
#include <string.h>

/* A fixed, arbitrary key under which (seed, purpose) is hashed into a stream key. */
static const philox4x32_key_t HASH_KEY = {{0x54686f6du, 0x70736f6eu}};

RngKey rng_key(uint64_t seed, RngPurpose purpose) {
  philox4x32_ctr_t name = {{(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)purpose, 0}};
  philox4x32_ctr_t hash = philox4x32(name, HASH_KEY);
  return (RngKey){{hash.v[0], hash.v[1]}};
}

typedef enum { UNIFORM, NORMAL } Law;
enum { PAIRS = RNG_KERNEL_PAIRS };

static void draw_pairs(const RngCounters *counters, Law law, double *first, double *second) {
  SIMD_CALL(rng_kernel_uniform, counters, first, second);
  if (law == NORMAL) SIMD_CALL(rng_kernel_normal, first, second);
}

static uint32_t take_positions(uint32_t *position, int n) {
  ASSERT(n >= 0);
  uint32_t start = *position, count = ((uint32_t)n + 1) / 2;
  ASSERT(start <= UINT32_MAX - count);
  *position = start + count;
  return start;
}

/* to[i] = first + i step. */
SIMD_CLONES
static void count_up(uint32_t first, uint32_t step, uint32_t *to) {
  for (uint32_t i = 0; i < PAIRS; i++) to[i] = first + i * step;
}

/* The streams of lanes lane .. lane + count - 1. */
static void name_streams(const RngLanes *rng, uint32_t lane, uint32_t count, RngCounters *counters) {
  uint32_t index = rng->first_lane + lane;
  if (rng->draws == 1) { /* a bandit's lanes need no division */
    count_up(rng->run + index, 1, counters->run);
    count_up(0, 0, counters->draw);
    return;
  }
  uint32_t run = rng->run + index / rng->draws, draw = index % rng->draws;
  for (uint32_t i = 0; i < count; i++) {
    counters->run[i] = run, counters->draw[i] = draw;
    if (++draw == rng->draws) draw = 0, run++;
  }
}

/* Row `row` (and the next, unless it is past the last) of out[n, lanes]: the two numbers of one position of
 * every lane. */
static void fill_rows(const RngLanes *rng, uint32_t position, bool both, Law law, double *out) {
  RngCounters counters = {.key = {rng->key.word[0], rng->key.word[1]}, .round = rng->round};
  uint32_t lanes = rng->lanes;
  count_up(position, 0, counters.position);
  for (uint32_t lane = 0; lane < lanes; lane += PAIRS) {
    uint32_t count = lanes - lane < PAIRS ? lanes - lane : PAIRS;
    name_streams(rng, lane, count, &counters);
    if (both && count == PAIRS) {
      draw_pairs(&counters, law, out + lane, out + lanes + lane);
      continue;
    }
    double first[PAIRS], second[PAIRS];
    draw_pairs(&counters, law, first, second);
    memcpy(out + lane, first, count * sizeof *out);
    if (both) memcpy(out + lanes + lane, second, count * sizeof *out);
  }
}

static void fill(RngLanes *rng, int n, double *out, Law law) {
  ASSERT(rng->draws >= 1 && rng->lanes >= 1);
  uint32_t position = take_positions(&rng->position, n);
  for (int row = 0; row < n; row += 2, position++)
    fill_rows(rng, position, row + 1 < n, law, out + (size_t)row * rng->lanes);
}

void rng_lanes_uniform(RngLanes *rng, int n, double *out) { fill(rng, n, out, UNIFORM); }
void rng_lanes_normal(RngLanes *rng, int n, double *out) { fill(rng, n, out, NORMAL); }

/* A single stream runs along positions instead of lanes. */
static void fill_one(Rng *rng, int n, double *out, Law law) {
  RngCounters counters = {.key = {rng->key.word[0], rng->key.word[1]}, .round = rng->round};
  uint32_t start = take_positions(&rng->position, n), pairs = ((uint32_t)n + 1) / 2;
  count_up(rng->run, 0, counters.run);
  count_up(rng->draw, 0, counters.draw);
  for (uint32_t pair = 0; pair < pairs; pair += PAIRS) {
    double first[PAIRS], second[PAIRS];
    count_up(start + pair, 1, counters.position);
    draw_pairs(&counters, law, first, second);
    for (uint32_t i = 0; i < PAIRS && pair + i < pairs; i++) {
      uint32_t at = 2 * (pair + i);
      out[at] = first[i];
      if (at + 1 < (uint32_t)n) out[at + 1] = second[i];
    }
  }
}

void rng_uniform(Rng *rng, int n, double *out) { fill_one(rng, n, out, UNIFORM); }
void rng_normal(Rng *rng, int n, double *out) { fill_one(rng, n, out, NORMAL); }

uint64_t rng_index(Rng *rng, uint64_t bound) {
  ASSERT(bound >= 1);
  philox4x32_ctr_t counter = {{take_positions(&rng->position, 1), rng->draw, rng->round, rng->run}};
  philox4x32_key_t key = {{rng->key.word[0], rng->key.word[1]}};
  philox4x32_ctr_t bits = philox4x32(counter, key);
  uint64_t word = (uint64_t)bits.v[1] << 32 | bits.v[0];
  return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}
