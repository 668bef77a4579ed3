/* Stochastic localisation from the evidence, with the closed-form denoiser of mixtures. */
#include "core/arena.h"
#include "plane_fixture.h"

#include "core/linalg/linalg.h"
#include "core/reservoir.h"
#include "metric/emd.h"
#include "metric/wasserstein.h"
#include "model/denoiser/denoiser_localisation.h"

enum { MOST = 5 * 5 * DENOISER_LANES };

/* Computes the moments of p(z | b, M) of n lanes, decomposing M[d, d, n] here. */
static void moments_at(const Denoiser *denoiser, int lanes, const double *precision, double *vector,
                       double *mean, double *covariance) {
  SCRATCH_ARENA(memory);
  static double basis[MOST], eigenvalue[MOST];
  int lane_fallbacks[DENOISER_LANES] = {0};
  const LaneEvidence at = {lanes, basis, eigenvalue, vector};
  void *scratch;
  CHECK_OK(denoiser->scratch(denoiser, &memory, &scratch));
  linalg_factor_eigen(denoiser->d, lanes, precision, basis, eigenvalue);
  denoiser->moments(denoiser, &at, mean, covariance, lane_fallbacks, scratch);
  for (int n = 0; n < lanes; n++) CU_ASSERT_EQUAL(lane_fallbacks[n], 0);
}

/* Draws precision[d, d, n], the product of a random matrix and its transpose, and vector[d, n]. */
static void random_evidence(int d, int lanes, double size, double *precision, double *vector) {
  Rng rng = fixture_rng(3, 4000);
  for (int n = 0; n < lanes; n++) {
    double root[25];
    rng_normal(&rng, d * d, root);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        double sum = 0;
        for (int k = 0; k < d; k++) sum += size * root[i * d + k] * root[j * d + k];
        precision[(i * d + j) * lanes + n] = sum;
      }
  }
  rng_normal(&rng, d * lanes, vector);
}

/* Checks against the posterior written out in the coordinates of theta, to rounding. */
static void test_closed_form(void) {
  SCRATCH_ARENA(memory);
  enum { N = 20 };
  static double precision[MOST], vector[MOST], mean[MOST], covariance[MOST];
  Mixture mixture = fixture_mixture(&memory, 2, 3, 2);
  Denoiser denoiser;
  CHECK_OK(denoiser_mixture_create(&memory, &mixture, true, &denoiser));
  random_evidence(2, N, 5, precision, vector);
  moments_at(&denoiser, N, precision, vector, mean, covariance);
  for (int n = 0; n < N; n++) {
    double lambda[4], b[2];
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++)
        lambda[2 * i + j] = precision[(2 * i + j) * N + n] / denoiser.scale[i] / denoiser.scale[j];
      b[i] = vector[i * N + n] / denoiser.scale[i] + lambda[2 * i] * denoiser.shift[0] +
             lambda[2 * i + 1] * denoiser.shift[1];
    }
    PlanePosterior exact = plane_posterior(&mixture, lambda, b);
    for (int i = 0; i < 2; i++) {
      CHECK_NEAR(denoiser.shift[i] + denoiser.scale[i] * mean[i * N + n], exact.total_mean[i], 1e-11);
      for (int j = 0; j < 2; j++)
        CHECK_NEAR(denoiser.scale[i] * denoiser.scale[j] * covariance[(2 * i + j) * N + n],
                   exact.total_covariance[2 * i + j], 1e-11);
    }
  }
}

