#include "core/particles.h"

#include "core/simd.h"
#include "core/special.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

Status particles_check_size(const char *sampler, int64_t particles, int64_t clouds, const char *of) {
  if (clouds <= INT_MAX / particles) return STATUS_OK;
  return status_set(STATUS_INPUT, "sampler %s: %lld particles for each of %lld %s are too many", sampler,
                    (long long)particles, (long long)clouds, of);
}

RngLanes particles_streams(RngKey key, uint32_t run, uint32_t round, int particles) {
  return (RngLanes){
      .key = key, .run = run, .draws = (uint32_t)particles, .round = round, .lanes = (uint32_t)particles};
}

Rng particles_cloud_stream(RngKey key, uint32_t run, uint32_t round) {
  return (Rng){.key = rng_subkey(key, RNG_RESAMPLING), .run = run, .round = round};
}

enum { SUMS = 8 }; /* partial sums, so that adding up is not one chain of dependent operations */

static inline double sum_up(const double *sums) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* NaN and +infinity become -infinity. Told by their bits: a floating-point comparison would raise "invalid"
 * on NaN. */
static inline double counted(double log_weight) {
  int64_t bits;
  memcpy(&bits, &log_weight, sizeof bits);
  const int64_t infinity = 0x7ff0000000000000, magnitude = bits & INT64_MAX;
  return magnitude > infinity || bits == infinity ? -INFINITY : log_weight;
}

SIMD_CLONES
static double largest_counted(int n, const double *restrict log_weight) {
  double largest[SUMS], all = -INFINITY;
  for (int k = 0; k < SUMS; k++) largest[k] = -INFINITY;
  for (int j = 0; j < n; j++) {
    double x = counted(log_weight[j]), *most = &largest[j % SUMS];
    *most = x > *most ? x : *most;
  }
  for (int k = 0; k < SUMS; k++) all = largest[k] > all ? largest[k] : all;
  return all;
}

SIMD_CLONES
static void exponentials(int n, const double *log_weight, double largest, double *weight) {
  for (int j = 0; j < n; j++) weight[j] = special_exp(counted(log_weight[j]) - largest);
}

/* The sum of w, and of w^2. */
SIMD_CLONES
static void add_up(int n, const double *restrict weight, double *restrict sum, double *restrict squares) {
  double first[SUMS] = {0}, second[SUMS] = {0};
  for (int j = 0; j < n; j++) {
    first[j % SUMS] += weight[j];
    second[j % SUMS] += weight[j] * weight[j];
  }
  *sum = sum_up(first);
  *squares = sum_up(second);
}

bool particles_weigh(int n, const double *log_weight, double *weight) {
  const double largest = largest_counted(n, log_weight);
  double sum, squares;
  if (largest == -INFINITY) {
    for (int j = 0; j < n; j++) weight[j] = 1.0 / n;
    return false;
  }
  exponentials(n, log_weight, largest, weight);
  add_up(n, weight, &sum, &squares);
  for (int j = 0; j < n; j++) weight[j] /= sum;
  return true;
}

double particles_ess(int n, const double *weight) {
  double sum, squares;
  add_up(n, weight, &sum, &squares);
  return sum * sum / squares;
}

void particles_resample(int n, const double *weight, double offset, int picks, int *chosen) {
  double reached = picks * weight[0];
  int j = 0;
  for (int m = 0; m < picks; m++) {
    while (reached < m + offset && j < n - 1) reached += picks * weight[++j];
    chosen[m] = j;
  }
}

void particles_gather(int d, int n, const double *x, int picks, const int *chosen, double *to) {
  for (int i = 0; i < d; i++) {
    const double *from = x + (size_t)i * (size_t)n;
    double *row = to + (size_t)i * (size_t)picks;
    for (int m = 0; m < picks; m++) row[m] = from[chosen[m]];
  }
}

void particles_pick(int d, int n, const double *x, int picks, const double *uniform, size_t stride,
                    double *to) {
  for (int m = 0; m < picks; m++) {
    const int chosen = (int)(uniform[m] * n);
    for (int i = 0; i < d; i++)
      to[(size_t)i * stride + (size_t)m] = x[(size_t)i * (size_t)n + (size_t)chosen];
  }
}

/* out[n] += x_i (b_i - 1/2 (A x)_i), a_i[d] a row of A. */
SIMD_CLONES
static void particles_add_row(int d, int n, const double *restrict a_i, double b_i,
                              const double *restrict x_i, const double *restrict x, double *restrict out) {
  for (int j = 0; j < n; j++) {
    double product = 0;
    for (int k = 0; k < d; k++) product += a_i[k] * x[(size_t)k * (size_t)n + (size_t)j];
    out[j] += x_i[j] * (b_i - 0.5 * product);
  }
}

void particles_quadratic(int d, int n, const double *a, const double *b, const double *x, double *out) {
  memset(out, 0, (size_t)n * sizeof *out);
  for (int i = 0; i < d; i++) particles_add_row(d, n, a + i * d, b[i], x + (size_t)i * (size_t)n, x, out);
}
