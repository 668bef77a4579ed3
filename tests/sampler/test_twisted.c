/* Twisted sequential Monte Carlo: exact for a Gaussian prior with its exact chain; for a mixture its error
 * falls as particles are added; for rewards that are not Gaussian the weights correct the Laplace
 * approximation, which quadrature shows. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "glm_fixture.h"
#include "model/denoiser/denoiser_isotropic.h"

static const SamplerOps *twisted(void) { return sampler_find("twisted"); }

/* ---- Gaussian prior */

/* Checks a Gaussian prior, for which all weights are equal. 2 000 draws determine a mean to 0.11 of a
 * standard deviation, a variance to 16%; one particle is the sampler joint, for which there is a finer
 * test. */
static void test_exact_for_a_gaussian_prior(void) {
  const char *particles = "particles=5";
  const int observations[] = {0, 6};
  fixture_check_gaussian_prior(twisted(), 2000, 1, &particles, 2, observations);
}

/* Checks that with a Gaussian prior all particles weigh the same, and with a mixture they do not. */
static void test_effective_size(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 70, RUNS = 2, LANES = RUNS * DRAWS, P = 7 };
  const char *seven = "particles=7";
  const Likelihood likelihood = fixture_likelihood(0.5);
  PriorFit fit = fixture_fit(12, 0.85, LAST_STAGE_REPAIRED);
  History history = fixture_history(&memory, 3, RUNS, 0, 6, &likelihood);
  for (int components = 1; components <= 3; components += 2) {
    Mixture mixture = fixture_mixture(&memory, 3, components, 1.5);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    Config *options;
    Sampler sampler;
    double theta[3 * LANES];
    int64_t fallbacks[RUNS] = {0};
    RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = LANES};
    CHECK_OK(config_options(&memory, "test", sampler_keys(twisted()), 1, &seven, &options));
    const SamplerSetup setup = {
        .prior = &prior, .likelihood = &likelihood, .runs = RUNS, .draws = DRAWS, .options = options};
    CHECK_OK(sampler_create(&memory, twisted(), &setup, &sampler));
    sampler_sample(&sampler, &history, rng, DRAWS, theta, fallbacks);
    for (int run = 0; run < RUNS; run++) {
      CU_ASSERT(sampler.notes[run].ess >= 1);
      if (components == 1)
        CHECK_NEAR(sampler.notes[run].ess, P, 1e-6);
      else
        CU_ASSERT(sampler.notes[run].ess < P - 0.01);
    }
  }
}

/* ---- mixture */

/* Computes the probability of the second component given theta, averaged over draws [first, first + draws):
 * its mean under the exact posterior is the posterior weight. */
static double second_weight(const Mixture *mixture, const double *theta, int total, int first, int draws) {
  double sum = 0;
  for (int m = first; m < first + draws; m++) {
    double l[2];
    for (int c = 0; c < 2; c++) {
      const double *p = mixture_precision(mixture, c), x = theta[m], y = theta[total + m];
      l[c] = mixture->log_norm[c] - 0.5 * (p[0] * x * x + 2 * p[1] * x * y + p[3] * y * y);
    }
    sum += 1 / (1 + exp(l[0] - l[1]));
  }
  return sum / draws;
}

/* Errors over 8 histories: root mean square of the error of the weight, and of mean and covariance in units
 * of the posterior's deviations. */
typedef struct {
  double weight, mean, covariance;
} Errors;

static Errors cross_errors(const char *particles, const Mixture *mixture, const Prior *prior,
                           const History *history, int n, double noise) {
  enum { DRAWS = 1000 };
  const int runs = history->runs;
  Errors out = {0};
  double *theta = fixture_draw(twisted(), prior, history, 0, DRAWS, 1, &particles, NULL);
  for (int run = 0; run < runs; run++) {
    FixtureData data = fixture_data(2, n, noise, (uint32_t)run);
    FixturePosterior exact = fixture_posterior(mixture, &data);
    double mean[2] = {0}, covariance[4] = {0};
    for (int m = 0; m < DRAWS; m++)
      for (int i = 0; i < 2; i++) mean[i] += theta[i * runs * DRAWS + run * DRAWS + m] / DRAWS;
    for (int m = 0; m < DRAWS; m++)
      for (int i = 0; i < 4; i++)
        covariance[i] += (theta[i / 2 * runs * DRAWS + run * DRAWS + m] - mean[i / 2]) *
                         (theta[i % 2 * runs * DRAWS + run * DRAWS + m] - mean[i % 2]) / DRAWS;
    const double *s = exact.total_covariance;
    out.weight += pow(second_weight(mixture, theta, runs * DRAWS, run * DRAWS, DRAWS) - exact.weight[1], 2);
    for (int i = 0; i < 2; i++) out.mean += pow(mean[i] - exact.total_mean[i], 2) / s[3 * i] / 2;
    for (int i = 0; i < 4; i++)
      out.covariance += pow(covariance[i] - s[i], 2) / (s[i / 2 * 3] * s[i % 2 * 3]) / 4;
  }
  free(theta);
  return (Errors){sqrt(out.weight / runs), sqrt(out.mean / runs), sqrt(out.covariance / runs)};
}

