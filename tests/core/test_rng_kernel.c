/* The kernels of the random numbers at every instruction level of this machine, against Random123 and
 * libm. */
#include "harness.h"
#include "levels.h"

#include "core/rng.h"
#include "core/rng_kernel.h"

#include <Random123/philox.h>
#include <string.h>

DECLARE_LEVELS(rng_kernel_uniform);
DECLARE_LEVELS(rng_kernel_normal);

/* kat_vectors of Random123 1.14 for philox4x32-10: counter, key, result. */
static const uint32_t KNOWN[3][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                       0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                       0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};

/* Returns the middle of the cell of (0, 1) that 64 bits point to. */
static double cell_middle(uint32_t low, uint32_t high) {
  return ldexp((double)(((uint64_t)high << 32 | low) >> 12) + 0.5, -52);
}

static void test_known_answers(void) {
  for (int i = 0; i < 3; i++) {
    const uint32_t *k = KNOWN[i];
    philox4x32_ctr_t counter = {{k[0], k[1], k[2], k[3]}};
    philox4x32_key_t key = {{k[4], k[5]}};
    philox4x32_ctr_t bits = philox4x32(counter, key);
    for (int j = 0; j < 4; j++) CU_ASSERT_EQUAL(bits.v[j], k[6 + j]);
    if (i == 1) continue; /* the last position cannot be drawn: it is where the overflow check is */
    Rng rng = {.key = {{k[4], k[5]}}, .position = k[0], .draw = k[1], .round = k[2], .run = k[3]}, same = rng;
    double u[2];
    rng_uniform(&rng, 2, u);
    CU_ASSERT_EQUAL(u[0], cell_middle(k[6], k[7]));
    CU_ASSERT_EQUAL(u[1], cell_middle(k[8], k[9]));
    CU_ASSERT_EQUAL(rng.position, k[0] + 1);
    uint64_t index = rng_index(&same, UINT64_MAX);
    uint64_t word = (uint64_t)k[7] << 32 | k[6];
    CU_ASSERT(index == word || index + 1 == word);
  }
}

enum { COUNTERS = RNG_KERNEL_COUNTERS };
typedef void (*RngKernel)(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                          size_t stride, double *out);
static const RngKernel UNIFORM[] = {rng_kernel_uniform_v1, rng_kernel_uniform_v3, rng_kernel_uniform_v4};
static const RngKernel NORMAL[] = {rng_kernel_normal_v1, rng_kernel_normal_v3, rng_kernel_normal_v4};

static philox4x32_ctr_t words_of(const RngCounters *counters, int i, uint32_t position) {
  const philox4x32_ctr_t counter = {
      {counters->position[i] + position, counters->draw[i], counters->round[i], counters->run[i]}};
  const philox4x32_key_t key = {{counters->key[0], counters->key[1]}};
  return philox4x32(counter, key);
}

/* Checks that every instruction level of this machine gives the uniforms of Random123's own function, extreme
 * words included, for whole calls and parts of them. */
static void test_uniform_kernels(void) {
  enum { POSITIONS = 3, STRIDE = COUNTERS + 5 };
  RngCounters counters = {.key = {0xa4093822, 0x299f31d0}};
  for (uint32_t i = 0; i < COUNTERS; i++) {
    counters.position[i] = i == 1 ? UINT32_MAX : 0x243f6a88 + i - 2;
    counters.draw[i] = i % 3 ? 0x85a308d3 : UINT32_MAX - i;
    counters.run[i] = i % 5 ? 0x03707344 : 0x80000000 + i;
    counters.round[i] = i % 7 ? 0x13198a2e : 0x80000001 + i;
  }
  for (int level = 0; level < runnable_levels(); level++)
    for (int count = RNG_KERNEL_GROUP; count <= COUNTERS; count += RNG_KERNEL_GROUP) {
      const uint32_t first = 0x7ffffffe;
      double out[2 * POSITIONS][STRIDE];
      for (int row = 0; row < 2 * POSITIONS; row++)
        for (int i = 0; i < STRIDE; i++) out[row][i] = -1;
      UNIFORM[level](&counters, count, first, POSITIONS, STRIDE, out[0]);
      for (int row = 0; row < 2 * POSITIONS; row++)
        for (int i = 0; i < STRIDE; i++) {
          const philox4x32_ctr_t bits = words_of(&counters, i < count ? i : 0, first + (uint32_t)row / 2);
          const double cell = cell_middle(bits.v[row % 2 * 2], bits.v[row % 2 * 2 + 1]);
          CU_ASSERT_EQUAL(out[row][i], i < count ? cell : -1);
        }
    }
}

