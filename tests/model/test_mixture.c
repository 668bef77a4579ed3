/* Gaussian mixtures against SciPy and scikit-learn (golden/mixture.py), finite differences and closed
 * forms. */
#include "core/arena.h"
#include "mixture_golden.h"

#include "core/linalg/linalg.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_fit.h"

#include <float.h>

static const int DIMENSIONS[] = {1, 2, 5};

static void test_density_and_score(void) {
  SCRATCH_ARENA(memory);
  StoreFile *file = golden_open();
  for (int c = 0; c < 3; c++) {
    int d = DIMENSIONS[c];
    Mixture mixture = golden_mixture(&memory, file, d);
    double points[GOLDEN_MOST * GOLDEN_POINTS], density[GOLDEN_POINTS], score[GOLDEN_MOST * GOLDEN_POINTS];
    double expected[GOLDEN_POINTS], expected_score[GOLDEN_MOST * GOLDEN_POINTS];
    golden_read(file, "points", d, points);
    golden_read(file, "density", d, expected);
    golden_read(file, "score", d, expected_score);
    mixture_log_density(&mixture, GOLDEN_POINTS, points, density);
    mixture_score(&mixture, GOLDEN_POINTS, points, score);
    for (int n = 0; n < GOLDEN_POINTS; n++)
      CHECK_NEAR(density[n], expected[n], 1e-10 * (1 + fabs(expected[n])));
    for (int k = 0; k < d * GOLDEN_POINTS; k++)
      CHECK_NEAR(score[k], expected_score[k], 1e-9 * (1 + fabs(expected_score[k])));

    double mean[GOLDEN_MOST], covariance[25], expected_mean[GOLDEN_MOST], expected_covariance[25];
    golden_read(file, "total_mean", d, expected_mean);
    golden_read(file, "total_covariance", d, expected_covariance);
    mixture_moments(&mixture, mean, covariance);
    for (int i = 0; i < d; i++) CHECK_NEAR(mean[i], expected_mean[i], 1e-13);
    for (int i = 0; i < d * d; i++) CHECK_NEAR(covariance[i], expected_covariance[i], 1e-12);
  }
  store_abandon(file);
}

/* Checks products with the Hessian by central differences of the score, step 1e-5: error about 1e-9 of the
 * third derivatives, which are below 1e3 here. */
static void test_hessian_product(void) {
  SCRATCH_ARENA(memory);
  StoreFile *file = golden_open();
  for (int c = 0; c < 3; c++) {
    enum { LANES = 20 };
    int d = DIMENSIONS[c];
    Mixture mixture = golden_mixture(&memory, file, d);
    double x[GOLDEN_MOST * LANES], v[GOLDEN_MOST * LANES], moved[GOLDEN_MOST * LANES],
        out[GOLDEN_MOST * LANES];
    double up[GOLDEN_MOST * LANES], down[GOLDEN_MOST * LANES], step = 1e-5;
    RngLanes rng = golden_lanes(LANES, 1);
    rng_lanes_normal(&rng, d, x);
    rng_lanes_normal(&rng, d, v);
    mixture_hessian_product(&mixture, LANES, x, v, out);
    for (int k = 0; k < d * LANES; k++) moved[k] = x[k] + step * v[k];
    mixture_score(&mixture, LANES, moved, up);
    for (int k = 0; k < d * LANES; k++) moved[k] = x[k] - step * v[k];
    mixture_score(&mixture, LANES, moved, down);
    for (int k = 0; k < d * LANES; k++) CHECK_NEAR(out[k], (up[k] - down[k]) / (2 * step), 2e-6);
  }
  store_abandon(file);
}

/* Checks that a lane's numbers depend neither on its place nor on the others, nor on whether density and
 * score are computed together. */