/* Checks that the bias falls with the number of particles. Eight observations, eight histories, 50 stages, 1
 * 000 draws. Sampling error alone is 0.032 for a mean, about 0.04 for a covariance and 0.01 for the weight;
 * the Gaussian stages add about 0.03 to the weight. Measured with 1, 4, 16, 64 particles: weight 0.098,
 * 0.039, 0.033, 0.038; mean 0.221, 0.054, 0.043, 0.039; covariance 0.314, 0.063, 0.044, 0.046. One particle
 * is biased by far more than 4 and 16 may be; 64 are not run, as they take three times as long as all others
 * together and find the same. */
static void test_bias_falls_with_particles(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 8 };
  const char *sets[] = {"particles=1", "particles=4", "particles=16"};
  const Errors least[] = {{0.07, 0.15, 0.2}, {0, 0, 0}, {0, 0, 0}};
  const Errors most[] = {{0.2, 0.4, 0.5}, {0.05, 0.08, 0.09}, {0.045, 0.06, 0.065}};
  const Likelihood likelihood = fixture_likelihood(1.5);
  PriorFit fit = fixture_fit(50, 0.94, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_cross(&memory);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, 2, RUNS, 0, 8, &likelihood);
  for (int k = 0; k < 3; k++) {
    Errors errors = cross_errors(sets[k], &mixture, &prior, &history, 8, likelihood.noise);
    CU_ASSERT(errors.weight > least[k].weight && errors.weight < most[k].weight);
    CU_ASSERT(errors.mean > least[k].mean && errors.mean < most[k].mean);
    CU_ASSERT(errors.covariance > least[k].covariance && errors.covariance < most[k].covariance);
  }
}

/* Checks that one cloud for all draws is as close as 16 particles for each draw: by the bounds above. */
static void test_cloud_of_a_mixture(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 8 };
  const Likelihood likelihood = fixture_likelihood(1.5);
  PriorFit fit = fixture_fit(50, 0.94, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_cross(&memory);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, 2, RUNS, 0, 8, &likelihood);
  const Errors errors = cross_errors("cloud=true", &mixture, &prior, &history, 8, likelihood.noise);
  CU_ASSERT(errors.weight < 0.045 && errors.mean < 0.06 && errors.covariance < 0.065);
}

/* Records rows[n, d] with their rewards. */
static History record(Arena *memory, int d, int n, const double *rows, const double *y,
                      const Likelihood *likelihood) {
  History history;
  CHECK_OK(history_create(memory, d, 1, likelihood, &history));
  CHECK_OK(history_reserve(&history, n));
  for (int l = 0; l < n; l++) history_record(&history, NULL, rows + l * d, y + l);
  return history;
}

/* Returns a mixture of two Gaussians in d dimensions, whose deviations fall from 1 to 0.8 in axes that differ
 * between the two. */
static Mixture uneven_mixture(Arena *memory, int d) {
  Mixture mixture;
  CHECK_OK(mixture_create(memory, d, 2, &mixture));
  for (int c = 0; c < 2; c++) {
    double *covariance = mixture.covariance + c * d * d;
    mixture.weight[c] = 0.5;
    for (int i = 0; i < d; i++) {
      const double deviation = 1 - 0.2 * (c ? i : d - 1 - i) / (d - 1);
      mixture.mean[c * d + i] = c ? 0.3 : -0.3;
      covariance[i * d + i] = deviation * deviation;
    }
    for (int i = 0; i + 1 < d; i += 2) { /* turns pairs of axes by 45 degrees */
      const double a = covariance[i * d + i], b = covariance[(i + 1) * d + i + 1];
      covariance[i * d + i] = covariance[(i + 1) * d + i + 1] = 0.5 * (a + b);
      covariance[i * d + i + 1] = covariance[(i + 1) * d + i] = 0.5 * (a - b);
    }
  }
  CHECK_OK(mixture_prepare(&mixture));
  return mixture;
}

