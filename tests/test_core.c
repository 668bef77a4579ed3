/* core: status, memory, random streams and their kernels, special functions. */
#include "harness.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/rng_kernel.h"
#include "core/simd.h"
#include "core/special.h"
#include "core/status.h"

#include <Random123/philox.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Does `action` end the process by SIGABRT? Run in a child without its message. */
static bool aborts(void (*action)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    action();
    _exit(0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}

static void fail_assertion(void) { ASSERT(1 + 1 == 3); }
static void pass_assertion(void) { ASSERT(1 + 1 == 2); }

static void test_status(void) {
  CU_ASSERT_EQUAL(status_set(STATUS_INPUT, "arms is %d", -3), STATUS_INPUT);
  CU_ASSERT_STRING_EQUAL(status_message(), "arms is -3");
  CU_ASSERT_EQUAL(status_prefix(STATUS_FILE, "%s: ", "a.yaml"), STATUS_FILE);
  CU_ASSERT_STRING_EQUAL(status_message(), "a.yaml: arms is -3");
  char *text = malloc(10000);
  memset(text, 'x', 9999), text[9999] = 0;
  status_set(STATUS_INPUT, "%s", text);
  CU_ASSERT(strlen(status_message()) > 1000 && strlen(status_message()) < 9999);
  status_prefix(STATUS_INPUT, "%s", text);
  CU_ASSERT(strlen(status_message()) < 9999);
  free(text);
  CU_ASSERT(aborts(fail_assertion));
  CU_ASSERT(!aborts(pass_assertion));
}

static void test_memory(void) {
  for (size_t count = 0; count < 200; count += 7) {
    double *block;
    CHECK_OK(memory_new((void **)&block, count, sizeof *block));
    CU_ASSERT_EQUAL((uintptr_t)block % MEMORY_ALIGNMENT, 0);
    for (size_t i = 0; i < count; i++) CU_ASSERT_EQUAL(block[i], 0);
    free(block);
  }
  void *block = &block;
  CHECK_FAILS(memory_new(&block, SIZE_MAX / 4, 8), STATUS_INTERNAL, "too large");
  CU_ASSERT_PTR_NULL(block);
  CHECK_FAILS(memory_new(&block, SIZE_MAX - 8, 1), STATUS_INTERNAL, "too large");
}

/* kat_vectors of Random123 1.14 for philox4x32-10: counter, key, result. */
static const uint32_t KNOWN[3][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                       0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                       0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};

/* The middle of the cell of (0, 1) that 64 bits point to. */
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

static void test_keys(void) {
  uint64_t seeds[] = {0, 1, 2024, UINT64_C(1) << 32, UINT64_MAX};
  enum { SEEDS = 5, KEYS = SEEDS * RNG_PURPOSES, ALL = KEYS + RNG_PURPOSES };
  RngKey keys[ALL];
  for (int s = 0; s < SEEDS; s++) {
    for (int p = 0; p < RNG_PURPOSES; p++) {
      /* Philox of (seed, purpose) under the constant key "Thompson". */
      philox4x32_ctr_t name = {{(uint32_t)seeds[s], (uint32_t)(seeds[s] >> 32), (uint32_t)p, 0}};
      philox4x32_key_t thompson = {{0x54686f6d, 0x70736f6e}};
      philox4x32_ctr_t hash = philox4x32(name, thompson);
      RngKey key = keys[s * RNG_PURPOSES + p] = rng_key(seeds[s], (RngPurpose)p);
      CU_ASSERT(key.word[0] == hash.v[0] && key.word[1] == hash.v[1]);
    }
  }
  for (int p = 0; p < RNG_PURPOSES; p++) {
    philox4x32_ctr_t name = {{keys[RNG_AGENT].word[0], keys[RNG_AGENT].word[1], (uint32_t)p, 1}};
    philox4x32_key_t thompson = {{0x54686f6d, 0x70736f6e}};
    philox4x32_ctr_t hash = philox4x32(name, thompson);
    RngKey key = keys[KEYS + p] = rng_subkey(keys[RNG_AGENT], (RngPurpose)p);
    CU_ASSERT(key.word[0] == hash.v[0] && key.word[1] == hash.v[1]);
  }
  for (int i = 0; i < ALL; i++)
    for (int j = 0; j < i; j++) CU_ASSERT(memcmp(&keys[i], &keys[j], sizeof keys[i]) != 0);
}

/* Every lane is the stream of its name, whatever the number of lanes, draws, rows and the first lane. */
static void test_lanes(void) {
  const int shapes[][4] = {{1, 1, 0, 1}, {64, 1, 0, 2}, {130, 3, 0, 5}, {7, 500, 498, 3}, {65, 2, 33, 4}};
  for (int s = 0; s < 5; s++) {
    for (int normal = 0; normal < 2; normal++) {
      int lanes = shapes[s][0], draws = shapes[s][1], first = shapes[s][2], n = shapes[s][3];
      RngLanes block = {.key = rng_key(5, RNG_TEST), .run = 9, .round = 17};
      block.draws = (uint32_t)draws, block.lanes = (uint32_t)lanes, block.first_lane = (uint32_t)first;
      double *out = malloc(2 * (size_t)(n * lanes) * sizeof *out), *one = malloc((size_t)n * sizeof *one);
      for (int call = 0; call < 2; call++)
        (normal ? rng_lanes_normal : rng_lanes_uniform)(&block, n, out + call * n * lanes);
      for (int lane = 0; lane < lanes; lane++) {
        int at = first + lane;
        Rng rng = {.key = block.key, .round = 17};
        rng.run = (uint32_t)(9 + at / draws), rng.draw = (uint32_t)(at % draws);
        for (int call = 0; call < 2; call++) {
          (normal ? rng_normal : rng_uniform)(&rng, n, one);
          for (int k = 0; k < n; k++) CU_ASSERT_EQUAL(one[k], out[(call * n + k) * lanes + lane]);
        }
        CU_ASSERT_EQUAL(rng.position, block.position);
      }
      free(out);
      free(one);
    }
  }
}

static void overflow_one(void) {
  double u[3];
  Rng rng = {.position = UINT32_MAX - 1};
  rng_uniform(&rng, 3, u);
}
static void overflow_lanes(void) {
  double u[3];
  RngLanes rng = {.draws = 1, .lanes = 1, .position = UINT32_MAX - 1};
  rng_lanes_normal(&rng, 3, u);
}
static void overflow_index(void) {
  Rng rng = {.position = UINT32_MAX};
  rng_index(&rng, 2);
}
static void last_position(void) {
  double u[2];
  Rng rng = {.position = UINT32_MAX - 1};
  rng_uniform(&rng, 2, u);
}

static void test_overflow(void) {
  CU_ASSERT(aborts(overflow_one));
  CU_ASSERT(aborts(overflow_lanes));
  CU_ASSERT(aborts(overflow_index));
  CU_ASSERT(!aborts(last_position));
}

enum { N = 400000 };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Largest distance of the empirical distribution of x[N] to a distribution function; sorts x. */
static double kolmogorov(double *x, double (*cdf)(double)) {
  qsort(x, N, sizeof *x, compare);
  double largest = 0;
  for (int i = 0; i < N; i++) {
    double f = cdf(x[i]);
    largest = fmax(largest, fmax(f - (double)i / N, (double)(i + 1) / N - f));
  }
  return largest;
}

static double uniform_cdf(double x) { return x; }
static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }

/* Tolerances: 5 standard errors of each moment; Kolmogorov's 1.95 / sqrt(N) is passed in all but .1% of
 * cases, once, as the seed is fixed. Streams are read along positions and along lanes (runs). */
static void test_distributions(void) {
  double *x = malloc(N * sizeof *x);
  for (int along = 0; along < 2; along++) {
    Rng rng = {.key = rng_key(11, RNG_TEST)};
    RngLanes lanes = {.key = rng_key(12, RNG_TEST), .draws = 3, .lanes = N};
    along ? rng_lanes_uniform(&lanes, 1, x) : rng_uniform(&rng, N, x);
    double mean = 0;
    for (int i = 0; i < N; i++) mean += x[i] / N;
    CHECK_NEAR(mean, 0.5, 5 * sqrt(1.0 / 12 / N));
    CU_ASSERT(kolmogorov(x, uniform_cdf) < 1.95 / sqrt(N));
    CU_ASSERT(x[0] > 0 && x[N - 1] < 1);

    along ? rng_lanes_normal(&lanes, 1, x) : rng_normal(&rng, N, x);
    double moment[5] = {0}, lagged = 0;
    for (int i = 0; i < N; i++)
      for (int k = 1; k < 5; k++) moment[k] += pow(x[i], k) / N;
    for (int i = 1; i < N; i++) lagged += x[i] * x[i - 1] / N;
    CHECK_NEAR(moment[1], 0, 5 / sqrt(N));
    CHECK_NEAR(moment[2], 1, 5 * sqrt(2.0 / N));
    CHECK_NEAR(moment[3], 0, 5 * sqrt(15.0 / N));
    CHECK_NEAR(moment[4], 3, 5 * sqrt(96.0 / N));
    CHECK_NEAR(lagged, 0, 5 / sqrt(N));
    CU_ASSERT(kolmogorov(x, normal_cdf) < 1.95 / sqrt(N));
  }
  free(x);
}