static void test_lanes(void) {
  SCRATCH_ARENA(memory);
  enum { LANES = 150 };
  StoreFile *file = golden_open();
  Mixture mixture = golden_mixture(&memory, file, 5);
  double *x = golden_array(5 * LANES), *density = golden_array(LANES), *score = golden_array(5 * LANES);
  double *product = golden_array(5 * LANES), *both = golden_array(LANES),
         *both_score = golden_array(5 * LANES);
  double scratch[5 * CHUNK_LANES];
  RngLanes rng = golden_lanes(LANES, 2);
  rng_lanes_normal(&rng, 5, x);
  mixture_log_density(&mixture, LANES, x, density);
  mixture_score(&mixture, LANES, x, score);
  mixture_hessian_product(&mixture, LANES, x, score, product);
  mixture_density(&mixture, LANES, x, scratch, both, both_score);
  CU_ASSERT(memcmp(both, density, LANES * sizeof *both) == 0);
  for (int n = 0; n < LANES; n++) {
    double one[5], v[5], out, gradient[5], along[5];
    for (int i = 0; i < 5; i++) one[i] = x[i * LANES + n], v[i] = score[i * LANES + n];
    mixture_log_density(&mixture, 1, one, &out);
    mixture_score(&mixture, 1, one, gradient);
    mixture_hessian_product(&mixture, 1, one, v, along);
    CU_ASSERT_EQUAL(out, density[n]);
    for (int i = 0; i < 5; i++) CU_ASSERT(gradient[i] == v[i] && along[i] == product[i * LANES + n]);
  }
  free(x), free(density), free(score), free(product), free(both), free(both_score);
  store_abandon(file);
}

/* Checks that at 1e5 standard deviations only the closest component counts; no exception, nothing lost. */
static void test_far(void) {
  SCRATCH_ARENA(memory);
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, 1, 2, &mixture));
  mixture.weight[0] = 0.25, mixture.weight[1] = 0.75;
  mixture.mean[0] = -1, mixture.mean[1] = 2;
  mixture.covariance[0] = mixture.covariance[1] = 1e-6;
  CHECK_OK(mixture_prepare(&mixture));
  double x[3] = {100, -100, 0.5}, density[3], score[3], product[3], v[3] = {1, 1, 1};
  mixture_log_density(&mixture, 3, x, density);
  mixture_score(&mixture, 3, x, score);
  mixture_hessian_product(&mixture, 3, x, v, product);
  CHECK_NEAR(density[0], log(0.75) - 0.5 * log(2e-6 * M_PI) - 0.5e6 * 98 * 98, 1e-5);
  CHECK_NEAR(density[1], log(0.25) - 0.5 * log(2e-6 * M_PI) - 0.5e6 * 99 * 99, 1e-5);
  CHECK_NEAR(score[0], -98e6, 1e-6);
  CHECK_NEAR(score[1], 99e6, 1e-6);
  /* Half-way between, r = 1/4, 3/4 and the scores are -+1.5e6. */
  CHECK_NEAR(score[2], 0.5 * 1.5e6, 1e-3);
  CHECK_NEAR(product[0], -1e6, 1e-6);
  CHECK_NEAR(product[2] / 1e12, -1e-6 + 2.25 - 0.5625, 1e-8);
}

/* Checks moments within 5 standard errors, and that each lane uses one uniform (the component), then d
 * normals of its stream. */
static void test_sample(void) {
  SCRATCH_ARENA(memory);
  enum { LANES = 20000 };
  StoreFile *file = golden_open();
  for (int c = 0; c < 3; c++) {
    int d = DIMENSIONS[c];
    Mixture mixture = golden_mixture(&memory, file, d);
    double *theta = golden_array((size_t)d * LANES), mean[GOLDEN_MOST], covariance[25];
    RngLanes rng = golden_lanes(LANES, 3);
    mixture_sample(&mixture, &rng, theta);
    mixture_moments(&mixture, mean, covariance);
    CU_ASSERT(golden_moment_error(d, LANES, theta, mean, covariance) < 5);
    for (int n = 0; n < LANES; n += 997) {
      Rng stream = {.key = rng_key(GOLDEN_SEED, RNG_TEST), .round = 3, .run = (uint32_t)n};
      double u, z[GOLDEN_MOST], below = 0;
      int chosen = 0;
      rng_uniform(&stream, 1, &u);
      rng_normal(&stream, d, z);
      CU_ASSERT_EQUAL(stream.position, rng.position);
      while (chosen + 1 < mixture.components && u >= below + mixture.weight[chosen])
        below += mixture.weight[chosen++];
      for (int i = 0; i < d; i++) {
        double expected = mixture.mean[chosen * d + i];
        for (int j = 0; j <= i; j++) expected += mixture.cholesky[(chosen * d + i) * d + j] * z[j];
        CHECK_NEAR(theta[i * LANES + n], expected, 1e-13);
      }
    }
    free(theta);
  }
  store_abandon(file);
}