/* Makes counter i the one that gives these words: each round of Philox can be undone, from the last to the
 * first. */
static void make_counter(RngCounters *counters, int i, const uint32_t word[4]) {
  uint32_t c[4], key[2], inverse[2] = {1, 1};
  const uint32_t factor[2] = {PHILOX_M4x32_0, PHILOX_M4x32_1};
  for (int step = 0; step < 5; step++) /* Newton: the number of correct bits doubles */
    for (int k = 0; k < 2; k++) inverse[k] *= 2 - factor[k] * inverse[k];
  memcpy(c, word, sizeof c);
  for (uint32_t round = philox4x32_rounds; round-- > 0;) {
    key[0] = counters->key[0] + round * PHILOX_W32_0, key[1] = counters->key[1] + round * PHILOX_W32_1;
    const uint32_t before0 = c[3] * inverse[0], before2 = c[1] * inverse[1];
    const uint32_t high0 = (uint32_t)((uint64_t)before0 * factor[0] >> 32);
    const uint32_t high1 = (uint32_t)((uint64_t)before2 * factor[1] >> 32);
    const uint32_t before1 = c[0] ^ high1 ^ key[0], before3 = c[2] ^ high0 ^ key[1];
    c[0] = before0, c[1] = before1, c[2] = before2, c[3] = before3;
  }
  counters->position[i] = c[0], counters->draw[i] = c[1], counters->round[i] = c[2], counters->run[i] = c[3];
}

static void check_normals(const RngCounters *counters) {
  double uniform[2][COUNTERS], normal[3][2][COUNTERS];
  UNIFORM[0](counters, COUNTERS, 0, 1, COUNTERS, uniform[0]);
  for (int level = 0; level < runnable_levels(); level++) {
    NORMAL[level](counters, COUNTERS, 0, 1, COUNTERS, normal[level][0]);
    for (int i = 0; i < COUNTERS; i++) {
      const double radius = sqrt(-2 * log(uniform[0][i])), angle = 2 * M_PI * uniform[1][i];
      CHECK_NEAR(normal[level][0][i], radius * cos(angle), 1e-14 * radius);
      CHECK_NEAR(normal[level][1][i], radius * sin(angle), 1e-14 * radius);
    }
  }
  if (runnable_levels() == 3) CU_ASSERT(memcmp(normal[1], normal[2], sizeof normal[1]) == 0);
}

/* Checks Box-Muller at every instruction level against libm: 1e-14 of the radius is some units in its last
 * place. The first uniform covers both ends, the middle and the ends of the logarithm's interval, the second
 * every eighth of a turn. */
static void test_normal_kernels(void) {
  RngCounters counters = {.key = {0xa4093822, 0x299f31d0}};
  for (uint32_t block = 0; block < 64; block++) {
    for (uint32_t i = 0; i < COUNTERS; i++)
      counters.position[i] = i, counters.draw[i] = 0, counters.run[i] = block;
    check_normals(&counters);
  }
  const double ends[] = {0, 0.375, 0.5, 0.75, 1};
  for (int end = 0; end < 5; end++)
    for (int eighth = 0; eighth <= 8; eighth++)
      for (int side = 0; side < 4; side++) { /* cells below and above each place, for both */
        const uint64_t cells = 1ULL << 52;
        uint64_t u = (uint64_t)(ends[end] * (double)cells), v = (uint64_t)eighth * (cells / 8);
        u -= u == cells || (u > 0 && side % 2), v -= v == cells || (v > 0 && side / 2);
        make_counter(
            &counters, side,
            (uint32_t[]){(uint32_t)(u << 12), (uint32_t)(u >> 20), (uint32_t)(v << 12), (uint32_t)(v >> 20)});
        const philox4x32_ctr_t bits = words_of(&counters, side, 0);
        CU_ASSERT_EQUAL(cell_middle(bits.v[0], bits.v[1]), ((double)u + 0.5) * 0x1p-52);
        CU_ASSERT_EQUAL(cell_middle(bits.v[2], bits.v[3]), ((double)v + 0.5) * 0x1p-52);
        check_normals(&counters);
      }
}

int main(void) {
  CU_TestInfo tests[] = {{"known answers of Philox", test_known_answers},
                         {"uniforms at all instruction levels", test_uniform_kernels},
                         {"normals at all instruction levels", test_normal_kernels},
                         CU_TEST_INFO_NULL};
  return harness_run("rng_kernel", tests);
}
