/* Expectation maximisation over samples, and the number of components by held-out likelihood. */
#include "mixture_golden.h"

#include "core/linalg/linalg.h"
#include "model/mixture/em_samples.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_fit.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"

/* Checks the E-step under `mixture` against sums over components one by one; the samples begin in the middle.
 * Products of features are multiplied out, which loses 1e-11. */
static void check_expect(Arena *memory, const Mixture *mixture) {
  enum { N = 700, FIRST = 300 };
  const int d = mixture->d, C = mixture->components, F = (int)em_features(d);
  double *z = golden_array((size_t)d * N), *sums = golden_array((size_t)(C * F)),
         *expected = golden_array((size_t)(C * F)), density[N], reached = 0, sum = 0;
  RngLanes rng = golden_lanes(N, 20);
  mixture_sample(mixture, &rng, z);
  EmSamples em;
  CHECK_OK(em_samples_create(memory, d, N, z, FIRST, N, C, &em));
  reached = em.data.expect(&em.data, N, mixture, sums);
  mixture_log_density(mixture, N, z, density);
  for (int n = 0; n < N; n++) {
    sum += density[n];
    for (int c = 0; c < C; c++) {
      double l = mixture->log_norm[c], *row = expected + c * F;
      for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++)
          l -= 0.5 * mixture_precision(mixture, c)[i * d + j] * (z[i * N + n] - mixture->mean[c * d + i]) *
               (z[j * N + n] - mixture->mean[c * d + j]);
      const double share = exp(l - density[n]);
      *row++ += share;
      for (int i = 0; i < d; i++) *row++ += share * z[i * N + n];
      for (int i = 0; i < d; i++)
        for (int j = 0; j <= i; j++) *row++ += share * z[i * N + n] * z[j * N + n];
    }
  }
  CHECK_NEAR(reached, sum, 1e-11 * (N + fabs(sum)));
  for (int k = 0; k < C * F; k++) CHECK_NEAR(sums[k], expected[k], 1e-11 * (N + fabs(expected[k])));
  free(z), free(sums), free(expected);
}

static void test_expect(void) {
  SCRATCH_ARENA(memory);
  StoreFile *file = golden_open();
  for (int d = 1; d <= 5; d += d == 1 ? 1 : 3) {
    const Mixture mixture = golden_mixture(&memory, file, d);
    check_expect(&memory, &mixture);
  }
  store_abandon(file);
}

/* Checks the same in so many dimensions that there are no features, with components that share samples: their
 * means are two standard deviations apart, along the diagonal. */
static void test_expect_wide(void) {
  SCRATCH_ARENA(memory);
  enum { D = 130, C = 3 };
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, D, C, &mixture));
  for (int c = 0; c < C; c++) {
    RngLanes rng = golden_lanes(D, (uint32_t)(30 + c));
    double *root = golden_array((size_t)D * D), *own = mixture.covariance + c * D * D;
    rng_lanes_normal(&rng, D, root);
    linalg_product(D, false, root, true, root, own);
    for (int i = 0; i < D * D; i++) own[i] = own[i] / (4 * D) + (i % (D + 1) == 0);
    for (int i = 0; i < D; i++) mixture.mean[c * D + i] = 2 * c / sqrt(D);
    mixture.weight[c] = (c + 1) / 6.0;
    free(root);
  }
  CHECK_OK(mixture_prepare(&mixture));
  check_expect(&memory, &mixture);
}

/* Computes expected[n], the log density of x[n] under mean and covariance of the other samples, plus one
 * sample with the variance of all samples and `shared` samples with the variance of the others, all without
 * correlation between the two coordinates. Returns the mean. */
static double leave_one_out(int count, const double *x, double shared, double *expected) {
  double sum = 0, mean[2] = {0}, variance[2] = {0};
  for (int i = 0; i < 2; i++) {
    for (int n = 0; n < count; n++) mean[i] += x[i * count + n] / count;
    for (int n = 0; n < count; n++) variance[i] += pow(x[i * count + n] - mean[i], 2) / count;
  }
  for (int n = 0; n < count; n++) {
    double centre[2] = {0}, s[2][2] = {{0}}, u[2];
    for (int i = 0; i < 2; i++)
      for (int k = 0; k < count; k++) centre[i] += k == n ? 0 : x[i * count + k] / (count - 1);
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++)
        for (int k = 0; k < count; k++)
          s[i][j] += k == n ? 0 : (x[i * count + k] - centre[i]) * (x[j * count + k] - centre[j]);
      u[i] = x[i * count + n] - centre[i];
    }
    for (int i = 0; i < 2; i++) {
      const double own = s[i][i];
      for (int j = 0; j < 2; j++) s[i][j] /= count + shared;
      s[i][i] += (variance[i] + shared * own / (count - 1)) / (count + shared) + 1e-6 * variance[i];
    }
    const double determinant = s[0][0] * s[1][1] - s[0][1] * s[1][0];
    expected[n] =
        -log(2 * M_PI) - 0.5 * log(determinant) -
        0.5 * (u[0] * u[0] * s[1][1] + u[1] * u[1] * s[0][0] - 2 * u[0] * u[1] * s[0][1]) / determinant;
    sum += expected[n] / count;
  }
  return sum;
}

