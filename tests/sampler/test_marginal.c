/* The marginal likelihood of a history, against closed forms with Gaussian rewards and quadrature with
 * others. */
#include "sampler_fixture.h"

#include "model/denoiser/denoiser_normaliser.h"
#include "model/history/history_passes.h"
#include "model/mixture/mixture_density.h"

enum { RUNS = 3, DRAWS = 512 };

/* Finds the marginal likelihoods of runs 0 .. RUNS - 1, with the option `set`. */
static void find(const Prior *prior, const History *history, const char *set, double *value, double *error) {
  SCRATCH_ARENA(memory);
  const SamplerOps *method = sampler_find("localised");
  int64_t fallbacks[RUNS] = {0};
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_MARGINAL), .draws = DRAWS, .lanes = RUNS * DRAWS};
  SamplerSetup setup = {.prior = prior, .likelihood = history->likelihood, .runs = RUNS, .draws = DRAWS};
  Config *options;
  Sampler sampler;
  CHECK_OK(config_options(&memory, "test", sampler_keys(method), 1, &set, &options));
  setup.options = options;
  CHECK_OK(sampler_create(&memory, method, &setup, &sampler));
  CU_ASSERT_TRUE(sampler_marginal(&sampler, history, rng, value, error, fallbacks));
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(fallbacks[run], 0);
}

/* Computes log p(y) + n log(2 pi sigma^2) / 2 of data of `n` observations, by the gain form of every
 * component. */
static double closed_form(const Mixture *mixture, const FixtureData *data) {
  const int d = mixture->d;
  double mean[FIXTURE_DIMENSION], covariance[FIXTURE_DIMENSION * FIXTURE_DIMENSION], total = 0, top = -1e300,
                                                                                     part[4];
  for (int c = 0; c < mixture->components; c++) {
    part[c] =
        log(mixture->weight[c]) + data->n * log(data->noise) +
        fixture_condition(data, mixture->mean + c * d, mixture->covariance + c * d * d, mean, covariance);
    top = fmax(top, part[c]);
  }
  for (int c = 0; c < mixture->components; c++) total += exp(part[c] - top);
  return top + log(total);
}

/* Checks Gaussian rewards: to rounding for a Gaussian prior; for mixtures within twice the claimed error,
 * which is small. */
static void check_gaussian_rewards(int components, double noise, double most_error) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(noise);
  for (int d = 1; d <= 5; d += 2) {
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, d, components, 2);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    for (int n = 0; n <= 8; n += 4) {
      double value[RUNS], error[RUNS];
      History history = fixture_history(&memory, d, RUNS, 0, n, &likelihood);
      find(&prior, &history, "temper=1", value, error);
      for (int run = 0; run < RUNS; run++) {
        FixtureData data = fixture_data(d, n, noise, (uint32_t)run);
        const double exact = closed_form(&mixture, &data);
        CHECK_NEAR(value[run], exact, 2 * error[run] + 1e-9 * (1 + fabs(exact)));
        CU_ASSERT(error[run] <= most_error);
      }
    }
  }
}

static void test_gaussian_prior(void) {
  check_gaussian_rewards(1, 0.8, 1e-9);
  check_gaussian_rewards(1, 0.05, 1e-7);
}

static void test_mixture_prior(void) {
  check_gaussian_rewards(3, 0.8, 1e-3);
  check_gaussian_rewards(3, 0.05, 0.01);
}

/* Checks that doubled evidence is that of a noise smaller by a factor of sqrt(2). */
static void test_temper(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(0.8), sharp = fixture_likelihood(0.8 / sqrt(2));
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 3, 2);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  double doubled[RUNS], value[RUNS], error[RUNS], phi[2 * RUNS] = {1, 2, 3, -1, 0.5, 0},
                                                          y[RUNS] = {1, -2, 0.3};
  History wide, narrow;
  CHECK_OK(history_create(&memory, 2, RUNS, &likelihood, &wide));
  CHECK_OK(history_create(&memory, 2, RUNS, &sharp, &narrow));
  history_record(&wide, NULL, phi, y);
  history_record(&narrow, NULL, phi, y);
  find(&prior, &wide, "temper=2", doubled, error);
  find(&prior, &narrow, "temper=1", value, error);
  for (int run = 0; run < RUNS; run++) CHECK_NEAR(doubled[run], value[run], 1e-10);
}

/* Sums p(theta) exp(l(theta)) over a grid of the plane; the error is below 1e-6. */
static double quadrature(const Mixture *mixture, const History *history, int run) {
  enum { SIDE = 1201 };
  const double most = 9, step = 2 * most / (SIDE - 1);
  static double z[2 * CHUNK_LANES], density[CHUNK_LANES], likelihood[CHUNK_LANES];
  double total = 0;
  int count = 0;
  for (int k = 0; k < SIDE * SIDE; k++) {
    z[count] = -most + step * (k % SIDE);
    z[CHUNK_LANES + count] = -most + step * (k / SIDE);
    if (++count < CHUNK_LANES && k + 1 < SIDE * SIDE) continue;
    const HistoryView view = {history, CHUNK_LANES, run * CHUNK_LANES, CHUNK_LANES, NULL, NULL};
    history_log_likelihood(&view, z, likelihood, NULL);
    mixture_log_density(mixture, CHUNK_LANES, z, density);
    for (int n = 0; n < count; n++) total += exp(density[n] + likelihood[n]);
    count = 0;
  }
  return log(total * step * step);
}

/* Checks other rewards within 5 standard errors; those of 512 draws are small, as the linearised evidence is
 * close to the likelihood. */
static void check_other_rewards(const char *name) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find(name), .noise = 1};
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 3, 1.5);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int n = 1; n <= 8; n += 7) {
    double value[RUNS], error[RUNS];
    History history = fixture_history(&memory, 2, RUNS, 0, n, &likelihood);
    find(&prior, &history, "temper=1", value, error);
    for (int run = 0; run < RUNS; run++) {
      CHECK_NEAR(value[run], quadrature(&mixture, &history, run), 5 * error[run] + 1e-4);
      CU_ASSERT(error[run] < 0.1);
    }
  }
}

static void test_logistic_rewards(void) { check_other_rewards("logistic"); }
static void test_poisson_rewards(void) { check_other_rewards("poisson"); }

/* Checks that a method without a marginal likelihood says so. */
static void test_none(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  Sampler sampler;
  double value, error;
  int64_t fallbacks;
  Config *options;
  CHECK_OK(config_options(&memory, "test", sampler_keys(sampler_find("ts")), 0, NULL, &options));
  const SamplerSetup setup = {
      .prior = &prior, .likelihood = &likelihood, .runs = 1, .draws = 1, .options = options};
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  CHECK_OK(sampler_create(&memory, sampler_find("ts"), &setup, &sampler));
  History history = fixture_history(&memory, 2, 1, 0, 3, &likelihood);
  CU_ASSERT_FALSE(
      sampler_marginal(&sampler, &history, (RngLanes){.draws = 1, .lanes = 1}, &value, &error, &fallbacks));
}

int main(void) {
  CU_TestInfo tests[] = {{"Gaussian prior", test_gaussian_prior},
                         {"mixture prior", test_mixture_prior},
                         {"temper", test_temper},
                         {"logistic rewards", test_logistic_rewards},
                         {"Poisson rewards", test_poisson_rewards},
                         {"a method without one", test_none},
                         CU_TEST_INFO_NULL};
  return harness_run("marginal", tests);
}