/* Streams that differ in one word of their name are not correlated: 5 standard errors. */
static void test_independence(void) {
  enum { COUNT = 20000 };
  double *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
  Rng base = {.key = rng_key(3, RNG_TEST), .run = 4, .round = 5, .draw = 6};
  Rng others[5] = {base, base, base, base, base};
  others[0].run++, others[1].round++, others[2].draw++, others[3].key = rng_key(4, RNG_TEST);
  others[4].key = rng_key(3, RNG_AGENT);
  for (int k = 0; k < 5; k++) {
    Rng first = base;
    double product = 0;
    rng_normal(&first, COUNT, x);
    rng_normal(&others[k], COUNT, y);
    for (int i = 0; i < COUNT; i++) product += x[i] * y[i] / COUNT;
    CHECK_NEAR(product, 0, 5 / sqrt(COUNT));
  }
  free(x);
  free(y);
}

static void test_index(void) {
  Rng rng = {.key = rng_key(8, RNG_TEST)};
  int count[7] = {0};
  for (int i = 0; i < 70000; i++) {
    uint64_t index = rng_index(&rng, 7);
    CU_ASSERT_FATAL(index < 7);
    count[index]++;
  }
  double chi_square = 0; /* 6 degrees of freedom: above 22.5 in .1% of cases */
  for (int k = 0; k < 7; k++) chi_square += pow(count[k] - 10000, 2) / 10000;
  CU_ASSERT(chi_square < 22.5);
  for (int i = 0; i < 100; i++) CU_ASSERT_EQUAL(rng_index(&rng, 1), 0);
}

static int kernel_levels(void) { return simd_level() == SIMD_V4 ? 3 : simd_level() == SIMD_V3 ? 2 : 1; }

/* Every instruction level of this machine gives the uniforms of Random123's own function, extreme words
 * included. */
static void test_uniform_kernels(void) {
  enum { PAIRS = RNG_KERNEL_PAIRS };
  RngCounters counters = {.key = {0xa4093822, 0x299f31d0}, .round = 0x13198a2e};
  for (uint32_t i = 0; i < PAIRS; i++) {
    counters.position[i] = i == 1 ? UINT32_MAX : 0x243f6a88 + i - 2;
    counters.draw[i] = i % 3 ? 0x85a308d3 : UINT32_MAX - i;
    counters.run[i] = i % 5 ? 0x03707344 : 0x80000000 + i;
  }
  double u[PAIRS], v[PAIRS];
  for (int level = 0; level < kernel_levels(); level++) {
    (level == 0   ? rng_kernel_uniform_v1
     : level == 1 ? rng_kernel_uniform_v3
                  : rng_kernel_uniform_v4)(&counters, u, v);
    for (int i = 0; i < PAIRS; i++) {
      philox4x32_ctr_t counter = {{counters.position[i], counters.draw[i], counters.round, counters.run[i]}};
      philox4x32_key_t key = {{counters.key[0], counters.key[1]}};
      philox4x32_ctr_t bits = philox4x32(counter, key);
      CU_ASSERT_EQUAL(u[i], cell_middle(bits.v[0], bits.v[1]));
      CU_ASSERT_EQUAL(v[i], cell_middle(bits.v[2], bits.v[3]));
    }
  }
}

