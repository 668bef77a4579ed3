/* Weights, effective sample size and systematic resampling, against their definitions. */
#include "core/lanes.h"
#include "core/particles.h"

#include "sampler_fixture.h"

enum { MOST = 1000 };

/* Draws n weights of sum 1, of very different sizes, some of them 0. */
static void random_weights(int n, uint32_t run, double *weight) {
  Rng rng = fixture_rng(run, 5000);
  double sum = 0;
  rng_normal(&rng, n, weight);
  for (int j = 0; j < n; j++) sum += weight[j] = j % 7 == 3 ? 0 : exp(2 * weight[j]);
  for (int j = 0; j < n; j++) weight[j] /= sum;
}

/* Checks weights against the definition, also far from 0, where exp would overflow or vanish. */
static void test_weights(void) {
  const int sizes[] = {1, 2, 7, 8, 9, 33, 1000};
  const double shifts[] = {0, 1e4, -1e4};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (int s = 0; s < 3; s++) {
      const int n = sizes[k];
      double x[MOST], weight[MOST], sum = 0;
      Rng rng = fixture_rng(1, 5001);
      rng_normal(&rng, n, x);
      for (int j = 0; j < n; j++) sum += exp(3 * x[j]);
      for (int j = 0; j < n; j++) weight[j] = shifts[s] + 3 * x[j];
      CU_ASSERT_TRUE(particles_weigh(n, weight, weight)); /* 1e-11: rounding of 1e4 + x */
      for (int j = 0; j < n; j++) CHECK_NEAR(weight[j], exp(3 * x[j]) / sum, 1e-11);
    }
}

/* Checks that NaN and infinities are left out and raise nothing; when no particle is left the weights are
 * equal. */
static void test_weights_of_numbers_that_are_not_finite(void) {
  double x[12] = {NAN, 1, INFINITY, 2, -INFINITY, -NAN, 1, NAN, NAN, -1e300, NAN, 2}, weight[12];
  const double e = exp(-1), sum = 2 + 2 * e;
  const double expected[12] = {0, e / sum, 0, 1 / sum, 0, 0, e / sum, 0, 0, 0, 0, 1 / sum};
  CU_ASSERT_TRUE(particles_weigh(12, x, weight));
  for (int j = 0; j < 12; j++) CHECK_NEAR(weight[j], expected[j], 1e-15);
  for (int j = 0; j < 12; j++)
    if (isfinite(x[j])) x[j] = -INFINITY;
  CU_ASSERT_FALSE(particles_weigh(12, x, weight));
  for (int j = 0; j < 12; j++) CHECK_NEAR(weight[j], 1.0 / 12, 1e-16);
  CHECK_NEAR(particles_ess(12, weight), 12, 1e-12);
}

static void test_ess(void) {
  const double equal[5] = {0.2, 0.2, 0.2, 0.2, 0.2}, one[3] = {0, 1, 0}, uneven[3] = {1, 2, 3};
  double weight[MOST], sum = 0, squares = 0;
  CHECK_NEAR(particles_ess(5, equal), 5, 1e-13);
  CHECK_NEAR(particles_ess(3, one), 1, 0);
  CHECK_NEAR(particles_ess(3, uneven), 36.0 / 14, 1e-14);
  random_weights(MOST, 2, weight);
  for (int j = 0; j < MOST; j++) sum += weight[j], squares += weight[j] * weight[j];
  CHECK_NEAR(particles_ess(MOST, weight), sum * sum / squares, 1e-9);
}

/* Compares the size of tempered weights, from the log weights alone. */
static void test_ess_at(void) {
  double log_weight[MOST], weight[MOST], scratch[MOST];
  Rng rng = fixture_rng(5, 5003);
  rng_normal(&rng, MOST, log_weight);
  for (int j = 0; j < MOST; j++) log_weight[j] = 500 + 100 * log_weight[j];
  log_weight[3] = NAN, log_weight[500] = -INFINITY, log_weight[501] = INFINITY;
  const double largest = particles_largest(MOST, log_weight);
  for (double factor = 1; factor > 1e-5; factor /= 8) {
    for (int j = 0; j < MOST; j++) weight[j] = factor * log_weight[j];
    CU_ASSERT_TRUE(particles_weigh(MOST, weight, weight));
    const double expected = particles_ess(MOST, weight);
    CHECK_NEAR(particles_ess_at(MOST, log_weight, largest, factor, scratch), expected, 1e-12 * expected);
  }
  CU_ASSERT_EQUAL(particles_ess_at(MOST, log_weight, -INFINITY, 1, scratch), MOST);
}

