/* Sliced Wasserstein distances against POT in one dimension, an integral of distribution functions and a scan
 * of the circle; the other metrics against closed forms. */
#include "core/arena.h"
#include "harness.h"

#include "core/linalg/linalg.h"
#include "core/quantile.h"
#include "emd_golden.h"
#include "metric/metrics.h"

enum { DIRECTIONS = 40 };

static Rng stream(uint32_t run) { return (Rng){.key = rng_key(31, RNG_TEST), .run = run}; }

/* Checks that in one dimension, where every direction is +-1, sliced, max-sliced and earth mover's distance
 * are the same. */
static void test_one_dimension(void) {
  SCRATCH_ARENA(memory);
  EmdGolden golden = emd_golden_open();
  Wasserstein *wasserstein;
  int cases = 0;
  CHECK_OK(wasserstein_create(&memory, 1, 100, &wasserstein));
  for (int c = 0; c < golden.cases; c++) {
    EmdCase pair = emd_golden_case(&golden, c);
    if (pair.d != 1) continue;
    cases++;
    double mean = wasserstein_sliced(wasserstein, &(Clouds){1, pair.n, pair.m, pair.x, pair.y}, 3, stream(0));
    double most =
        wasserstein_max_sliced(wasserstein, &(Clouds){1, pair.n, pair.m, pair.x, pair.y}, 3, stream(0));
    CHECK_NEAR(mean, pair.emd, 1e-12);
    CHECK_NEAR(most, pair.emd, 1e-12);
  }
  CU_ASSERT(cases >= 5);
  emd_golden_close(&golden);
}

/* Returns the fraction of x[d, n] whose projection is at most t. */
static double fraction_below(int d, int n, const double *x, const double *direction, double t) {
  int count = 0;
  for (int i = 0; i < n; i++) {
    double projection = 0;
    for (int k = 0; k < d; k++) projection += direction[k] * x[k * n + i];
    count += projection <= t;
  }
  return (double)count / n;
}

/* Computes int |F(t) - G(t)| dt along a direction: the other formula of W1. */
static double by_distribution(int d, int n, const double *x, int m, const double *y,
                              const double *direction) {
  double knots[256], sum = 0;
  for (int i = 0; i < n + m; i++) {
    knots[i] = 0;
    for (int k = 0; k < d; k++) knots[i] += direction[k] * (i < n ? x[k * n + i] : y[k * m + i - n]);
  }
  quantile_sort(n + m, knots);
  for (int i = 0; i + 1 < n + m; i++) {
    double middle = (knots[i] + knots[i + 1]) / 2;
    sum += (knots[i + 1] - knots[i]) *
           fabs(fraction_below(d, n, x, direction, middle) - fraction_below(d, m, y, direction, middle));
  }
  return sum;
}

static const int SHAPES[][3] = {{2, 50, 50}, {3, 70, 40}, {5, 33, 64}, {4, 1, 9}};
enum { MOST_D = 5, MOST_POINTS = 70 };

static void test_sliced(void) {
  SCRATCH_ARENA(memory);
  Wasserstein *wasserstein;
  CHECK_OK(wasserstein_create(&memory, MOST_D, MOST_POINTS, &wasserstein));
  for (int s = 0; s < 4; s++) {
    int d = SHAPES[s][0], n = SHAPES[s][1], m = SHAPES[s][2];
    double x[MOST_D * MOST_POINTS], y[MOST_D * MOST_POINTS], expected = 0, largest = 0;
    Rng points = stream(1), directions = stream(2);
    rng_normal(&points, d * n, x);
    rng_normal(&points, d * m, y);
    for (int k = 0; k < d * m; k++) y[k] = 0.5 + 2 * y[k];
    for (int k = 0; k < DIRECTIONS; k++) {
      double direction[MOST_D], squares = 0;
      rng_normal(&directions, d, direction);
      for (int i = 0; i < d; i++) squares += direction[i] * direction[i];
      for (int i = 0; i < d; i++) direction[i] /= sqrt(squares);
      double value = by_distribution(d, n, x, m, y, direction);
      expected += value / DIRECTIONS;
      largest = fmax(largest, value);
    }
    CHECK_NEAR(wasserstein_sliced(wasserstein, &(Clouds){d, n, m, x, y}, DIRECTIONS, stream(2)), expected,
               1e-12);
    CU_ASSERT(wasserstein_max_sliced(wasserstein, &(Clouds){d, n, m, x, y}, DIRECTIONS, stream(2)) > largest);
  }
}