/* Checks one Gaussian of few samples, whose folds are its samples: each under a fit to the others, with the
 * best amount of shared variance among the amounts that eight times the samples allow. Correlated coordinates
 * take none, and the fit is given by the moments; independent ones take the most. */
static void test_held_out(void) {
  enum { N = 12 };
  const double x[2][2 * N] = {
      {1,   4,   -2,   0.5, 7,   3,   3.5, -1,   2,   1.5, 0,   5,
       1.2, 4.1, -2.1, 0.2, 7.3, 2.6, 3.7, -1.2, 2.1, 1,   0.3, 5.2},
      {1, 4, -2, 0.5, 7, 3, 3.5, -1, 2, 1.5, 0, 5, 1, 0.3, 2, -1, 0.9, -0.7, 1.4, -0.4, 0, 2.5, -1.5, 0.2}};
  for (int kind = 0; kind < 2; kind++) {
    SCRATCH_ARENA(memory);
    double expected[3][N], held_out[N], shared, mean[3], best = 0;
    const double tried[3] = {0, 4, 32};
    Mixture mixture;
    for (int k = 0; k < 3; k++) mean[k] = leave_one_out(N, x[kind], tried[k], expected[k]);
    const int chosen = kind == 0 ? 0 : 2;
    for (int k = 0; k < 3; k++) CU_ASSERT(mean[k] <= mean[chosen]);
    CHECK_OK(mixture_try(&memory, 2, N, x[kind], 1, 20, rng_key(1, RNG_MIXTURE_START), 0, &mixture, held_out,
                         &shared));
    CU_ASSERT_EQUAL(shared, tried[chosen]);
    CU_ASSERT_EQUAL(mixture_held_out(N), 10);
    for (int n = 0; n < 10; n++) { /* in no particular order */
      double nearest = INFINITY;
      for (int k = 0; k < N; k++) nearest = fmin(nearest, fabs(held_out[n] - expected[chosen][k]));
      CHECK_NEAR(nearest, 0, 1e-12);
    }
    for (int i = 0; i < N; i++) best += x[kind][i] / N;
    CHECK_NEAR(mixture.mean[0], best, 1e-12);
  }
  CU_ASSERT(mixture_candidate_fits(1, 9, 1) && !mixture_candidate_fits(1, 16, 2)); /* 8 samples for each */
  CU_ASSERT(mixture_candidate_fits(1, 17, 2));
  CU_ASSERT(mixture_candidate_fits(19, 44, 2) && !mixture_candidate_fits(19, 43, 2)); /* or 20 */
}

/* Checks shrinkage: sixty samples about each of four places in twelve dimensions, where a covariance has 78
 * entries. With the variances that they have in common the fit to fresh samples is closer than with
 * covariances of their own, which the samples hardly determine. The largest candidate grows where samples are
 * many and held-out likelihood rises, and this is reported. */
static void test_shrinkage(void) {
  SCRATCH_ARENA(memory);
  enum { D = 12, N = 240, C = 4, FRESH = 4000 };
  Mixture truth, fit[2];
  double *x = golden_array((size_t)(D * N)), *y = golden_array((size_t)(D * FRESH)),
         *density = golden_array(FRESH), held_out[MIXTURE_MOST_HELD_OUT], shared, mean[3] = {0};
  CHECK_OK(mixture_create(&memory, D, C, &truth));
  for (int c = 0; c < C; c++) {
    truth.weight[c] = 1.0 / C, truth.mean[c * D + c] = 4;
    for (int i = 0; i < D; i++) truth.covariance[(c * D + i) * D + i] = 0.25;
  }
  CHECK_OK(mixture_prepare(&truth));
  RngLanes rng = golden_lanes(N, 33);
  mixture_sample(&truth, &rng, x);
  rng = golden_lanes(FRESH, 34);
  mixture_sample(&truth, &rng, y);
  CHECK_OK(
      mixture_try(&memory, D, N, x, C, 20, rng_key(1, RNG_MIXTURE_START), 0, &fit[0], held_out, &shared));
  CHECK_OK(mixture_fit(&memory, D, N, x, C, 20, rng_key(1, RNG_MIXTURE_START), 0, &fit[1]));
  CU_ASSERT(shared >= 256);
  const Mixture *of[3] = {&truth, &fit[0], &fit[1]};
  for (int k = 0; k < 3; k++) {
    mixture_log_density(of[k], FRESH, y, density);
    for (int n = 0; n < FRESH; n++) mean[k] += density[n] / FRESH;
  }
  CU_ASSERT(mean[1] >
            mean[0] - 0.5); /* 51 and 12 parameters cost half a nat each, divided by 240 samples: 0.13 */
  CU_ASSERT(mean[2] < mean[0] - 0.5); /* 351 parameters: 0.73, and more, as samples are few */
  free(x), free(y), free(density);
}