static void test_prepare_errors(void) {
  SCRATCH_ARENA(memory);
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, 2, 2, &mixture));
  for (int c = 0; c < 2; c++) {
    mixture.weight[c] = 0.5;
    mixture.covariance[4 * c] = mixture.covariance[4 * c + 3] = 1;
  }
  CHECK_OK(mixture_prepare(&mixture));
  mixture.covariance[5] = mixture.covariance[6] = 1.5;
  CHECK_FAILS(mixture_prepare(&mixture), STATUS_INPUT, "covariance of component 1");
  mixture.weight[0] = 0;
  CHECK_FAILS(mixture_prepare(&mixture), STATUS_INPUT, "component 0 of the mixture has weight 0");
}

/* Checks that precisions are found when somebody needs them, and again after the mixture has changed. */
static void test_inverse(void) {
  SCRATCH_ARENA(memory);
  Mixture mixture;
  double x = 1, density;
  CHECK_OK(mixture_create(&memory, 1, 1, &mixture));
  mixture.weight[0] = 1;
  for (int k = 1; k <= 2; k++) {
    mixture.mean[0] = k;
    mixture.covariance[0] = 4 * k;
    CHECK_OK(mixture_prepare(&mixture));
    CU_ASSERT_FALSE(*mixture.inverse.found);
    if (k == 2) mixture_log_density(&mixture, 1, &x, &density);
    CHECK_NEAR(mixture_precision(&mixture, 0)[0], 0.25 / k, 1e-15);
    CHECK_NEAR(mixture_information(&mixture, 0)[0], 0.25, 1e-15);
  }
  CHECK_NEAR(density, -0.5 * log(2 * M_PI * 8) - 0.0625, 1e-14);
}

/* Computes the mean log density of theta[d, n], n <= 1000. */
static double mean_log_density(const Mixture *mixture, int n, const double *theta) {
  double density[1000], mean = 0;
  mixture_log_density(mixture, n, theta, density);
  for (int k = 0; k < n; k++) mean += density[k] / n;
  return mean;
}

/* Checks that the fit is not below the best of 120 starts of scikit-learn by more than 1e-4, for three keys
 * each. */
static void test_fit_against_sklearn(void) {
  SCRATCH_ARENA(memory);
  enum { FAMILIES = 4, COUNTS = 2, N = 1000 };
  static double samples[FAMILIES][2 * N], likelihood[FAMILIES][COUNTS];
  double counts[COUNTS];
  StoreFile *file = golden_open();
  golden_read(file, "samples", 0, &samples[0][0]);
  golden_read(file, "likelihood", 0, &likelihood[0][0]);
  golden_read(file, "count", 0, counts);
  for (int i = 0; i < FAMILIES; i++) {
    for (int j = 0; j < COUNTS; j++) {
      for (uint64_t seed = 1; seed <= 3; seed++) {
        Mixture mixture;
        CHECK_OK(mixture_fit(&memory, 2, N, samples[i], (int)counts[j], 20, rng_key(seed, RNG_MIXTURE_START),
                             0, &mixture));
        const double reached = mean_log_density(&mixture, N, samples[i]);
        if (reached < likelihood[i][j] - 1e-4)
          printf("\n    family %d, %g components, key %d: ", i, counts[j], (int)seed);
        CU_ASSERT(reached >= likelihood[i][j] - 1e-4);
      }
    }
  }
  store_abandon(file);
}

/* Checks the rough fit, which may stop where the likelihood still rises by a millionth per step, and at
 * another of the optima: 0.01 nats, a third of a standard error of a mean of 1000 log densities of unit
 * variance. */