/* Checks every network of up to 12 inputs: one that sorts all sequences of zeros and ones sorts all sequences
 * (Knuth 5.3.4, Theorem Z). */
static void test_network_of_slices(void) {
  enum { MOST = 12 };
  double values[MOST * WASSERSTEIN_SLICES];
  for (int n = 1; n <= MOST; n++)
    for (int first = 0; first < 1 << n; first += WASSERSTEIN_SLICES) {
      for (int i = 0; i < n; i++)
        for (int lane = 0; lane < WASSERSTEIN_SLICES; lane++)
          values[i * WASSERSTEIN_SLICES + lane] = (first + lane) >> i & 1;
      wasserstein_sort_slices(n, values);
      for (int lane = 0; lane < WASSERSTEIN_SLICES; lane++) {
        int ones = 0;
        for (int i = 0; i < n; i++) ones += (first + lane) >> i & 1;
        for (int i = 0; i < n; i++) CU_ASSERT_EQUAL(values[i * WASSERSTEIN_SLICES + lane], i >= n - ones);
      }
    }
}

/* Scans the half circle in steps of 1e-3. W1 is Lipschitz in the angle, here with a constant below 3, so no
 * direction is more than 1.5e-3 above the scan. With so few points W1 has many local maxima; the one found
 * must be within 3% of the largest. */
static void test_max_sliced_scan(void) {
  SCRATCH_ARENA(memory);
  enum { N = 40, M = 30 };
  Wasserstein *wasserstein;
  CHECK_OK(wasserstein_create(&memory, 2, N, &wasserstein));
  for (uint32_t repeat = 0; repeat < 3; repeat++) {
    double x[2 * N], y[2 * M], largest = 0;
    Rng points = stream(10 + repeat);
    rng_normal(&points, 2 * N, x);
    rng_normal(&points, 2 * M, y);
    for (int i = 0; i < M; i++) y[i] = 0.2 + 1.5 * y[M + i] + 0.3 * y[i];
    for (double angle = 0; angle < M_PI; angle += 1e-3) {
      double direction[2] = {cos(angle), sin(angle)};
      largest = fmax(largest, by_distribution(2, N, x, M, y, direction));
    }
    double found = wasserstein_max_sliced(wasserstein, &(Clouds){2, N, M, x, y}, DIRECTIONS, stream(2));
    CU_ASSERT(found >= 0.97 * largest && found <= largest + 1.5e-3);
  }
}

/* Checks a shift by s: W1 is |direction' s|. Its largest is |s|; its mean over the sphere in three dimensions
 * is |s| / 2, with variance s^2 / 12: 4 standard errors of 4000 directions. */
static void test_shift(void) {
  SCRATCH_ARENA(memory);
  enum { N = 30, MANY = 4000 };
  double x[3 * N], y[3 * N];
  Wasserstein *wasserstein;
  CHECK_OK(wasserstein_create(&memory, 3, N, &wasserstein));
  Rng points = stream(3);
  rng_normal(&points, 3 * N, x);
  for (int k = 0; k < 3 * N; k++) y[k] = x[k] + (k < N ? 2 : k < 2 * N ? -3 : 6);
  CHECK_NEAR(wasserstein_max_sliced(wasserstein, &(Clouds){3, N, N, x, y}, 5, stream(4)), 7, 1e-10);
  CHECK_NEAR(wasserstein_sliced(wasserstein, &(Clouds){3, N, N, x, y}, MANY, stream(4)), 3.5,
             4 * 7 / sqrt(12.0 * MANY));
  CU_ASSERT_EQUAL(wasserstein_sliced(wasserstein, &(Clouds){3, N, N, x, x}, 5, stream(4)), 0);
  CU_ASSERT_EQUAL(wasserstein_max_sliced(wasserstein, &(Clouds){3, N, N, x, x}, 5, stream(4)), 0);
}