/* Checks C = dD / db by central differences: their error is about 1e-8. */
static void test_covariance_is_slope(void) {
  SCRATCH_ARENA(memory);
  enum { N = 30 };
  static double precision[MOST], vector[MOST], mean[MOST], covariance[MOST], up[MOST], down[MOST],
      unused[MOST];
  const double step = 1e-4;
  for (int d = 1; d <= 5; d += 2) {
    Mixture mixture = fixture_mixture(&memory, d, 4, 2);
    Denoiser denoiser;
    CHECK_OK(denoiser_mixture_create(&memory, &mixture, true, &denoiser));
    random_evidence(d, N, 2, precision, vector);
    moments_at(&denoiser, N, precision, vector, mean, covariance);
    for (int j = 0; j < d; j++) {
      for (int n = 0; n < N; n++) vector[j * N + n] += step;
      moments_at(&denoiser, N, precision, vector, up, unused);
      for (int n = 0; n < N; n++) vector[j * N + n] -= 2 * step;
      moments_at(&denoiser, N, precision, vector, down, unused);
      for (int n = 0; n < N; n++) vector[j * N + n] += step;
      for (int i = 0; i < d; i++)
        for (int n = 0; n < N; n++)
          CHECK_NEAR(covariance[(i * d + j) * N + n], (up[i * N + n] - down[i * N + n]) / (2 * step), 1e-6);
    }
  }
}

/* Checks that the draws are exact in law for a Gaussian prior, whatever the number of steps. */
static void test_gaussian_prior(void) {
  const char *const steps[] = {"steps=1", "steps=3", "steps=12"};
  const int observations[] = {0, 1, 6};
  for (int i = 0; i < 3; i++)
    fixture_check_gaussian_prior(sampler_find("localised"), 8000, 1, &steps[i], 3, observations);
}

/* ---- mixtures */

enum { HISTORIES = 6, DRAWS = 500 };

/* Makes a history of n observations for each of HISTORIES runs: arms uniform on the sphere, theta* from the
 * prior. */
static History sphere_history(Arena *memory, const Mixture *mixture, int n, const Likelihood *likelihood) {
  const int d = mixture->d;
  static double theta[8 * HISTORIES], phi[8 * HISTORIES];
  double y[HISTORIES];
  History history;
  RngLanes prior = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = HISTORIES, .round = 5000};
  Rng rng = fixture_rng(9, 5001);
  mixture_sample(mixture, &prior, theta);
  CHECK_OK(history_create(memory, d, HISTORIES, likelihood, &history));
  CHECK_OK(history_reserve(&history, n));
  for (int l = 0; l < n; l++) {
    rng_normal(&rng, d * HISTORIES, phi);
    rng_normal(&rng, HISTORIES, y);
    for (int run = 0; run < HISTORIES; run++) {
      double length = 0, sum = 0, uniform;
      for (int i = 0; i < d; i++) length += phi[i * HISTORIES + run] * phi[i * HISTORIES + run];
      for (int i = 0; i < d; i++)
        sum += (phi[i * HISTORIES + run] /= sqrt(length)) * theta[i * HISTORIES + run];
      rng_uniform(&rng, 1, &uniform);
      y[run] = likelihood_is_conjugate(likelihood) ? sum + likelihood->noise * y[run]
                                                   : uniform < 1 / (1 + exp(-sum));
    }
    history_record(&history, NULL, phi, y);
  }
  return history;
}

/* Copies the columns of one run: out[d, DRAWS]. */
static void columns(int d, int run, const double *theta, double *out) {
  for (int i = 0; i < d; i++)
    memcpy(out + i * DRAWS, theta + (i * HISTORIES + run) * DRAWS, DRAWS * sizeof *out);
}

/* Returns the mean distance of the localised draws to draws of `exact`, divided by that between two sets of
 * the latter. */
