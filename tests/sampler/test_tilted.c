/* Tilted transport: the densities of the stages against mixtures noised by hand, draws against the exact
 * posterior. The flow and the reverse process have tests of their own (test_tilt_flow.c,
 * test_tilt_reverse.c). */
#include "core/arena.h"
#include "model/mixture/mixture_density.h"
#include "sampler/methods.h"
#include "sampler/tilted/tilt_reverse.h"
#include "sampler_fixture.h"

enum { MANY = 6000 };

/* ---- densities of the stages of a closed-form prior */

static void test_stage_densities(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, POINTS = 30 };
  const int stages[] = {0, 1, 0, 40, 100};
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 3, 2);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  CU_ASSERT_EQUAL(prior.chain->density_from, 0);
  for (int k = 0; k < 5; k++) {
    Mixture reference = fixture_noised(&memory, &mixture, prior.chain, stages[k]);
    double s[D * POINTS], density[POINTS], score[D * POINTS], expected[POINTS], expected_score[D * POINTS];
    Rng rng = fixture_rng((uint32_t)k, 60);
    rng_normal(&rng, D * POINTS, s);
    prior.chain->density(prior.chain, stages[k], POINTS, s, density, score);
    mixture_log_density(&reference, POINTS, s, expected);
    mixture_score(&reference, POINTS, s, expected_score);
    for (int n = 0; n < POINTS; n++)
      CHECK_NEAR(density[n] - density[0], expected[n] - expected[0], 1e-10 * (1 + fabs(expected[n])));
    for (int n = 0; n < D * POINTS; n++)
      CHECK_NEAR(score[n], expected_score[n], 1e-9 * (1 + fabs(expected_score[n])));
  }
}

/* ---- draws against the exact posterior */

static const char *const EXACT[] = {"baseline=exact"}, *const MALA[] = {"baseline=mala"},
                         *const SMC[] = {"baseline=smc", "particles=8000"};

/* Checks mean and covariance of the draws of two runs within `deviations` standard errors, plus `slack` of a
 * standard deviation (of a variance) of the posterior. */
static void check_posterior(const Prior *prior, double noise, int n, int set_count, const char *const *sets,
                            double deviations, double slack) {
  SCRATCH_ARENA(memory);
  const int d = prior->d;
  const Likelihood likelihood = fixture_likelihood(noise);
  int64_t fallbacks[2];
  History history = fixture_history(&memory, d, 2, 0, n, &likelihood);
  double *theta = fixture_draw(&sampler_tilted, prior, &history, 0, MANY, set_count, sets, fallbacks);
  for (int run = 0; run < 2; run++) {
    FixtureData data = fixture_data(d, n, noise, (uint32_t)run);
    FixturePosterior exact = fixture_posterior(prior->mixture, &data);
    const double *x = theta + run * MANY;
    CU_ASSERT_EQUAL(fallbacks[run], 0);
    for (int i = 0; i < d; i++)
      for (int j = i; j < d; j++) {
        double sum = 0, square = 0, first = 0;
        for (int m = 0; m < MANY; m++) {
          double product =
              (x[i * 2 * MANY + m] - exact.total_mean[i]) * (x[j * 2 * MANY + m] - exact.total_mean[j]);
          sum += product, square += product * product, first += x[i * 2 * MANY + m];
        }
        sum /= MANY, square /= MANY, first /= MANY;
        const double v = exact.total_covariance[i * d + i], w = exact.total_covariance[j * d + j];
        CHECK_NEAR(sum, exact.total_covariance[i * d + j],
                   deviations * sqrt((square - sum * sum) / MANY) + slack * sqrt(v * w));
        if (i == j) CHECK_NEAR(first, exact.total_mean[i], deviations * sqrt(v / MANY) + slack * sqrt(v));
      }
  }
  free(theta);
}

/* Checks a Gaussian prior, for which the moments of every stage are right, so the only error left is that of
 * the draws, 5 standard errors; a cloud of the same number of particles has errors of its own, which all
 * draws share. Fewer observations than dimensions: a singular Q. No observation: the prior. */