/* Checks resampling against the loop of the definition, to the last pick. */
static void test_resampling_reference(void) {
  for (uint32_t run = 0; run < 300; run++) {
    const int n = 1 + (int)(run * 37 % MOST), picks = 1 + (int)(run * 71 % 1500);
    double weight[MOST], offset, reached;
    int chosen[1500], j = 0;
    Rng rng = fixture_rng(run, 5004);
    random_weights(n, run, weight);
    rng_uniform(&rng, 1, &offset);
    if (run % 5 == 0) /* sums that are whole numbers, and offsets next to them */
      for (int k = 0; k < n; k++) weight[k] = 1.0 / n;
    if (run % 10 == 0) offset = run % 20 ? 0x1p-53 : 1 - 0x1p-53;
    particles_resample(n, weight, offset, picks, chosen);
    reached = picks * weight[0];
    for (int m = 0; m < picks; m++) {
      while (reached < m + offset && j < n - 1) reached += picks * weight[++j];
      CU_ASSERT_FATAL(chosen[m] == j);
    }
  }
}

/* Checks that every count is picks w_j rounded down or up, for any offset (1e-9: rounding of the running
 * sum). */
static void test_counts_are_rounded(void) {
  const double offsets[] = {1e-12, 0.25, 0.5, 0.999, 1 - 1e-12};
  for (int n = 1; n <= MOST; n = 3 * n + 1)
    for (int k = 0; k < 5; k++)
      for (int picks = 1; picks <= 3 * n; picks = 2 * picks + 1) {
        double weight[MOST];
        int chosen[3 * MOST], count[MOST] = {0};
        random_weights(n, (uint32_t)n, weight);
        particles_resample(n, weight, offsets[k], picks, chosen);
        for (int m = 0; m < picks; m++) {
          CU_ASSERT_FATAL(chosen[m] >= 0 && chosen[m] < n && (m == 0 || chosen[m] >= chosen[m - 1]));
          count[chosen[m]]++;
        }
        for (int j = 0; j < n; j++) {
          CU_ASSERT(count[j] >= floor(picks * weight[j] - 1e-9));
          CU_ASSERT(count[j] <= ceil(picks * weight[j] + 1e-9));
          if (weight[j] == 0) CU_ASSERT_EQUAL(count[j], 0);
        }
      }
}

/* Checks that over a grid of offsets the mean count is picks w_j: a count is a step function of the offset
 * with at most two steps, so the grid of 10 000 errs by at most 2e-4. */
static void test_counts_are_unbiased(void) {
  enum { N = 20, PICKS = 13, GRID = 10000 };
  double weight[N], mean[N] = {0};
  random_weights(N, 3, weight);
  for (int g = 0; g < GRID; g++) {
    int chosen[PICKS];
    particles_resample(N, weight, (g + 0.5) / GRID, PICKS, chosen);
    for (int m = 0; m < PICKS; m++) mean[chosen[m]] += 1.0 / GRID;
  }
  for (int j = 0; j < N; j++) CHECK_NEAR(mean[j], PICKS * weight[j], 2e-4);
}

static void test_gather_and_pick(void) {
  const double x[2 * 3] = {1, 2, 3, 10, 20, 30};
  const int chosen[5] = {0, 2, 2, 1, 0};
  double to[2 * 5], wide[2 * 6] = {0};
  lanes_gather(2, 3, 5, chosen, x, to);
  for (int m = 0; m < 5; m++) CU_ASSERT(to[m] == chosen[m] + 1 && to[5 + m] == 10 * to[m]);
  double *uniform = wide + 6; /* the last row is overwritten by the picks */
  for (int m = 0; m < 4; m++) uniform[m] = (m + 0.5) / 4;
  particles_pick(2, 3, x, 4, uniform, 6, wide);
  const double expected[4] = {1, 2, 2, 3};
  for (int m = 0; m < 4; m++) CU_ASSERT(wide[m] == expected[m] && wide[6 + m] == 10 * expected[m]);
  CU_ASSERT(wide[4] == 0 && wide[5] == 0 && wide[10] == 0 && wide[11] == 0);
}

int main(void) {
  CU_TestInfo tests[] = {
      {"weights", test_weights},
      {"weights of numbers that are not finite", test_weights_of_numbers_that_are_not_finite},
      {"effective sample size", test_ess},
      {"effective sample size of tempered weights", test_ess_at},
      {"systematic resampling against its definition", test_resampling_reference},
      {"systematic resampling: counts are rounded shares", test_counts_are_rounded},
      {"systematic resampling: counts are unbiased", test_counts_are_unbiased},
      {"gather and pick", test_gather_and_pick},
      CU_TEST_INFO_NULL};
  return harness_run("particles", tests);
}