/* Checks growth: a row of 400 places, 9 samples about each, where 256 Gaussians are too few. 512 are tried,
 * for which there are two samples per parameter, but not 1 024; 600 samples are not enough to try more. */
static void test_growth(void) {
  SCRATCH_ARENA(memory);
  enum { N = 3600, PLACES = 400, FEW = 600 };
  double *x = golden_array(N), held_out[MIXTURE_MOST_HELD_OUT], shared;
  Mixture mixture;
  int most;
  RngLanes rng = golden_lanes(N, 35);
  rng_lanes_normal(&rng, 1, x);
  for (int k = 0; k < N; k++) x[k] = 0.01 * x[k] + k % PLACES;
  CHECK_OK(mixture_try_more(&memory, 1, N, x, 1, rng_key(1, RNG_MIXTURE_START), 0, &mixture, held_out,
                            &shared, &most));
  CU_ASSERT(mixture.components == 512 && most == 512);
  CHECK_OK(mixture_try_more(&memory, 1, FEW, x, 1, rng_key(1, RNG_MIXTURE_START), 0, &mixture, held_out,
                            &shared, &most));
  CU_ASSERT(mixture.components == 256 && most == 256);
  CU_ASSERT(mixture_most(1) == 1024 && mixture_most(6) == 1024);
  CU_ASSERT(mixture_most(100) == mixture_candidate(100, 0));
  free(x);
}

/* Checks that the highest mean wins, unless fewer components are below it by less than the noise of the
 * difference. */
static void test_choice(void) {
  const double one[4] = {-3, -3, -3, -3}, two[4] = {-1, -2, -1, -2}, three[4] = {-1.2, -1.7, -1.1, -1.9};
  const double *density[3] = {one, two, three};
  const int components[3] = {1, 2, 3};
  MixtureChoice choice;
  mixture_choice_make(4, 3, components, density, &choice);
  CHECK_NEAR(choice.held_out[2], -1.475, 1e-15);
  CHECK_NEAR(choice.error[1], sqrt((0.225 * 0.225 + 0.275 * 0.275 + 0.125 * 0.125 + 0.075 * 0.075) / 3 / 4),
             1e-12);
  CU_ASSERT_EQUAL(choice.chosen, 1);
  mixture_choice_make(4, 1, components, density, &choice);
  CU_ASSERT_EQUAL(choice.chosen, 0);
  mixture_choice_make(1, 3, components, density, &choice);
  CU_ASSERT_EQUAL(choice.components[choice.chosen], 1); /* a single sample decides nothing */
}

static void test_candidates(void) {
  for (int d = 1; d <= 2000; d *= 10) {
    int k = 0;
    for (; mixture_candidate(d, k) > 0; k++) {
      CU_ASSERT(k < MIXTURE_MOST_CANDIDATES);
      CU_ASSERT(k == 0 || mixture_candidate(d, k) < mixture_candidate(d, k - 1));
    }
    CU_ASSERT_EQUAL(mixture_candidate(d, k - 1), 1);
    CU_ASSERT_EQUAL(mixture_candidate(d, 0) == 256, d <= 10);
  }
}

static Samples samples_of(int d, int n) {
  return (Samples){.d = d, .n = n, .theta = golden_array((size_t)(d * n))};
}

static void fit_auto(Arena *memory, const Samples *samples, uint32_t replicate, Prior *out) {
  PriorFit fit = golden_fit();
  fit.components = 0, fit.starts = 4, fit.replicate = replicate;
  CHECK_OK(prior_fit(memory, &prior_mixture, &fit, samples, out));
}

/* Computes the mean log density of fresh samples under a prior and under the truth. */
static void compare(const Prior *prior, const Mixture *truth, double *reached, double *best) {
  enum { FRESH = 20000 };
  double *x = golden_array((size_t)truth->d * FRESH), *density = golden_array(FRESH);
  RngLanes rng = golden_lanes(FRESH, 31);
  *reached = *best = 0;
  mixture_sample(truth, &rng, x);
  prior->ops->log_density(prior, FRESH, x, density);
  for (int n = 0; n < FRESH; n++) *reached += density[n] / FRESH;
  mixture_log_density(truth, FRESH, x, density);
  for (int n = 0; n < FRESH; n++) *best += density[n] / FRESH;
  free(x), free(density);
}