static void test_gaussian_prior(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(60, 0.96, LAST_STAGE_REPAIRED);
  for (int d = 1; d <= 4; d += 3) {
    Mixture mixture = fixture_mixture(&memory, d, 1, 1);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    for (int n = 0; n <= 6; n += 2) {
      check_posterior(&prior, 1.5, n, 1, EXACT, 5, 0);
      check_posterior(&prior, 1.5, n, 1, MALA, 5, 0);
    }
    check_posterior(&prior, 1.5, 2, 2, SMC, 10, 0);
  }
}

/* Checks a mixture: with the right start the moments of each stage are right and only its shape is not. */
static void test_mixture_prior(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 3, 1.5);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int n = 0; n <= 6; n += 3) {
    check_posterior(&prior, 1.5, n, 1, EXACT, 5, 0.01);
    check_posterior(&prior, 1.5, n, 1, MALA, 5, 0.02);
  }
  check_posterior(&prior, 1.5, 3, 2, SMC, 10, 0.01);
  check_posterior(&prior, 0.05, 6, 1, MALA, 5, 0.01); /* lambda_max above 1000: no stage is left, MALA only */
}

/* Checks the integrator with the score frozen, which is of first order: on N(0, 1), its own variance
 * recursion. A stage maps s to (g + 2 (g - 1) slope) s with g = 1 / sqrt(alpha) and slope -1, the score being
 * -s, and adds g^2 - 1. */
static void test_exponential_integrator(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(40, 0.9, LAST_STAGE_REPAIRED);
  const char *const sets[] = {"baseline=exact", "reverse=exponential"};
  const Likelihood likelihood = fixture_likelihood(1);
  const double g = 1 / sqrt(0.9);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 1, &fit, &prior));
  History history = fixture_history(&memory, 1, 1, 0, 0, &likelihood);
  double *theta = fixture_draw(&sampler_tilted, &prior, &history, 0, MANY, 2, sets, NULL);
  double variance = 1, mean = 0;
  for (int t = 0; t < 40; t++) variance = (2 - g) * (2 - g) * variance + g * g - 1;
  CU_ASSERT(fabs(variance - 1) > 0.02);
  fixture_check_moments(1, 1, MANY, 0, theta, &mean, &variance, 5);
  free(theta);
}

/* Computes d eps / d s in the plane with the eigenvalues 4 / root along (1, 1) and -2 / root along (1, -1),
 * root = sqrt(1 - alpha_bar): C_t has -3 and 3 times (1 - alpha_bar) / alpha_bar. */
static void odd_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                         double *jacobian) {
  const double root = sqrt(1 - chain->schedule.alpha_bar[t]);
  for (int n = 0; n < lanes; n++) {
    jacobian[n] = jacobian[3 * lanes + n] = 1 / root;
    jacobian[lanes + n] = jacobian[2 * lanes + n] = 3 / root;
    eps[n] = (s[n] + 3 * s[lanes + n]) / root, eps[lanes + n] = (3 * s[n] + s[lanes + n]) / root;
  }
}

/* Checks that the last stage from s_1 = 0 draws from N(0, C_1), where C_1 is not a covariance: the negative
 * eigenvalue becomes 1e-9, the other stays. 5 standard errors of the variance of that many draws. */
static void test_no_covariance(void) {
  SCRATCH_ARENA(memory);
  enum { CHUNKS = 60, N = CHUNKS * CHUNK_LANES };
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  const Likelihood likelihood = fixture_likelihood(1);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  Chain odd = *prior.chain;
  Prior owner = prior;
  odd.noise_jacobian = odd_jacobian, owner.chain = &odd;
  SamplerSetup setup = {.prior = &owner, .likelihood = &likelihood, .runs = 1, .draws = N};
  TiltReverse reverse;
  CHECK_OK(tilt_reverse_create(&memory, &setup, CHUNK_LANES, false, &reverse));
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = N, .lanes = N};
  int64_t fallbacks = 0;
  double square = 0;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    int stage[CHUNK_LANES];
    double s[2 * CHUNK_LANES] = {0};
    for (int n = 0; n < CHUNK_LANES; n++) stage[n] = 1;
    tilt_reverse_run(&reverse, &chunk, stage, s, &fallbacks);
    for (int n = 0; n < CHUNK_LANES; n++) {
      const double along = (s[n] + s[CHUNK_LANES + n]) / sqrt(2),
                   across = (s[n] - s[CHUNK_LANES + n]) / sqrt(2);
      CU_ASSERT(fabs(along) < 6 * sqrt(1e-9));
      square += across * across / N;
    }
  }
  const double variance = 3 * (1 - 0.8) / 0.8;
  CHECK_NEAR(square, variance, 5 * variance * sqrt(2.0 / N));
  CU_ASSERT_EQUAL(fallbacks, 0);
}