/* Measures what needs only the covariances of two clouds in the plane. */
static double of_covariances(Measure *measure, double *x, double *y) {
  const Cloud first = {.covariance = x}, second = {.covariance = y};
  double out;
  CHECK_OK(measure(&(Comparison){.d = 2, .x = &first, .y = &second}, &out));
  return out;
}

/* Measures what needs only the points of two clouds and the modes. */
static double of_modes(Measure *measure, const Mixture *modes, int n, double *x, int m, double *y) {
  const Cloud first = {.n = n, .theta = x}, second = {.n = m, .theta = y};
  double work[40], out;
  ASSERT(metric_work(modes->d, n > m ? n : m, modes->components) <= sizeof work / sizeof *work);
  CHECK_OK(
      measure(&(Comparison){.d = modes->d, .x = &first, .y = &second, .modes = modes, .work = work}, &out));
  return out;
}

/* Checks moments of y = 2 x + (3, 4): four times the covariance of x. */
static void test_moments(void) {
  enum { D = 2, N = 50 };
  double x[D * N], y[D * N], mean[D], covariance[D * D], mean_y[D], covariance_y[D * D];
  double none[D * D] = {0}, diagonal[D * D] = {3, 0, 0, 4}, full[D * D] = {3, 5, 5, 4};
  Rng points = stream(5);
  rng_normal(&points, D * N, x);
  linalg_moments(D, N, x, mean, covariance);
  for (int k = 0; k < D * N; k++) y[k] = 2 * (x[k] - mean[k / N]) + mean[k / N] + (k < N ? 3 : 4);
  linalg_moments(D, N, y, mean_y, covariance_y);
  CHECK_NEAR(of_covariances(measure_sd_ratio, covariance, covariance_y), 0.5, 1e-14);
  CHECK_NEAR(metric_mean_error(D, mean, mean_y), 5, 1e-14);
  CHECK_NEAR(of_covariances(measure_covariance_error, covariance, covariance_y), 0.75, 1e-14);
  CHECK_NEAR(of_covariances(measure_covariance_error, covariance_y, covariance), 3, 1e-13);
  /* Only off the diagonal: sqrt(50) over sqrt(25). The spread is the same. */
  CHECK_NEAR(of_covariances(measure_covariance_error, full, diagonal), sqrt(2.0), 1e-14);
  CHECK_NEAR(of_covariances(measure_sd_ratio, full, diagonal), 1, 0);
  CU_ASSERT(isnan(of_covariances(measure_sd_ratio, full, none)));
  CU_ASSERT(isnan(of_covariances(measure_covariance_error, full, none)));
}

/* Checks the errors of marginals: the mean is off by 3 sd in coordinate 1, the deviation by half in
 * coordinate 0; what is not a number stays so. */
static void test_marginals(void) {
  double x[] = {1, 3, 4, 6}, y[] = {0, 4, 1, 3}, of_mean, of_sd;
  const Cloud own = {.n = 2, .theta = x}, exact = {.n = 2, .theta = y};
  const Comparison comparison = {.d = 2, .x = &own, .y = &exact};
  CHECK_OK(measure_marginal_mean_error(&comparison, &of_mean));
  CHECK_OK(measure_marginal_sd_error(&comparison, &of_sd));
  CU_ASSERT(of_mean == 3 && of_sd == 0.5);
  x[0] = NAN;
  CHECK_OK(measure_marginal_mean_error(&comparison, &of_mean));
  CHECK_OK(measure_marginal_sd_error(&comparison, &of_sd));
  CU_ASSERT(isnan(of_mean) && isnan(of_sd));
}