/* Checks a cloud that does not know its whole Jacobian at the end: 60 dimensions, of which three are
 * observed. Mean and standard deviation of each coordinate are those of the closed form, in units of the
 * latter: five standard errors of 2 000 draws are 0.11 and 0.08, of a resampled cloud up to half more. */
static void test_cloud_of_many_dimensions(void) {
  SCRATCH_ARENA(memory);
  enum { D = 60, ROWS = 3, DRAWS = 2000 };
  const char *always = "cloud=true";
  const Likelihood likelihood = fixture_likelihood(0.5);
  const PriorFit fit = {.schedule = {.stages = 40, .log_snr = true, .first_snr = 1, .last_snr = 1e-3}};
  const Mixture mixture = uneven_mixture(&memory, D);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  double rows[ROWS * D], y[ROWS], mean[D], covariance[D * D], expected_mean[D], expected[D * D];
  int64_t fallbacks[1] = {0}, ignored[1] = {0};
  Rng rng = fixture_rng(0, 60);
  rng_normal(&rng, ROWS * D, rows);
  rng_normal(&rng, ROWS, y);
  const History history = record(&memory, D, ROWS, rows, y, &likelihood);
  fixture_moments(sampler_find("mixts"), &prior, &history, 2, 0, NULL, expected_mean, expected, ignored);
  double *theta = fixture_draw(twisted(), &prior, &history, 0, DRAWS, 1, &always, fallbacks);
  linalg_moments(D, DRAWS, theta, mean, covariance);
  CU_ASSERT_EQUAL(fallbacks[0], 0);
  for (int i = 0; i < D; i++) {
    const double deviation = sqrt(expected[i * D + i]);
    CHECK_NEAR((mean[i] - expected_mean[i]) / deviation, 0, 0.16);
    CHECK_NEAR(sqrt(covariance[i * D + i]) / deviation, 1, 0.12);
  }
  free(theta);
}

/* Checks that a sampler of clouds alone has no matrices, which would be refused in 3 000 dimensions. */
static void test_cloud_without_matrices(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3000 };
  const Likelihood likelihood = fixture_likelihood(1);
  const PriorFit fit = fixture_fit(150, 0.9, LAST_STAGE_REPAIRED);
  Isotropic mixture;
  Prior prior;
  Config *options;
  Sampler sampler;
  CHECK_OK(denoiser_isotropic_create(&memory, D, 1, &mixture));
  mixture.weight[0] = mixture.variance[0] = 1;
  CHECK_OK(prior_isotropic(&memory, &mixture, &fit, &prior));
  CHECK_OK(config_options(&memory, "test", sampler_keys(twisted()), 0, NULL, &options));
  SamplerSetup setup = {
      .prior = &prior, .likelihood = &likelihood, .runs = 1, .draws = 100, .options = options};
  CU_ASSERT_EQUAL(sampler_create(&memory, twisted(), &setup, &sampler), STATUS_INPUT);
  setup.for_themselves = true;
  CHECK_OK(sampler_create(&memory, twisted(), &setup, &sampler));
}

/* Checks that isotropic mixtures, whose draws need no matrices, have the law of the same mixture with
 * matrices: mean and covariance of 4 000 draws of the samplers that can do so, with equal variances, where
 * coordinates are left out, and with different ones. Three standard errors of a mean are 0.05 of the prior's
 * deviation, and of a covariance 0.07 of its size. */