static double distance_over_floor(const Mixture *mixture, int n, const Likelihood *likelihood,
                                  const char *steps) {
  SCRATCH_ARENA(memory);
  const int d = mixture->d;
  const SamplerOps *exact = sampler_find("exact");
  static double x[8 * DRAWS], y[8 * DRAWS];
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, mixture, &fit);
  History history = sphere_history(&memory, mixture, n, likelihood);
  double *sets[3] = {fixture_draw(exact, &prior, &history, 0, DRAWS, 0, NULL, NULL),
                     fixture_draw(exact, &prior, &history, 100, DRAWS, 0, NULL, NULL),
                     fixture_draw(sampler_find("localised"), &prior, &history, 200, DRAWS, 1, &steps, NULL)};
  double sum[3] = {0};
  Emd *emd;
  Wasserstein *wasserstein;
  CHECK_OK(emd_create(&memory, DRAWS, &emd));
  CHECK_OK(wasserstein_create(&memory, 8, DRAWS, &wasserstein));
  for (int run = 0; run < HISTORIES; run++)
    for (int other = 1; other < 3; other++) {
      double distance;
      columns(d, run, sets[0], x);
      columns(d, run, sets[other], y);
      if (d == 2)
        CHECK_OK(emd_distance(emd, &(Clouds){d, DRAWS, DRAWS, x, y}, &distance));
      else
        distance =
            wasserstein_sliced(wasserstein, &(Clouds){d, DRAWS, DRAWS, x, y}, 100, fixture_rng(0, 6000));
      sum[other] += distance;
    }
  for (int k = 0; k < 3; k++) free(sets[k]);
  return sum[2] / sum[1];
}

/* Returns six Gaussians of variance 0.1 on a sphere of radius 2. */
static Mixture sphere(Arena *memory, int d) {
  Mixture mixture;
  Rng rng = fixture_rng(4, 7000);
  ASSERT(mixture_create(memory, d, 6, &mixture) == STATUS_OK);
  for (int c = 0; c < 6; c++) {
    double *mean = mixture.mean + c * d, length = 0;
    mixture.weight[c] = 1.0 / 6;
    rng_normal(&rng, d, mean);
    for (int i = 0; i < d; i++) length += mean[i] * mean[i];
    for (int i = 0; i < d; i++) {
      mean[i] *= 2 / sqrt(length);
      mixture.covariance[(c * d + i) * d + i] = 0.1;
    }
  }
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  return mixture;
}

/* Checks that the distance is at the floor: ratios of the means over six histories have a standard deviation
 * of about 0.1 (measured); a sampler that misses a mode or halves a variance is at 1.5 and more. */
static void test_mixture_posterior(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  const int plane[] = {1, 10, 50, 200}, many[] = {5, 50, 500};
  Mixture cross = fixture_cross(&memory), ball = sphere(&memory, 8);
  for (int i = 0; i < 4; i++)
    CHECK_NEAR(distance_over_floor(&cross, plane[i], &likelihood, "steps=12"), 1, 0.25);
  for (int i = 0; i < 3; i++)
    CHECK_NEAR(distance_over_floor(&ball, many[i], &likelihood, "steps=12"), 1, 0.25);
}

/* Checks the linearised likelihood, against rejection sampling. */
static void test_logistic_rewards(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  const int observations[] = {10, 50};
  Mixture cross = fixture_cross(&memory);
  for (int i = 0; i < 2; i++)
    CHECK_NEAR(distance_over_floor(&cross, observations[i], &likelihood, "steps=12"), 1, 0.25);
}

/* Checks four modes far apart, where the unweighted walk is at 1.19 with logistic rewards and 1.7 with
 * Poisson ones: weights bring it to the floor. */
static void test_weighted_draws(void) {
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  const int observations[] = {1, 10, 50};
  SCRATCH_ARENA(memory);
  Mixture four = sphere(&memory, 2);
  for (int i = 0; i < 3; i++)
    CHECK_NEAR(distance_over_floor(&four, observations[i], &likelihood, "particles=16"), 1, 0.25);
}

/* Checks candidates 0, 1, 2 with weights 1, 0 and 3 in lane 0 and none, 1 and 1 in lane 1: the share of each
 * matches its weight, in 40 000 trials within 5 standard errors (0.0125). */