/* Returns the clouds of check_metric: order 0 as drawn, 1 with the points of x and y in reverse. */
static Cloud cloud(int d, int n, uint32_t run, bool reversed, double *theta, double *moments) {
  double points[200];
  Rng rng = stream(run);
  rng_normal(&rng, d * n, points);
  for (int k = 0; k < d * n; k++) theta[k] = points[reversed ? k / n * n + n - 1 - k % n : k];
  linalg_moments(d, n, theta, moments, moments + d);
  return (Cloud){.n = n, .theta = theta, .mean = moments, .covariance = moments + d};
}

/* Checks every metric of the list: finite, the same when it is computed again, and, except for rounding, the
 * same for the points in another order (the search for the largest slice may end elsewhere because of it:
 * 1e-6), and without matrices: the covariances of the points and those of the modes. */
static void test_every_metric(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, N = 40 };
#define NAMED(name, word, text) {#name, word, measure_##name},
  static const struct {
    const char *name, *word;
    Measure *measure;
  } metrics[] = {METRIC_LIST(NAMED, NAMED, NAMED)};
  Mixture modes;
  CHECK_OK(mixture_create(&memory, D, 2, &modes));
  for (int c = 0; c < 2; c++) {
    modes.weight[c] = 0.5, modes.mean[c * D] = 2 * c - 1;
    for (int i = 0; i < D; i++) modes.covariance[(c * D + i) * D + i] = 1;
  }
  CHECK_OK(mixture_prepare(&modes));
  Isotropic isotropic;
  CHECK_OK(denoiser_isotropic_create(&memory, D, 2, &isotropic));
  for (int c = 0; c < 2; c++) {
    isotropic.weight[c] = 0.5;
    isotropic.variance[c] = 1;
    isotropic.mean[c * D] = 2 * c - 1;
  }
  double theta[2][D * N], moments[2][D + D * D], work[D + 3 * N + 4];
  const double truth[D] = {0.1, -0.2, 0.3};
  Comparison comparison = {
      .d = D, .projections = 64, .truth = truth, .modes = &modes, .directions = stream(60), .work = work};
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 1};
  History history;
  HistoryDensity density;
  CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
  CHECK_OK(history_density_create(&memory, D, 1, &likelihood, &density));
  history_record(&history, NULL, (double[]){1, 0.5, 0}, (double[]){2});
  comparison.history = &history;
  comparison.density = &density;
  CHECK_OK(emd_create(&memory, N, &comparison.emd));
  CHECK_OK(wasserstein_create(&memory, D, N, &comparison.wasserstein));
  for (size_t k = 0; k < sizeof metrics / sizeof *metrics; k++) {
    const int m =
        metrics[k].measure == measure_emd ? N : 30; /* of unequal clouds emd uses the first points */
    double value[4];
    CU_ASSERT(metrics[k].word[0] != 0);
    for (int order = 0; order < 4; order++) {
      Cloud x = cloud(D, N, 61, order == 2, theta[0], moments[0]),
            y = cloud(D, m, 62, order == 2, theta[1], moments[1]);
      comparison.x = &x, comparison.y = &y;
      if (order == 3) x.covariance = y.covariance = NULL;
      comparison.modes = order == 3 ? NULL : &modes;
      comparison.isotropic = order == 3 ? &isotropic : NULL;
      CHECK_OK(metrics[k].measure(&comparison, &value[order]));
      CU_ASSERT(isfinite(value[order]));
    }
    CU_ASSERT_EQUAL(value[0], value[1]);
    CHECK_NEAR(value[2], value[0], 1e-6 * fmax(1, fabs(value[0])));
    CHECK_NEAR(value[3], value[0], 1e-12);
  }
}

static Mixture two_modes(Arena *memory, double weight, double mean, double variance) {
  Mixture modes;
  CHECK_OK(mixture_create(memory, 1, 2, &modes));
  modes.weight[0] = weight, modes.weight[1] = 1 - weight;
  modes.mean[0] = 0, modes.mean[1] = mean;
  modes.covariance[0] = 1, modes.covariance[1] = variance;
  CHECK_OK(mixture_prepare(&modes));
  return modes;
}

