/* core: status, memory, random streams, special functions. */
#include "harness.h"

#include "core/arena.h"
#include "core/numeral.h"
#include "core/quantile.h"
#include "core/real.h"
#include "core/rng.h"
#include "core/special.h"
#include "core/status.h"

#include <Random123/philox.h>
#include <fcntl.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tells whether `action` ends the process by SIGABRT; runs in a child, without its message. */
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

/* Returns whether AddressSanitizer would report an access; true without it. */
static bool is_out_of_bounds(const void *address) {
#ifdef __SANITIZE_ADDRESS__
  return __asan_address_is_poisoned(address);
#else
  return address != NULL;
#endif
}

static void test_counted(void) {
  CU_ASSERT_STRING_EQUAL(numeral_count(1, "task").text, "1 task");
  CU_ASSERT_STRING_EQUAL(numeral_count(0, "task").text, "0 tasks");
  CU_ASSERT_STRING_EQUAL(numeral_count(1, "policy").text, "1 policy");
  CU_ASSERT_STRING_EQUAL(numeral_count(12, "policy").text, "12 policies");
}

static void test_memory(void) {
  for (size_t count = 0; count < 200; count += 7) {
    double *block;
    CHECK_OK(memory_new((void **)&block, count, sizeof *block));
    CU_ASSERT_EQUAL((uintptr_t)block % MEMORY_ALIGNMENT, 0);
    for (size_t i = 0; i < count; i++) CU_ASSERT_EQUAL(block[i], 0);
    if (count % 8 == 0 && count > 0) CU_ASSERT(is_out_of_bounds(block + count));
    free(block);
  }
  void *block = &block;
  CHECK_FAILS(memory_new(&block, SIZE_MAX / 4, 8), STATUS_INTERNAL, "too large");
  CU_ASSERT_PTR_NULL(block);
  CHECK_FAILS(memory_new(&block, SIZE_MAX - 8, 1), STATUS_INTERNAL, "too large");
}