/* ---- where the flow ends: Q = q I with q such that 1 - c q = left at stage 30. The start is then e^-T y,
 * almost exactly, and the reverse process alone makes the posterior. */
static void test_kappa_one(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, STAGE = 30 };
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  const char *const sets[] = {"margin=1e-14"};
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  fit.standardise = false;
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (double left = 1e-3; left > 1e-13; left *= 1e-5) {
    double c = 1 / prior.chain->schedule.alpha_bar[STAGE] - 1, phi[D] = {1, 0}, other[D] = {0, 1};
    FixtureData data = {
        .d = D, .n = D, .noise = sqrt(c / (1 - left)), .phi = {{1, 0}, {0, 1}}, .y = {0.8, -0.4}};
    const Likelihood likelihood = fixture_likelihood(data.noise);
    FixturePosterior exact = fixture_posterior(&mixture, &data);
    History history;
    CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
    history_record(&history, NULL, phi, data.y);
    history_record(&history, NULL, other, data.y + 1);
    double *theta = fixture_draw(&sampler_tilted, &prior, &history, 0, MANY, 1, sets, NULL);
    fixture_check_moments(D, 1, MANY, 0, theta, exact.total_mean, exact.total_covariance, 5);
    free(theta);
  }
}

/* ---- chains that know only their score, as learned ones do */

static void test_score_only(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, FEW = 20 };
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  const char *const sets[] = {"step_size=0.03", "steps=250"}, *const ula[] = {"baseline=ula"};
  const Likelihood likelihood = fixture_likelihood(1.5);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit), blind = prior;
  Chain chain = *prior.chain;
  chain.density = NULL;
  blind.chain = &chain;
  check_posterior(&blind, 1.5, 3, 2, sets, 5,
                  0.03); /* the bias of steps of 0.03 is about 0.01 of a variance */
  check_posterior(&blind, 0.05, 6, 2, sets, 5, 0.1); /* beyond stage 1; the noise there is 0.17 */
  /* with a density that is not used, the same score to rounding, which 200 contracting steps do not
   * amplify */
  History history = fixture_history(&memory, D, 1, 0, 3, &likelihood);
  double *theta = fixture_draw(&sampler_tilted, &prior, &history, 0, FEW, 1, ula, NULL);
  double *same = fixture_draw(&sampler_tilted, &blind, &history, 0, FEW, 0, NULL, NULL);
  for (int k = 0; k < D * FEW; k++) CHECK_NEAR(theta[k], same[k], 1e-9);
  free(theta);
  free(same);
}

/* ---- streams, extremes, refusals */

/* Checks that a draw is the same to the bit whatever the other draws are: runs start at stages of their
 * own. */
static void test_composition(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, RUNS = 4, DRAWS = 30 };
  static const char *const sets[][3] = {{"baseline=mala", "steps=20", "reverse=moments"},
                                        {"baseline=ula", "steps=7", "reverse=exponential"},
                                        {"baseline=smc", "particles=50", "reverse=moments"},
                                        {"baseline=exact", "steps=0", "reverse=moments"}};
  PriorFit fit = fixture_fit(50, 0.95, LAST_STAGE_REPAIRED);
  const Likelihood likelihood = fixture_likelihood(2.5);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, D, RUNS, 0, 4, &likelihood);
  for (int k = 0; k < 4; k++) {
    double *block = fixture_draw(&sampler_tilted, &prior, &history, 0, DRAWS, 3, sets[k], NULL);
    for (uint32_t run = 0; run < RUNS; run++) {
      History alone = fixture_history(&memory, D, 1, run, 4, &likelihood);
      for (int draws = 1; draws <= DRAWS; draws += 28) {
        double *few = fixture_draw(&sampler_tilted, &prior, &alone, run, draws, 3, sets[k], NULL);
        for (int i = 0; i < D; i++)
          CU_ASSERT(!memcmp(few + i * draws, block + i * RUNS * DRAWS + (int)run * DRAWS,
                            (size_t)draws * sizeof *few));
        free(few);
      }
    }
    free(block);
  }
}

