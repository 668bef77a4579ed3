/* Expectation maximisation over samples, and the number of components by held-out likelihood. */
#include "mixture_golden.h"

#include "core/linalg.h"
#include "model/mixture/em_samples.h"
#include "model/mixture/mixture_choice.h"
#include "model/mixture/mixture_fit.h"
#include "model/prior/families.h"

/* The E-step against sums over components one by one; the samples begin in the middle. Products of features
 * are multiplied out, so that 1e-11 is lost. */
static void test_expect(void) {
  SCRATCH_ARENA(memory);
  enum { N = 700, FIRST = 300 };
  StoreFile *file = golden_open();
  for (int d = 1; d <= 5; d += d == 1 ? 1 : 3) {
    Mixture mixture = golden_mixture(&memory, file, d);
    const int C = mixture.components, F = (int)em_features(d);
    double *z = golden_array((size_t)d * N), *sums = golden_array((size_t)(C * F)),
           *expected = golden_array((size_t)(C * F)), density[N], reached = 0, sum = 0;
    RngLanes rng = golden_lanes(N, 20);
    mixture_sample(&mixture, &rng, z);
    EmSamples em;
    CHECK_OK(em_samples_create(&memory, d, N, z, FIRST, N, C, &em));
    reached = em.data.expect(&em.data, N, &mixture, sums);
    mixture_log_density(&mixture, N, z, density);
    for (int n = 0; n < N; n++) {
      sum += density[n];
      for (int c = 0; c < C; c++) {
        double l = mixture.log_norm[c], *row = expected + c * F;
        for (int i = 0; i < d; i++)
          for (int j = 0; j < d; j++)
            l -= 0.5 * mixture.precision[(c * d + i) * d + j] * (z[i * N + n] - mixture.mean[c * d + i]) *
                 (z[j * N + n] - mixture.mean[c * d + j]);
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
  store_abandon(file);
}

/* One Gaussian of few samples, whose folds are its samples: every one of them under mean and covariance of
 * the others, with one sample more of all samples' variance. */
static void test_held_out(void) {
  SCRATCH_ARENA(memory);
  enum { N = 8 };
  const double x[N] = {1, 4, -2, 0.5, 7, 3, 3.5, -1};
  double mean = 0, variance = 0, expected[N], held_out[N];
  Mixture mixture;
  for (int n = 0; n < N; n++) mean += x[n] / N;
  for (int n = 0; n < N; n++) variance += (x[n] - mean) * (x[n] - mean) / N;
  for (int n = 0; n < N; n++) {
    double centre = 0, spread = 0;
    for (int k = 0; k < N; k++) centre += k == n ? 0 : x[k] / (N - 1);
    for (int k = 0; k < N; k++) spread += k == n ? 0 : (x[k] - centre) * (x[k] - centre);
    spread = (spread + variance) / N + 1e-6 * variance;
    expected[n] = -0.5 * (log(2 * M_PI * spread) + (x[n] - centre) * (x[n] - centre) / spread);
  }
  CHECK_OK(mixture_try(&memory, 1, N, x, 1, 20, rng_key(1, RNG_MIXTURE_START), 0, &mixture, held_out));
  CU_ASSERT_EQUAL(mixture_held_out(N), N);
  for (int n = 0; n < N; n++) { /* in an order that nobody knows */
    double nearest = INFINITY;
    for (int k = 0; k < N; k++) nearest = fmin(nearest, fabs(held_out[k] - expected[n]));
    CHECK_NEAR(nearest, 0, 1e-12);
  }
  CHECK_NEAR(mixture.mean[0], mean, 1e-12);
  CHECK_NEAR(mixture.covariance[0], variance * (1 + 1e-6), 1e-12);
  CU_ASSERT(mixture_candidate_fits(1, N, 1) && !mixture_candidate_fits(1, N, 2)); /* two take 12 samples */
}

/* The highest mean wins, unless fewer components are below it by less than the noise of the difference. */
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
  CU_ASSERT_EQUAL(choice.components[choice.chosen], 1); /* of one sample nothing can be said */
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

/* Mean log density of fresh samples under a prior and under the truth. */
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

/* Samples of one Gaussian, and of four six units apart: never fewer are chosen, and at most two more (the
 * rule of one standard error takes one of many candidates by chance now and then). On fresh samples the fit
 * is below the truth by what its parameters cost, on average half a nat each over the number of samples
 * (Akaike 1973), and more where a component was fitted to noise; four times that is allowed. */
static void test_known(void) {
  SCRATCH_ARENA(memory);
  enum { N = 1000 };
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
    for (uint32_t replicate = 0; replicate < 2; replicate++) {
      Prior prior;
      Samples samples = samples_of(2, N);
      RngLanes rng = golden_lanes(N, 30 + replicate);
      mixture_sample(&truth, &rng, samples.theta);
      fit_auto(&memory, &samples, replicate, &prior);
      CU_ASSERT(prior.mixture->components >= components && prior.mixture->components <= components + 2);
      compare(&prior, &truth, &reached, &best);
      CU_ASSERT(reached > best - 12.0 * prior.mixture->components / N);
    }
  }
}

/* The choice is in the file and comes back. */
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

/* One sample, copies of one or of few, a constant, a line, an outlier, heavy tails: a prior of finite
 * numbers, made without a sentence. */
static void test_awkward(void) {
  SCRATCH_ARENA(memory);
  enum { N = 300 };
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
                         {"held-out likelihood of one Gaussian", test_held_out},
                         {"choice", test_choice},
                         {"candidates", test_candidates},
                         {"a known mixture", test_known},
                         {"the choice in a file", test_file},
                         {"awkward samples", test_awkward},
                         CU_TEST_INFO_NULL};
  return harness_run("mixture_choice", tests);
}