static void test_isotropic_mixtures(void) {
  enum { D = 5, C = 3, DRAWS = 4000, ROWS = 2 };
  static const char *const names[] = {"exact", "localised", "twisted"};
  for (int different = 0; different <= 1; different++) {
    SCRATCH_ARENA(memory);
    const Likelihood likelihood = fixture_likelihood(0.7);
    PriorFit fit = fixture_fit(150, 0.9, LAST_STAGE_REPAIRED);
    Isotropic mixture;
    Prior prior, matrices;
    History history = fixture_history(&memory, D, 1, 0, ROWS, &likelihood);
    CHECK_OK(denoiser_isotropic_create(&memory, D, C, &mixture));
    for (int c = 0; c < C; c++) {
      mixture.weight[c] = (c + 1.0) / 6;
      mixture.variance[c] = different ? 0.5 + 0.25 * c : 0.6;
      for (int i = 0; i < D; i++) mixture.mean[c * D + i] = i == c ? 1.2 : -0.4;
    }
    fit.standardise = true;
    CHECK_OK(prior_isotropic(&memory, &mixture, &fit, &prior));
    CHECK_OK(prior_from_mixture(&memory, prior.mixture, &fit, &matrices));
    double mean[D], covariance[D * D], expected_mean[D], expected[D * D];
    double *exact = fixture_draw(sampler_find("mixts"), &matrices, &history, 3, 5 * DRAWS, 0, NULL, NULL);
    linalg_moments(D, 5 * DRAWS, exact, expected_mean, expected);
    free(exact);
    for (int k = 0; k < 3; k++) {
      double *theta = fixture_draw(sampler_find(names[k]), &prior, &history, 0, DRAWS, 0, NULL, NULL);
      linalg_moments(D, DRAWS, theta, mean, covariance);
      for (int i = 0; i < D; i++) CHECK_NEAR(mean[i], expected_mean[i], 0.06);
      for (int i = 0; i < D * D; i++) CHECK_NEAR(covariance[i], expected[i], 0.08);
      free(theta);
    }
  }
}

/* Checks that without observations all particles weigh the same: mean and covariance of the prior, 1 and
 * 0.045 off the diagonal, to 0.08, where 4 000 draws have errors of 0.03 (measured: 0.03). */
static void test_no_history(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 4000 };
  const char *four = "particles=4";
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_cross(&memory);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, 2, 1, 0, 0, &likelihood);
  double *theta = fixture_draw(twisted(), &prior, &history, 0, DRAWS, 1, &four, NULL);
  double mean[2], covariance[4], expected_mean[2], expected[4];
  mixture_moments(&mixture, expected_mean, expected);
  linalg_moments(2, DRAWS, theta, mean, covariance);
  for (int i = 0; i < 4; i++) CHECK_NEAR(covariance[i], expected[i], 0.08);
  for (int i = 0; i < 2; i++) CHECK_NEAR(mean[i], expected_mean[i], 0.08);
  free(theta);
}

/* ---- rewards that are not Gaussian */

/* Checks a Gaussian prior and few logistic or Poisson rewards, where the Laplace approximation is visibly
 * off: 16 particles bring mean and covariance of 4 000 draws within 5 standard errors of quadrature; joint is
 * within the bias of Laplace (measured: 0.15 deviations, 3% of one). */
static void test_quadrature(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 4000 };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    PriorFit fit = fixture_fit(10, 0.72, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, 2, 1, 1);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    Rows rows = make_rows(&likelihood, 2, 12, 1.5, 2);
    History history = make_history(&memory, 1, &rows, &likelihood);
    double mean[2], covariance[4];
    glm_quadrature(&mixture, &rows, mean, covariance);
    double *theta = fixture_draw(twisted(), &prior, &history, 2, DRAWS, 0, NULL, NULL);
    fixture_check_moments(2, 1, DRAWS, 0, theta, mean, covariance, 5);
    double *joint = fixture_draw(sampler_find("joint"), &prior, &history, 2, DRAWS, 0, NULL, NULL);
    double found[2], spread[4];
    linalg_moments(2, DRAWS, joint, found, spread);
    for (int i = 0; i < 2; i++) {
      CHECK_NEAR((found[i] - mean[i]) / sqrt(covariance[3 * i]), 0, 0.25);
      CHECK_NEAR(sqrt(spread[3 * i] / covariance[3 * i]), 1, 0.15);
    }
    free(theta);
    free(joint);
  }
}

/* ---- lanes and numbers */

/* Checks 3 runs of 9 draws against each run and fewer draws alone, byte for byte, for groups that fill a
 * chunk, that leave a remainder, and that are larger than one. */