static void test_reservoir(void) {
  enum { TRIALS = 40000 };
  const double weights[2][3] = {{1, 0, 3}, {0, 2, 2}}, ess[2] = {1.6, 2},
               log_weights[2][3] = {{-800, -INFINITY, log(3) - 800}, {NAN, 800, 800}};
  double kept[2], share[2][3] = {{0}}, error;
  Reservoir reservoir;
  Rng rng = fixture_rng(0, 8000);
  SCRATCH_ARENA(memory);
  CHECK_OK(reservoir_create(&memory, 2, &reservoir));
  for (int trial = 0; trial < TRIALS; trial++) {
    reservoir_clear(&reservoir, 2);
    for (int c = 0; c < 3; c++) {
      const double candidate[2] = {c, c}, log_weight[2] = {log_weights[0][c], log_weights[1][c]};
      double uniform[2];
      rng_uniform(&rng, 2, uniform);
      reservoir_offer(&reservoir, 1, 2, log_weight, uniform, candidate, kept);
    }
    for (int n = 0; n < 2; n++) share[n][(int)kept[n]] += 1.0 / TRIALS;
  }
  for (int n = 0; n < 2; n++) {
    CHECK_NEAR(reservoir_ess(&reservoir, n), ess[n], 1e-12);
    for (int c = 0; c < 3; c++) CHECK_NEAR(share[n][c], weights[n][c] / 4, weights[n][c] > 0 ? 0.0125 : 0);
  }
  CHECK_NEAR(reservoir_log_mean(&reservoir, 0, 3, &error), log(4.0 / 3) - 800, 1e-12);
  CHECK_NEAR(error, sqrt(7.0 / 16), 1e-12); /* deviations -1/3, -4/3, 5/3: sd sqrt(7/3), over 4/3 sqrt(3) */
}

/* ---- corners of a cube */

/* Checks D and C against the sum over all corners, written out. */
static void test_corners(void) {
  SCRATCH_ARENA(memory);
  enum { D = 5, N = 10 };
  static double precision[MOST], vector[MOST], mean[MOST], covariance[MOST];
  Denoiser denoiser;
  CHECK_OK(denoiser_hypercube_create(&memory, D, &denoiser));
  random_evidence(D, N, 0.2, precision, vector);
  moments_at(&denoiser, N, precision, vector, mean, covariance);
  for (int n = 0; n < N; n++) {
    double total = 0, first[D] = {0}, second[D * D] = {0};
    for (int c = 0; c < 1 << D; c++) {
      double x[D], energy = 0;
      for (int i = 0; i < D; i++) x[i] = c >> i & 1 ? 1 : -1;
      for (int i = 0; i < D; i++) {
        energy += vector[i * N + n] * x[i];
        for (int j = 0; j < D; j++) energy -= 0.5 * x[i] * precision[(i * D + j) * N + n] * x[j];
      }
      total += exp(energy);
      for (int i = 0; i < D; i++) {
        first[i] += exp(energy) * x[i];
        for (int j = 0; j < D; j++) second[i * D + j] += exp(energy) * x[i] * x[j];
      }
    }
    for (int i = 0; i < D; i++) {
      CHECK_NEAR(mean[i * N + n], first[i] / total, 1e-12);
      for (int j = 0; j < D; j++)
        CHECK_NEAR(covariance[(i * D + j) * N + n],
                   second[i * D + j] / total - first[i] * first[j] / total / total, 1e-12);
    }
  }
}

/* Checks that draws end on corners, each with its frequency in the exact posterior: frequencies of 40 000
 * draws within 0.02, five standard errors plus the error of 20 steps. */