/* Returns the resident megabytes of this process. */
static double resident(void) {
  long whole = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ASSERT(file && fscanf(file, "%ld %ld", &whole, &pages) == 2);
  fclose(file);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* Checks that a large array is aligned and zeroed, also where memory is used again, and that what is not
 * touched of it costs nothing: 256 MB take less than half, for which the sanitizers' tables of an eighth
 * leave room. */
static void test_large_arrays(void) {
  enum { SMALL = 1 << 18, LARGE = 1 << 25 };
  for (int again = 0; again < 3; again++) {
    SCRATCH_ARENA(memory);
    double *array;
    bool zero = true;
    CHECK_OK(arena_new(&memory, (void **)&array, SMALL, sizeof *array));
    CU_ASSERT_EQUAL((uintptr_t)array % MEMORY_ALIGNMENT, 0);
    for (int i = 0; i < SMALL; i++) zero = zero && array[i] == 0;
    CU_ASSERT(zero);
    for (int i = 0; i < SMALL; i++) array[i] = 1;
  }
  SCRATCH_ARENA(memory);
  double *array;
  const double before = resident();
  CHECK_OK(arena_new(&memory, (void **)&array, LARGE, sizeof *array));
  CU_ASSERT(resident() - before < 128);
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

/* Checks that every lane is the stream of its name, whatever the number of lanes, draws and rows, and the
 * first lane. */
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

/* Returns the largest distance of the empirical distribution of x[N] from a distribution function; sorts
 * x. */
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

/* Checks distributions. Tolerances: 5 standard errors of each moment; Kolmogorov's distance is below 1.95 /
 * sqrt(N) in all but 0.1% of cases, a chance that is taken only once, since the seed is fixed. Streams are
 * read along positions and along lanes (runs). */
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

/* Checks that streams that differ in one word of their name are not correlated: 5 standard errors. */
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
  double chi_square = 0; /* 6 degrees of freedom: above 22.5 in 0.1% of cases */
  for (int k = 0; k < 7; k++) chi_square += pow(count[k] - 10000, 2) / 10000;
  CU_ASSERT(chi_square < 22.5);
  for (int i = 0; i < 100; i++) CU_ASSERT_EQUAL(rng_index(&rng, 1), 0);
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

/* Checks eight mantissas at every magnitude of the normal numbers. */
static void test_special_inverse_root(void) {
  double worst = 0;
  for (int i = -1020; i <= 1020; i++) {
    Real x;
    for (int k = 0; k < VECTOR_LANES; k++) x[k] = ldexp(1 + (double)k / VECTOR_LANES, i);
    Real root = x;
    root = real_inverse_root(root);
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
    Real x;
    for (int k = 0; k < VECTOR_LANES; k++) x[k] = ldexp(1 + (double)k / VECTOR_LANES, i);
    if (i == 0) /* near 1, where the logarithm vanishes */
      for (int k = 0; k < VECTOR_LANES; k++) x[k] = 1 + (k - 4) * 1e-9;
    Real y = x;
    y = real_log(y);
    for (int k = 0; k < VECTOR_LANES; k++) {
      const long double exact = logl((long double)x[k]);
      worst = fmax(worst, fabs((double)(y[k] - exact)) / fmax(fabs((double)exact), 1e-300));
    }
  }
  CHECK_NEAR(worst, 0, 3 * 0x1p-52);
}

/* Arranges 0, 1, .. n - 1, n even, so that the median of the first, middle and last value is always the
 * second smallest of those that are left, and selection gets two values further in each round. */
static void arrange_against_selection(int n, double *values) {
  int *from = malloc((size_t)n * sizeof *from); /* where the value that will be at a place is at first */
  for (int i = 0; i < n; i++) from[i] = i;
  for (int low = 0; low + 2 < n; low += 2) {
    const int middle = low + (n - 1 - low) / 2, second = from[middle];
    values[from[low]] = low;
    values[second] = low + 1;
    from[middle] = from[low + 1];
    from[low + 1] = second;
  }
  for (int i = n - 2; i < n; i++) values[from[i]] = i;
  free(from);
}

/* Checks quantiles of unsorted values against those after a sort, to the bit: of samples with and without
 * equal values, in rising, falling and unlucky order, of all lengths up to 40, and of 4 096 values. */
static void test_quantiles(void) {
  enum { KINDS = 5, MOST = 4096, SHARES = 6 };
  static const double shares[SHARES] = {0, 0.3, 0.5, 0.95, 0.99, 1};
  static double values[MOST], sorted[MOST], found[SHARES];
  Rng rng = {.key = rng_key(1, RNG_VERIFY)};
  for (int n = 1; n <= MOST; n = n < 40 ? n + 1 : n + MOST - 40)
    for (int kind = 0; kind < KINDS; kind++) {
      rng_uniform(&rng, n, values);
      for (int i = 0; i < n; i++)
        if (kind > 0) values[i] = kind == 1 ? floor(8 * values[i]) : kind == 2 ? i : n - i;
      if (kind == 4 && n % 2 == 0) arrange_against_selection(n, values);
      memcpy(sorted, values, sizeof sorted);
      quantile_sort(n, sorted);
      quantile_of_values(n, values, SHARES, shares, found);
      for (int q = 0; q < SHARES; q++) CU_ASSERT_EQUAL(found[q], quantile_of_sorted(n, sorted, shares[q]));
      quantile_sort(n, values);
      CU_ASSERT_EQUAL(memcmp(values, sorted, (size_t)n * sizeof *values), 0); /* none is lost */
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"status", test_status},
                         {"counted", test_counted},
                         {"memory", test_memory},
                         {"large arrays", test_large_arrays},
                         {"keys", test_keys},
                         {"lanes are single streams", test_lanes},
                         {"overflow is asserted", test_overflow},
                         {"distributions", test_distributions},
                         {"independence", test_independence},
                         {"index", test_index},
                         {"quantiles", test_quantiles},
                         {"special_exp", test_special_exp},
                         {"special_inverse_root", test_special_inverse_root},
                         {"special_log", test_special_log},
                         CU_TEST_INFO_NULL};
  return harness_run("core", tests);
}