/* Checks evidence of any size, and rewards far from anything that the prior expects. */
static void test_extremes(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, DRAWS = 20 };
  const double noises[] = {1e-8, 1e-3, 1, 1e3, 1e8}, rewards[] = {0, 1e3, 1e6};
  const char *const sets[] = {"steps=50"};
  PriorFit fit = fixture_fit(50, 0.95, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit), blind = prior;
  Chain chain = *prior.chain;
  chain.density = NULL;
  blind.chain = &chain;
  for (int k = 0; k < 15; k++)
    for (int knows = 0; knows < 2; knows++) {
      const Likelihood likelihood = fixture_likelihood(noises[k % 5]);
      const double phi[D] = {0.3, -1, 0.5};
      History history;
      CHECK_OK(history_create(&memory, D, 1, &likelihood, &history));
      history_record(&history, NULL, phi, rewards + k / 5);
      double *theta =
          fixture_draw(&sampler_tilted, knows ? &prior : &blind, &history, 0, DRAWS, 1, sets, NULL);
      for (int i = 0; i < D * DRAWS; i++) CU_ASSERT(isfinite(theta[i]));
      free(theta);
    }
}

static Status create(const Prior *prior, const Likelihood *likelihood, const char *set) {
  SCRATCH_ARENA(memory);
  SamplerSetup setup = {.prior = prior, .likelihood = likelihood, .runs = 1, .draws = 1};
  Config *options;
  Sampler sampler;
  CHECK_OK(config_options(&memory, "test", sampler_keys(&sampler_tilted), 1, &set, &options));
  setup.options = options;
  Status status = sampler_create(&memory, &sampler_tilted, &setup, &sampler);
  return status;
}

static void test_refusals(void) {
  SCRATCH_ARENA(memory);
  const Likelihood gaussian = fixture_likelihood(1),
                   logistic = {.ops = likelihood_find("logistic"), .noise = 1};
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 3, 2, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit), scored = prior;
  Chain chain = *prior.chain;
  chain.density = NULL;
  scored.chain = &chain;
  CHECK_FAILS(create(&prior, &logistic, "steps=1"), STATUS_INPUT, "quadratic");
  Prior hypercube;
  CHECK_OK(prior_ising(&memory, 21, &fit, &hypercube)); /* too many to enumerate */
  CHECK_FAILS(create(&hypercube, &gaussian, "baseline=exact"), STATUS_INPUT,
              "baseline exact: sampler exact needs");
  CHECK_FAILS(create(&scored, &gaussian, "baseline=smc"), STATUS_INPUT, "baseline smc needs the density");
}

/* ---- MALA on the posterior itself: one mode, which does not depend on a lucky start */
static void test_mala(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3 };
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  for (int components = 1; components <= 2; components++)
    for (int n = 0; n <= 6; n += 3) {
      const Likelihood likelihood = fixture_likelihood(0.7);
      Mixture mixture = fixture_mixture(&memory, D, components, 0.3);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      History history = fixture_history(&memory, D, 1, 0, n, &likelihood);
      FixtureData data = fixture_data(D, n, 0.7, 0);
      FixturePosterior exact = fixture_posterior(&mixture, &data);
      double *theta = fixture_draw(&sampler_mala, &prior, &history, 0, MANY, 0, NULL, NULL);
      fixture_check_moments(D, 1, MANY, 0, theta, exact.total_mean, exact.total_covariance, 5);
      free(theta);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"densities of the stages", test_stage_densities},
                         {"Gaussian prior", test_gaussian_prior},
                         {"mixture prior", test_mixture_prior},
                         {"exponential integrator", test_exponential_integrator},
                         {"stages whose covariance is none", test_no_covariance},
                         {"evidence that is the same in all directions", test_kappa_one},
                         {"chains without a density", test_score_only},
                         {"a draw does not depend on what is beside it", test_composition},
                         {"extremes", test_extremes},
                         {"refusals", test_refusals},
                         {"MALA on the posterior", test_mala},
                         CU_TEST_INFO_NULL};
  return harness_run("tilted", tests);
}