static void test_neighbours(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, DRAWS = 9, D = 2, LANES = RUNS * DRAWS };
  const char *sets[] = {"particles=1", "particles=3", "particles=16", "particles=100"};
  static const char *const families[] = {"gaussian", "logistic"};
  PriorFit fit = fixture_fit(8, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1.5);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    History history = fixture_history(&memory, D, RUNS, 0, 6, &likelihood);
    for (int p = 0; p < 4; p++) {
      int64_t fallbacks[RUNS];
      double *block = fixture_draw(twisted(), &prior, &history, 0, DRAWS, 1, &sets[p], fallbacks);
      for (int run = 0; run < RUNS; run++) {
        History alone = fixture_history(&memory, D, 1, (uint32_t)run, 6, &likelihood);
        CU_ASSERT_EQUAL(fallbacks[run], 0);
        for (int draws = 1; draws <= DRAWS; draws += 4) {
          double *few = fixture_draw(twisted(), &prior, &alone, (uint32_t)run, draws, 1, &sets[p], NULL);
          for (int i = 0; i < D; i++)
            CU_ASSERT(memcmp(few + i * draws, block + i * LANES + run * DRAWS, (size_t)draws * sizeof *few) ==
                      0);
          free(few);
        }
      }
      free(block);
    }
  }
}

/* Checks a mixture in which both components have condition number 1 to 1e6, with evidence of precision 1e-6
 * to 1e8: finite draws, and no fallback. */
static void test_extremes(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 50 };
  for (double condition_number = 1; condition_number <= 1e6; condition_number *= 100)
    for (double precision = 1e-6; precision <= 1e8; precision *= 1e2) {
      Mixture mixture;
      CHECK_OK(mixture_create(&memory, 2, 2, &mixture));
      for (int c = 0; c < 2; c++) {
        const double small = 1 / condition_number, off = (c ? -0.5 : 0.5) * (1 - small);
        const double s[4] = {0.5 * (1 + small), off, off, 0.5 * (1 + small)};
        memcpy(mixture.covariance + 4 * c, s, sizeof s);
        mixture.weight[c] = 0.5, mixture.mean[2 * c] = c;
      }
      CHECK_OK(mixture_prepare(&mixture));
      PriorFit fit = fixture_fit(20, 0.85, LAST_STAGE_REPAIRED);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      const Likelihood likelihood = fixture_likelihood(1 / sqrt(precision));
      History history = fixture_history(&memory, 2, 2, 0, 3, &likelihood);
      int64_t fallbacks[2];
      double *theta = fixture_draw(twisted(), &prior, &history, 0, DRAWS, 0, NULL, fallbacks);
      for (int i = 0; i < 4 * DRAWS; i++) CU_ASSERT(isfinite(theta[i]));
      CU_ASSERT(fallbacks[0] == 0 && fallbacks[1] == 0);
      free(theta);
    }
}

static void test_too_many_particles(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(4, 0.8, LAST_STAGE_REPAIRED);
  Prior plane, space;
  CHECK_OK(prior_standard(&memory, 2, &fit, &plane));
  CHECK_OK(prior_standard(&memory, 200, &fit, &space));
  fixture_refused("twisted", &plane, &likelihood, 64, 500, "particles=100000",
                  "sampler twisted: 100000 particles for each of 32000 draws are too many");
  fixture_refused("twisted", &space, &likelihood, 1, 1, "particles=100000",
                  "joint moments of 100000 lanes in 200 dimensions are too large");
}

int main(void) {
  CU_TestInfo tests[] = {{"Gaussian prior: exact at any number of stages", test_exact_for_a_gaussian_prior},
                         {"effective sample size", test_effective_size},
                         {"mixture: the bias falls with the particles", test_bias_falls_with_particles},
                         {"one cloud: mixture", test_cloud_of_a_mixture},
                         {"one cloud: 60 dimensions", test_cloud_of_many_dimensions},
                         {"one cloud: no matrices", test_cloud_without_matrices},
                         {"isotropic mixtures without matrices", test_isotropic_mixtures},
                         {"no history", test_no_history},
                         {"logistic and Poisson rewards against quadrature", test_quadrature},
                         {"a draw does not depend on its neighbours", test_neighbours},
                         {"extremes", test_extremes},
                         {"too many particles", test_too_many_particles},
                         CU_TEST_INFO_NULL};
  return harness_run("twisted", tests);
}