/* Checks mode weights. 0.9 N(0, 1) + 0.1 N(2, 1) changes hands at 1 + log(9) / 2 = 2.0986. */
static void test_mode_weights(void) {
  SCRATCH_ARENA(memory);
  double x[4] = {-5, 2.09, 2.11, 9}, y[5] = {2.0985, 0, 1, 2.0987, 3};
  Mixture modes = two_modes(&memory, 0.9, 2, 1);
  CHECK_NEAR(of_modes(measure_mode_weight_error, &modes, 4, x, 5, y), 0.6 - 0.5, 1e-15);
  CHECK_NEAR(of_modes(measure_mode_weight_error, &modes, 4, x, 4, x), 0, 0);
  CHECK_NEAR(of_modes(measure_largest_mode, &modes, 4, x, 5, y), 0.6, 1e-15);
  /* 0.5 N(0, 1) + 0.5 N(0, 9): the narrow one has |x| < sqrt(9/4 log 3) = 1.57223. */
  modes = two_modes(&memory, 0.5, 0, 9);
  double inside[3] = {-1.572, 0, 1.572}, mixed[4] = {-1.573, 0.5, 1.573, 40};
  CHECK_NEAR(of_modes(measure_mode_weight_error, &modes, 3, inside, 4, mixed), 0.75, 1e-15);
  /* Three corners in the plane; all points of x in the first, those of y in the others. */
  CHECK_OK(mixture_create(&memory, 2, 3, &modes));
  for (int c = 0; c < 3; c++) {
    modes.weight[c] = c == 2 ? 0.5 : 0.25;
    modes.mean[2 * c] = c == 1 ? 10 : 0;
    modes.mean[2 * c + 1] = c == 2 ? 10 : 0;
    modes.covariance[4 * c] = modes.covariance[4 * c + 3] = 1;
  }
  CHECK_OK(mixture_prepare(&modes));
  double first[4] = {0, 1, 0, -1}, others[6] = {9, 0, 1, 1, 9, 11};
  CHECK_NEAR(of_modes(measure_mode_weight_error, &modes, 2, first, 3, others), 1, 1e-15);
}

/* Checks ranks of draws 0 .. 9 on the first axis, their negatives on the second; equal values do not count as
 * below. */
static void test_rank(void) {
  double x[20], truth[2] = {4.5, -1}, tie[2] = {4, 0};
  double first[2] = {1, 0}, second[2] = {0, 1}, both[2] = {1, 2};
  for (int i = 0; i < 10; i++) x[i] = i, x[10 + i] = -i;
  CU_ASSERT_EQUAL(metric_rank(2, 10, x, truth, first), 5);
  CU_ASSERT_EQUAL(metric_rank(2, 10, x, tie, first), 4);
  CU_ASSERT_EQUAL(metric_rank(2, 10, x, truth, second), 8);
  /* i - 2 i < 4.5 - 2 for all i. */
  CU_ASSERT_EQUAL(metric_rank(2, 10, x, truth, both), 10);
  truth[0] = -100;
  CU_ASSERT_EQUAL(metric_rank(2, 10, x, truth, first), 0);
}

/* Checks log likelihoods, from which ranks are taken as from |theta|: they are sums over the rows of two
 * runs' histories, up to a constant of the run. */