static void test_rough_fit(void) {
  SCRATCH_ARENA(memory);
  enum { FAMILIES = 4, N = 1000, COMPONENTS = 4, STARTS = 4 };
  static double samples[FAMILIES][2 * N];
  const RngKey key = rng_key(1, RNG_MIXTURE_START);
  StoreFile *file = golden_open();
  golden_read(file, "samples", 0, &samples[0][0]);
  for (int i = 0; i < FAMILIES; i++) {
    Mixture exact, rough;
    CHECK_OK(mixture_fit(&memory, 2, N, samples[i], COMPONENTS, STARTS, key, 0, &exact));
    CHECK_OK(mixture_fit_roughly(&memory, 2, N, samples[i], COMPONENTS, STARTS, key, 0, &rough));
    CU_ASSERT(mean_log_density(&rough, N, samples[i]) >= mean_log_density(&exact, N, samples[i]) - 0.01);
  }
  store_abandon(file);
}

/* Checks that the fit follows a change of unit and origin, and that a key and run give the same bits
 * twice. */
static void test_fit_equivariance(void) {
  SCRATCH_ARENA(memory);
  enum { N = 1000 };
  static double samples[4][2 * N], moved[2 * N];
  StoreFile *file = golden_open();
  golden_read(file, "samples", 0, &samples[0][0]);
  Mixture one, two, again;
  RngKey key = rng_key(4, RNG_MIXTURE_START);
  for (int k = 0; k < N; k++) moved[k] = 1e3 + 1e-4 * samples[2][k], moved[N + k] = 1e5 * samples[2][N + k];
  CHECK_OK(mixture_fit(&memory, 2, N, samples[2], 2, 5, key, 7, &one));
  CHECK_OK(mixture_fit(&memory, 2, N, samples[2], 2, 5, key, 7, &again));
  CHECK_OK(mixture_fit(&memory, 2, N, moved, 2, 5, key, 7, &two));
  const double reached = mean_log_density(&one, N, samples[2]);
  CHECK_NEAR(mean_log_density(&two, N, moved), reached - log(1e-4) - log(1e5), 1e-5);
  CU_ASSERT_EQUAL(memcmp(one.covariance, again.covariance, 8 * sizeof(double)), 0);
  store_abandon(file);
}

/* Checks that three well separated clumps of 2, 3 and 5 points of known moments are found. */
static void test_fit_recovers(void) {
  SCRATCH_ARENA(memory);
  double x[10] = {-101, -99, 0, 1, 2, 200, 201, 202, 203, 204};
  Mixture mixture;
  CHECK_OK(mixture_fit(&memory, 1, 10, x, 3, 10, rng_key(1, RNG_MIXTURE_START), 0, &mixture));
  const double weight[3] = {0.2, 0.3, 0.5}, mean[3] = {-100, 1, 202}, variance[3] = {1, 2.0 / 3, 2};
  for (int k = 0; k < 3; k++) {
    int c = 0;
    while (c < 2 && fabs(mixture.mean[c] - mean[k]) > 20) c++;
    CHECK_NEAR(mixture.weight[c], weight[k], 1e-6);
    CHECK_NEAR(mixture.mean[c], mean[k], 1e-3);
    CHECK_NEAR(mixture.covariance[c], variance[k],
               0.02); /* the floor adds 1e-6 of a total variance of 15 000 */
  }
}

static void test_fit_gaussian(void) {
  SCRATCH_ARENA(memory);
  enum { N = 500, D = 3 };
  double x[D * N], mean[D], covariance[D * D];
  RngLanes rng = golden_lanes(N, 5);
  rng_lanes_normal(&rng, D, x);
  for (int k = 0; k < N; k++) x[N + k] = 5 + 2 * x[N + k] + x[k];
  for (int i = 0; i < D; i++) {
    mean[i] = 0;
    for (int k = 0; k < N; k++) mean[i] += x[i * N + k] / N;
  }
  for (int i = 0; i < D; i++) {
    for (int j = 0; j < D; j++) {
      covariance[i * D + j] = 0;
      for (int k = 0; k < N; k++)
        covariance[i * D + j] += (x[i * N + k] - mean[i]) * (x[j * N + k] - mean[j]) / N;
    }
  }
  Mixture mixture;
  CHECK_OK(mixture_fit(&memory, D, N, x, 1, 1, (RngKey){{0, 0}}, 0, &mixture));
  CU_ASSERT_EQUAL(mixture.components, 1);
  CU_ASSERT_EQUAL(mixture.weight[0], 1);
  for (int i = 0; i < D; i++) CHECK_NEAR(mixture.mean[i], mean[i], 1e-12);
  for (int i = 0; i < D * D; i++) /* with the documented floor */
    CHECK_NEAR(mixture.covariance[i], covariance[i] * (i % (D + 1) == 0 ? 1 + 1e-6 : 1), 1e-12);
}