/* Checks samples of one Gaussian, and of four that are six units apart: never fewer are chosen, and at most
 * two more (the rule of one standard error picks one of many candidates by chance now and then). On fresh
 * samples the fit is below the truth by the cost of its parameters, on average half a nat each divided by the
 * number of samples (Akaike 1973), and more where a component was fitted to noise; four times that is
 * allowed. */
static void test_known(void) {
  SCRATCH_ARENA(memory);
  enum { N = 500 };
  Mixture truth;
  double reached, best;
  for (int components = 1; components <= 4; components += 3) {
    CHECK_OK(mixture_create(&memory, 2, components, &truth));
    for (int c = 0; c < components; c++) {
      truth.weight[c] = 1.0 / components;
      truth.mean[2 * c] = 6 * (c % 2), truth.mean[2 * c + 1] = 6 * (c / 2);
      truth.covariance[4 * c] = truth.covariance[4 * c + 3] = 1;
    }
    CHECK_OK(mixture_prepare(&truth));
    Prior prior;
    Samples samples = samples_of(2, N);
    RngLanes rng = golden_lanes(N, 30);
    mixture_sample(&truth, &rng, samples.theta);
    fit_auto(&memory, &samples, 0, &prior);
    CU_ASSERT(prior.mixture->components >= components && prior.mixture->components <= components + 2);
    compare(&prior, &truth, &reached, &best);
    CU_ASSERT(reached > best - 12.0 * prior.mixture->components / N);
  }
}

/* Checks that the choice is written to the file and read back. */
static void test_file(void) {
  SCRATCH_ARENA(memory);
  static const char NAME[] = "test_mixture_choice.nc";
  enum { N = 400 };
  char written[2048] = "", read[2048] = "";
  Samples samples = samples_of(2, N);
  Prior prior, loaded;
  PriorFit fit = golden_fit();
  RngLanes rng = golden_lanes(N, 40);
  rng_lanes_normal(&rng, 2, samples.theta);
  fit_auto(&memory, &samples, 0, &prior);
  CHECK_OK(prior_save(&prior, NAME));
  CHECK_OK(prior_load(&memory, NAME, &fit, &loaded));
  FILE *out = fmemopen(written, sizeof written, "w");
  prior.ops->report(&prior, out), fclose(out);
  out = fmemopen(read, sizeof read, "w");
  loaded.ops->report(&loaded, out), fclose(out);
  CU_ASSERT_STRING_EQUAL(written, read);
  CU_ASSERT_PTR_NOT_NULL(strstr(written, "chosen"));
  remove(NAME);
}

/* Checks one sample, copies of one or of few, a constant, a line, an outlier, heavy tails: each gives a prior
 * of finite numbers, without an error. */
static void test_awkward(void) {
  SCRATCH_ARENA(memory);
  enum { N = 200 };
  for (int kind = 0; kind < 7; kind++) {
    const int n = kind == 0 ? 1 : N;
    Samples samples = samples_of(2, n);
    Prior prior;
    double *x = samples.theta, *density = golden_array(N), chi[N];
    RngLanes rng = golden_lanes((int)n, 41);
    rng_lanes_normal(&rng, 2, x);
    rng_lanes_normal(&rng, 1, chi);
    for (int k = 0; k < n && kind > 0; k++) {
      if (kind == 1) x[k] = 7, x[n + k] = -7;
      if (kind == 2) x[k] = k % 3, x[n + k] = k % 3 == 1;
      if (kind == 3) x[n + k] = 1e6;
      if (kind == 4) x[n + k] = 2 * x[k];
      if (kind == 5 && k == 0) x[k] = 1e7;
      if (kind == 6) x[k] /= fabs(chi[k]), x[n + k] /= fabs(chi[k]); /* Cauchy */
    }
    fit_auto(&memory, &samples, 0, &prior);
    prior.ops->log_density(&prior, n, x, density);
    for (int k = 0; k < n; k++) CU_ASSERT(isfinite(density[k]));
    free(density);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"expected features", test_expect},
                         {"expected features in many dimensions", test_expect_wide},
                         {"held-out likelihood of one Gaussian", test_held_out},
                         {"shrinkage of covariances", test_shrinkage},
                         {"more than the largest candidate", test_growth},
                         {"choice", test_choice},
                         {"candidates", test_candidates},
                         {"a known mixture", test_known},
                         {"the choice in a file", test_file},
                         {"awkward samples", test_awkward},
                         CU_TEST_INFO_NULL};
  return harness_run("mixture_choice", tests);
}