/* Box-Muller at every instruction level against libm: 1e-14 of the radius is some units in its last place. */
static void test_normal_kernels(void) {
  enum { PAIRS = RNG_KERNEL_PAIRS };
  Rng rng = {.key = rng_key(2, RNG_TEST)};
  for (int block = 0; block < 64; block++) {
    double u[PAIRS], v[PAIRS], a[3][PAIRS], b[3][PAIRS];
    rng_uniform(&rng, PAIRS, u);
    rng_uniform(&rng, PAIRS, v);
    u[0] = ldexp(1, -53), u[1] = 1 - ldexp(1, -53), u[2] = 0.5;
    v[0] = ldexp(1, -53), v[1] = 1 - ldexp(1, -53), v[2] = 0.5;
    for (int level = 0; level < kernel_levels(); level++) {
      memcpy(a[level], u, sizeof u);
      memcpy(b[level], v, sizeof v);
      (level == 0   ? rng_kernel_normal_v1
       : level == 1 ? rng_kernel_normal_v3
                    : rng_kernel_normal_v4)(a[level], b[level]);
      for (int i = 0; i < PAIRS; i++) {
        double radius = sqrt(-2 * log(u[i]));
        CHECK_NEAR(a[level][i], radius * cos(2 * M_PI * v[i]), 1e-14 * radius);
        CHECK_NEAR(b[level][i], radius * sin(2 * M_PI * v[i]), 1e-14 * radius);
      }
    }
    if (kernel_levels() == 3)
      CU_ASSERT(memcmp(a[1], a[2], sizeof u) == 0 && memcmp(b[1], b[2], sizeof u) == 0);
  }
}

static void test_special_exp(void) {
  double worst = 0;
  for (int i = 0; i <= 200000; i++) {
    double x = -708 + 1417.0 * i / 200000, exact = (double)expl(x);
    worst = fmax(worst, fabs(special_exp(x) - exact) / exact);
  }
  CHECK_NEAR(worst, 0, 2 * 0x1p-52);
  CU_ASSERT_EQUAL(special_exp(0), 1);
  CU_ASSERT_EQUAL(special_exp(-708.5), 0);
  CU_ASSERT_EQUAL(special_exp(-1e300), 0);
  CU_ASSERT_EQUAL(special_exp(1e300), special_exp(709));
}

/* Eight mantissas at every magnitude of the normal numbers. */
static void test_special_inverse_root(void) {
  double worst = 0;
  for (int i = -1020; i <= 1020; i++) {
    SpecialReal x;
    for (int k = 0; k < VECTOR_LANES; k++) x[k] = ldexp(1 + (double)k / VECTOR_LANES, i);
    SpecialReal root = x;
    special_inverse_root(&root);
    for (int k = 0; k < VECTOR_LANES; k++) {
      const long double exact = 1 / sqrtl((long double)x[k]);
      worst = fmax(worst, fabs((double)((root[k] - exact) / exact)));
    }
    if (i == 0) CU_ASSERT_EQUAL(root[0], 1);
  }
  CHECK_NEAR(worst, 0, 2 * 0x1p-52);
}

static void test_special_log(void) {
  double worst = 0;
  for (int i = -1020; i <= 1020; i++) {
    SpecialReal x;
    for (int k = 0; k < VECTOR_LANES; k++) x[k] = ldexp(1 + (double)k / VECTOR_LANES, i);
    if (i == 0) /* near 1, where the logarithm vanishes */
      for (int k = 0; k < VECTOR_LANES; k++) x[k] = 1 + (k - 4) * 1e-9;
    SpecialReal y = x;
    special_log(&y);
    for (int k = 0; k < VECTOR_LANES; k++) {
      const long double exact = logl((long double)x[k]);
      worst = fmax(worst, fabs((double)(y[k] - exact)) / fmax(fabs((double)exact), 1e-300));
    }
  }
  CHECK_NEAR(worst, 0, 3 * 0x1p-52);
}

int main(void) {
  CU_TestInfo tests[] = {{"status", test_status},
                         {"memory", test_memory},
                         {"known answers of Philox", test_known_answers},
                         {"keys", test_keys},
                         {"lanes are single streams", test_lanes},
                         {"overflow is asserted", test_overflow},
                         {"distributions", test_distributions},
                         {"independence", test_independence},
                         {"index", test_index},
                         {"uniforms at all instruction levels", test_uniform_kernels},
                         {"normals at all instruction levels", test_normal_kernels},
                         {"special_exp", test_special_exp},
                         {"special_inverse_root", test_special_inverse_root},
                         {"special_log", test_special_log},
                         CU_TEST_INFO_NULL};
  return harness_run("core", tests);
}