/* Checks too few, repeated, constant and collinear samples: a sentence, or a mixture with finite numbers. */
static void test_degenerate(void) {
  SCRATCH_ARENA(memory);
  enum { N = 300 };
  double x[2 * N], point[2] = {3, 4}, out[N];
  RngKey key = rng_key(6, RNG_MIXTURE_START);
  Mixture mixture;
  CHECK_FAILS(mixture_fit(&memory, 2, 3, x, 4, 5, key, 0, &mixture), STATUS_INPUT, "there are 3");
  CHECK_FAILS(mixture_fit(&memory, 2, 0, x, 1, 1, (RngKey){{0, 0}}, 0, &mixture), STATUS_INPUT,
              "there are 0");
  for (int kind = 0; kind < 5; kind++) {
    RngLanes rng = golden_lanes(N, 6);
    rng_lanes_normal(&rng, 2, x);
    for (int k = 0; k < N; k++) {
      if (kind == 0) x[k] = 7, x[N + k] = -7; /* one point */
      if (kind == 1) x[k] = k % 3, x[N + k] = k % 3 == 1; /* three points */
      if (kind == 2) x[N + k] = 1e6; /* a constant coordinate */
      if (kind == 3) x[N + k] = 2 * x[k]; /* a line */
      if (kind == 4 && k == 0) x[k] = 1e7; /* an outlier */
    }
    for (int components = 1; components <= 8; components += 7) {
      CHECK_OK(mixture_fit(&memory, 2, N, x, components, 6, key, 0, &mixture));
      double sum = 0;
      for (int c = 0; c < components; c++) sum += mixture.weight[c];
      CHECK_NEAR(sum, 1, 1e-12);
      for (int i = 0; i < 2 * components; i++) CU_ASSERT(isfinite(mixture.mean[i]));
      for (int i = 0; i < 4 * components; i++) CU_ASSERT(isfinite(mixture.covariance[i]));
      mixture_log_density(&mixture, N, x, out);
      for (int n = 0; n < N; n++) CU_ASSERT(isfinite(out[n]));
    }
  }
  CHECK_OK(mixture_fit(&memory, 2, 1, point, 1, 1, (RngKey){{0, 0}}, 0, &mixture));
  CHECK_NEAR(mixture.mean[1], 4, 1e-12);
  CHECK_NEAR(sqrt(mixture.covariance[3]), 0, 1e-11); /* what does not vary has a width of 0 up to rounding */
  CHECK_OK(mixture_fit(&memory, 1, 4, (double[]){1, 2, 3, 4}, 4, 5, key, 0,
                       &mixture)); /* one component per sample */
}

int main(void) {
  CU_TestInfo tests[] = {{"density, score, moments against SciPy", test_density_and_score},
                         {"Hessian product", test_hessian_product},
                         {"lanes are independent", test_lanes},
                         {"far from all components", test_far},
                         {"samples", test_sample},
                         {"errors of prepare", test_prepare_errors},
                         {"inverse", test_inverse},
                         {"fit against scikit-learn", test_fit_against_sklearn},
                         {"rough fit", test_rough_fit},
                         {"fit follows units", test_fit_equivariance},
                         {"fit recovers clumps", test_fit_recovers},
                         {"Gaussian fit", test_fit_gaussian},
                         {"degenerate samples", test_degenerate},
                         CU_TEST_INFO_NULL};
  return harness_run("mixture", tests);
}