static void check_likelihoods(const char *name, double noise) {
  enum { D = 2, RUNS = 2, ROWS = 3, N = 5 };
  static const double phi[ROWS][D * RUNS] = {{1, 0, 0.5, -1}, {-0.5, 2, 1, 1}, {0.3, 0.1, -2, 0}},
                                    y[ROWS][RUNS] = {{1, 0}, {0, 1}, {1, 1}},
                                    x[D * N] = {0.1, -1, 2, 0.3, 1, 0.7, 1.5, -0.2, 0, -1};
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find(name), .noise = noise};
  History history;
  HistoryDensity density;
  double found[N];
  CHECK_OK(history_density_create(&memory, D, 1, &likelihood, &density));
  CHECK_OK(history_create(&memory, D, RUNS, &likelihood, &history));
  CHECK_OK(history_reserve(&history, ROWS));
  for (int l = 0; l < ROWS; l++) history_record(&history, NULL, phi[l], y[l]);
  for (int run = 0; run < RUNS; run++) {
    const Cloud draws = {.n = N, .theta = (double[D * N]){0}};
    memcpy(draws.theta, x, sizeof x);
    double expected[N] = {0};
    for (int n = 0; n < N; n++)
      for (int l = 0; l < ROWS; l++)
        expected[n] += likelihood.ops->log_likelihood(&likelihood, y[l][run],
                                                      phi[l][run] * x[n] + phi[l][RUNS + run] * x[N + n]);
    for (int m = 0; m < N; m++) {
      const double own[D] = {x[m], x[N + m]};
      const Comparison comparison = {.projections = 64,
                                     .d = D,
                                     .x = &draws,
                                     .truth = own,
                                     .history = &history,
                                     .run = run,
                                     .density = &density};
      double truth;
      metric_log_likelihoods(&comparison, &draws, found, &truth);
      for (int n = 1; n < N; n++) CHECK_NEAR(found[n] - found[0], expected[n] - expected[0], 1e-12);
      CU_ASSERT_EQUAL(truth, found[m]); /* ranks compare the two */
    }
  }
}

static void test_other_ranks(void) {
  const double x[6] = {3, 0, -5, 4, 1, 12};
  double norm[3];
  metric_norms(2, 3, x, norm);
  CHECK_NEAR(norm[0], 5, 1e-15);
  CHECK_NEAR(norm[1], 1, 1e-15);
  CHECK_NEAR(norm[2], 13, 1e-14);
  CU_ASSERT_EQUAL(metric_below(3, norm, 6), 2);
  CU_ASSERT_EQUAL(metric_below(3, norm, 1), 0);
  check_likelihoods("gaussian", 0.7);
  check_likelihoods("logistic", 1);
  check_likelihoods("poisson", 1);
}

/* Checks distinct values: four points, two of them equal; in their first coordinates there are three values,
 * in the second two. */
static void test_distinct(void) {
  const double x[8] = {1, 2, 1, 3, 5, 5, 5, -5};
  double share;
  CHECK_OK(metric_distinct(2, 4, x, &share));
  CHECK_NEAR(share, 0.75, 0);
  CHECK_OK(metric_distinct(1, 4, x + 4, &share));
  CHECK_NEAR(share, 0.5, 0);
}

/* Checks distances 5, 0 and 13 to (1, 2). */
static void test_distance(void) {
  double x[6] = {4, 1, 6, 6, 2, 14}, truth[2] = {1, 2};
  CHECK_NEAR(metric_distance(2, 3, x, truth), 6, 1e-15);
}

/* Checks the energy score: mean distance 6, less half of the mean distance of the three pairs. */
static void test_energy_score(void) {
  double x[6] = {4, 1, 6, 6, 2, 14}, truth[2] = {1, 2};
  const double pairs = 5 + hypot(2, 8) + hypot(5, 12);
  CHECK_NEAR(metric_energy_score(2, 3, x, truth), 6 - pairs / 6, 1e-14);
}

int main(void) {
  CU_TestInfo tests[] = {{"every metric of the list", test_every_metric},
                         {"one dimension", test_one_dimension},
                         {"sliced", test_sliced},
                         {"network of slices", test_network_of_slices},
                         {"largest slice by scan", test_max_sliced_scan},
                         {"shift", test_shift},
                         {"energy score", test_energy_score},
                         {"moments", test_moments},
                         {"marginals", test_marginals},
                         {"mode weights", test_mode_weights},
                         {"distance", test_distance},
                         {"rank", test_rank},
                         {"distinct points", test_distinct},
                         {"ranks of norms and likelihoods", test_other_ranks},
                         CU_TEST_INFO_NULL};
  return harness_run("metrics", tests);
}