static void test_corner_posterior(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, MANY = 40000 };
  const Likelihood likelihood = fixture_likelihood(1.5);
  const char *const steps = "steps=20";
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_ising(&memory, D, &fit, &prior));
  History history = fixture_history(&memory, D, 1, 0, 4, &likelihood);
  double *draws[2] = {fixture_draw(sampler_find("exact"), &prior, &history, 0, MANY, 0, NULL, NULL),
                      fixture_draw(sampler_find("localised"), &prior, &history, 1, MANY, 1, &steps, NULL)};
  double share[2][1 << D] = {{0}}, off = 0;
  for (int set = 0; set < 2; set++)
    for (int n = 0; n < MANY; n++) {
      int corner = 0;
      for (int i = 0; i < D; i++) {
        off = fmax(off, fabs(fabs(draws[set][i * MANY + n]) - 1));
        corner |= (draws[set][i * MANY + n] > 0) << i;
      }
      share[set][corner] += 1.0 / MANY;
    }
  CHECK_NEAR(off, 0, 1e-6);
  for (int c = 0; c < 1 << D; c++) CHECK_NEAR(share[1][c], share[0][c], 0.02);
  free(draws[0]), free(draws[1]);
}

/* ---- refusals and fallbacks */

static void test_refusals(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(5, 0.9, LAST_STAGE_REPAIRED);
  Prior prior, ising;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  CHECK_OK(prior_ising(&memory, 21, &fit, &ising));
  fixture_refused("localised", &prior, &likelihood, 1, 1, "first_precision=1000",
                  "first_precision 1000 is above last_precision 300");
  fixture_refused("localised", &prior, &likelihood, 1, 1, "covariance=mixture",
                  "covariance: mixture needs a learned denoiser; that of prior gaussian is exact");
  fixture_refused("localised", &ising, &likelihood, 1, 1, "steps=2",
                  "sampler localised needs a prior with a denoiser for any precision");
}

/* Returns the moments of a denoiser that diverges: its mean is clipped, which is counted at every
 * evaluation. */
static void far_moments(const Denoiser *self, const LaneEvidence *at, double *mean, double *covariance,
                        int *lane_fallbacks, void *scratch) {
  (void)self, (void)lane_fallbacks, (void)scratch;
  for (int n = 0; n < at->lanes; n++) mean[n] = n == 0 ? NAN : n == 1 ? -1e6 : 1, covariance[n] = -1;
}

static Status far_scratch(const Denoiser *self, Arena *memory, void **out) {
  (void)self, (void)memory;
  *out = NULL;
  return STATUS_OK;
}

static void test_guard(void) {
  SCRATCH_ARENA(memory);
  double zero = 0, one = 1, basis[3] = {1, 1, 1}, eigenvalue[3] = {0}, vector[3] = {0}, z[3];
  const Denoiser far = {
      .d = 1, .shift = &zero, .scale = &one, .scratch = far_scratch, .moments = far_moments};
  const LaneEvidence at = {3, basis, eigenvalue, vector};
  int lane_fallbacks[3] = {0};
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = 3};
  Localisation walk;
  CHECK_OK(denoiser_localisation_create(&memory, &far, false, 4, 0.1, 10, &walk));
  CHECK_NEAR(walk.precision[0], 0, 0);
  CHECK_NEAR(walk.precision[1], 0.1, 1e-16);
  CHECK_NEAR(walk.precision[3], pow(10, 1.0 / 3), 1e-14);
  CHECK_NEAR(walk.precision[4], 10, 0);
  denoiser_localisation_draw(&walk, &at, &rng, z, lane_fallbacks);
  CU_ASSERT(z[0] == 0 && z[1] == -100 && z[2] == 1);
  CU_ASSERT(lane_fallbacks[0] == 5 && lane_fallbacks[1] == 5 && lane_fallbacks[2] == 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"closed form of a mixture", test_closed_form},
                         {"covariance is the slope of the mean", test_covariance_is_slope},
                         {"exact for a Gaussian prior", test_gaussian_prior},
                         {"posterior of mixtures", test_mixture_posterior},
                         {"logistic rewards", test_logistic_rewards},
                         {"weighted draws", test_weighted_draws},
                         {"one of several weighted candidates", test_reservoir},
                         {"corners of a cube", test_corners},
                         {"posterior on corners", test_corner_posterior},
                         {"refusals", test_refusals},
                         {"guard", test_guard},
                         CU_TEST_INFO_NULL};
  return harness_run("localised", tests);
}
