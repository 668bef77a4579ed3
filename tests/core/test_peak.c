/* The loops of the measured peak do the work that they claim: a chain x <- a x + b ends where the closed form
 * says. */
#include "core/simd_peak.h"
#include "harness.h"
#include "levels.h"

#include <math.h>

DECLARE_LEVELS(simd_peak_chains_float);
DECLARE_LEVELS(simd_peak_chains_double);

enum { STEPS = 1000, CHAINS = 12 };

/* Returns the sum over all chains and lanes; chain i starts at i a. */
static double closed_form(double a, double b, double flops) {
  const double lanes = flops / (2.0 * CHAINS * STEPS), decay = pow(a, STEPS);
  return lanes * (decay * a * CHAINS * (CHAINS - 1) / 2 + CHAINS * b * (1 - decay) / (1 - a));
}

static void check(double (*kernel)(long, double *), double a, double b, double tolerance) {
  double sum, flops = kernel(STEPS, &sum), expected = closed_form(a, b, flops);
  CU_ASSERT(flops > 0);
  CHECK_NEAR(sum, expected, tolerance * expected);
}

/* Checks chains, whose rounding is 6e-8 (float) or 1e-16 in each of a thousand steps, twice where there is no
 * fused multiply-add. */
static void test_chains(void) {
  const double a = (double)0.999f, b = (double)1e-3f;
  check(simd_peak_chains_float_v1, a, b, 2e-4);
  check(simd_peak_chains_double_v1, 0.999, 1e-3, 1e-12);
  if (simd_level() < SIMD_V3) return;
  check(simd_peak_chains_float_v3, a, b, 2e-4);
  check(simd_peak_chains_double_v3, 0.999, 1e-3, 1e-12);
  if (simd_level() < SIMD_V4) return;
  check(simd_peak_chains_float_v4, a, b, 2e-4);
  check(simd_peak_chains_double_v4, 0.999, 1e-3, 1e-12);
}

/* Checks that every try continues where the last one ended, and wraps around. */
static void check_memory(int sharers, size_t least, size_t most) {
  SCRATCH_ARENA(arrays);
  PeakMemory memory;
  CHECK_OK(simd_peak_memory_create(&arrays, sharers, &memory));
  CU_ASSERT(memory.elements * sizeof(double) >= least && memory.elements * sizeof(double) <= most);
  for (size_t i = 0; i < memory.elements; i++) memory.b[i] = (double)i, memory.c[i] = 1;
  size_t tries = 0;
  do {
    CU_ASSERT(simd_peak_memory_rate(&memory) > 0);
    tries++;
  } while (memory.next != 0 && tries < memory.elements);
  CU_ASSERT(tries > 1);
  size_t wrong = 0;
  for (size_t i = 0; i < memory.elements; i++) wrong += memory.a[i] != (double)i + 3;
  CU_ASSERT_EQUAL(wrong, 0);
}

static void test_memory(void) {
  check_memory(1, 64 << 20, 256 << 20);
  check_memory(4, 16 << 20, 64 << 20);
  check_memory(1000, 8 << 20, 8 << 20);
}

int main(void) {
  CU_TestInfo tests[] = {{"chains of multiply-adds", test_chains}, {"triad", test_memory}, CU_TEST_INFO_NULL};
  return harness_run("peak", tests);
}
