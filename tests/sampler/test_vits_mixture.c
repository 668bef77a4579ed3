/* VITS with several Gaussians: weights against the exact posterior of a mixture prior, where the bound is
 * known, the start against the tempered prior in closed form, and streams. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "sampler/gradient/vits_mixture.h"

#include "catch_up_fixture.h"

/* ---- weights, components given */

enum { RUNS = 4, OBSERVATIONS = 4, MOST = 4 };

typedef struct {
  int d, components; /* J */
  Potential potential;
  VitsMixture mixture;
  double *mean, *root, *inverse, *weight; /* [d, n], [d, d, n], [d, d, n], [n], n = RUNS J */
  int64_t fallbacks[RUNS];
} Given;

static void given_destroy(Given *given) {
  free(given->mean);
  free(given->root);
  free(given->inverse);
  free(given->weight);
}

/* Computes weights of components j = component[j] of the exact posteriors. */
static Given weigh_exact(Arena *memory, const Prior *prior, const Mixture *truth,
                         const Likelihood *likelihood, const History *history, int components,
                         const int *component) {
  const int d = prior->d, lanes = RUNS * components;
  FixtureSampler vits = make_sampler(memory, "vits1", prior, likelihood, 0, RUNS, 1, 0, NULL);
  Given given = {.d = d,
                 .components = components,
                 .mean = fixture_new((size_t)(d * lanes), sizeof(double)),
                 .root = fixture_new((size_t)(d * d * lanes), sizeof(double)),
                 .inverse = fixture_new((size_t)(d * d * lanes), sizeof(double)),
                 .weight = fixture_new((size_t)lanes, sizeof(double))};
  const VitsGaussian q = {given.mean, given.root, given.inverse};
  CHECK_OK(potential_create(memory, &vits.sampler.setup, lanes, &given.potential));
  CHECK_OK(
      vits_mixture_create(memory, &vits.sampler.setup, &given.potential, components, lanes, &given.mixture));
  for (int n = 0; n < lanes; n++) {
    FixtureData data = fixture_data(d, OBSERVATIONS, likelihood->noise, (uint32_t)(n / components));
    FixturePosterior exact = fixture_posterior(truth, &data);
    const int c = component[n % components];
    double root[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
    memcpy(root, exact.covariance[c], (size_t)(d * d) * sizeof *root);
    ASSERT(linalg_cholesky(d, root) == STATUS_OK);
    for (int i = 0; i < d; i++) given.mean[i * lanes + n] = exact.mean[c][i];
    for (int i = 0; i < d * d; i++) given.root[i * lanes + n] = root[i];
  }
  RngLanes rng = {.key = rng_key(3, RNG_TEST), .draws = (uint32_t)components, .lanes = (uint32_t)lanes};
  potential_at(&given.potential, &(HistoryView){history, components, 0, lanes, NULL, NULL});
  vits_mixture_weigh(&given.mixture, &given.potential, q, &rng, given.weight, given.fallbacks);
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(given.fallbacks[run], 0);
  free_sampler(&vits);
  return given;
}

/* Checks weights. With the components of the exact posterior -U - log q is the same number everywhere once
 * the weights are right, whatever the draws and however much components overlap. The steps stop at changes of
 * 1e-3, which leaves some 1e-2 where overlap slows them. */
static void test_weights_of_the_exact_posterior(void) {
  SCRATCH_ARENA(memory);
  static const int all[] = {0, 1, 2};
  for (int d = 1; d <= 5; d += 2) {
    const Likelihood likelihood = fixture_likelihood(1.5);
    Mixture truth = fixture_mixture(&memory, d, 3, 2);
    PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
    Prior prior = fixture_exact_prior(&memory, &truth, &fit);
    History history = fixture_history(&memory, d, RUNS, 0, OBSERVATIONS, &likelihood);
    Given given = weigh_exact(&memory, &prior, &truth, &likelihood, &history, 3, all);
    for (int run = 0; run < RUNS; run++) {
      FixtureData data = fixture_data(d, OBSERVATIONS, likelihood.noise, (uint32_t)run);
      FixturePosterior exact = fixture_posterior(&truth, &data);
      for (int j = 0; j < 3; j++) CHECK_NEAR(given.weight[run * 3 + j], exact.weight[j], 0.03);
    }
    given_destroy(&given);
  }
}

/* Checks that components of one mode share its weight: three of the first and one of the second together
 * weigh the same as one of each. */
static void test_components_of_one_mode_share_its_weight(void) {
  SCRATCH_ARENA(memory);
  static const int repeated[] = {0, 1, 0, 0};
  const Likelihood likelihood = fixture_likelihood(3);
  Mixture truth = fixture_mixture(&memory, 2, 2, 3);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &truth, &fit);
  History history = fixture_history(&memory, 2, RUNS, 0, OBSERVATIONS, &likelihood);
  Given given = weigh_exact(&memory, &prior, &truth, &likelihood, &history, 4, repeated);
  bool balanced = false;
  for (int run = 0; run < RUNS; run++) {
    const double *weight = given.weight + 4 * run;
    FixtureData data = fixture_data(2, OBSERVATIONS, likelihood.noise, (uint32_t)run);
    FixturePosterior exact = fixture_posterior(&truth, &data);
    CHECK_NEAR(weight[0] + weight[2] + weight[3], exact.weight[0], 0.02);
    CHECK_NEAR(weight[0] + weight[1] + weight[2] + weight[3], 1, 1e-12);
    balanced = balanced || (exact.weight[0] > 0.1 && exact.weight[0] < 0.9);
  }
  CU_ASSERT_TRUE(balanced); /* at least one run can tell */
  given_destroy(&given);
}

/* Checks weights without a density of the prior, by the mixture fitted to its draws: 1024 of them give a
 * weight of 1/3 to 0.015, and log densities near the modes to some 0.1, so weights to some 0.03. */
static void test_weights_without_a_density(void) {
  SCRATCH_ARENA(memory);
  static const int both[] = {0, 1};
  const Likelihood likelihood = fixture_likelihood(3);
  Mixture truth = fixture_mixture(&memory, 2, 2, 3);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &truth, &fit), scored = prior;
  PriorOps ops = *prior.ops;
  ops.log_density = NULL;
  scored.ops = &ops;
  History history = fixture_history(&memory, 2, RUNS, 0, OBSERVATIONS, &likelihood);
  Given with = weigh_exact(&memory, &prior, &truth, &likelihood, &history, 2, both);
  Given without = weigh_exact(&memory, &scored, &truth, &likelihood, &history, 2, both);
  for (int n = 0; n < 2 * RUNS; n++) CHECK_NEAR(without.weight[n], with.weight[n], 0.1);
  CU_ASSERT_TRUE(memcmp(without.weight, with.weight, 2 * RUNS * sizeof *with.weight) != 0);
  given_destroy(&with);
  given_destroy(&without);
}

/* ---- start and draws */

/* Returns 0.3 N((-3, 0), diag(1/4, 1)) + 0.7 N((3, 0), I). */
static Mixture two_modes(Arena *memory) {
  static const double mean[4] = {-3, 0, 3, 0}, covariance[8] = {0.25, 0, 0, 1, 1, 0, 0, 1};
  Mixture mixture;
  ASSERT(mixture_create(memory, 2, 2, &mixture) == STATUS_OK);
  mixture.weight[0] = 0.3, mixture.weight[1] = 0.7;
  memcpy(mixture.mean, mean, sizeof mean);
  memcpy(mixture.covariance, covariance, sizeof covariance);
  ASSERT(mixture_prepare(&mixture) == STATUS_OK);
  return mixture;
}

/* Returns the share of the draws theta[d, many] with theta_1 < 0, and the variance of theta_1 among them. */
static double left_share(int many, const double *theta, double *variance) {
  double count = 0, sum = 0, square = 0;
  for (int m = 0; m < many; m++)
    if (theta[m] < 0) count++, sum += theta[m], square += theta[m] * theta[m];
  if (variance) *variance = square / count - sum / count * (sum / count);
  return count / many;
}

/* Checks the start, before the first observation: p^lambda, whose modes have the masses weight^lambda |S|^((1
 * - lambda) / 2) and the covariances S / lambda. Expectation maximisation on 1024 draws gives a weight of 0.3
 * to 0.015 and log |S| to 0.08, so the share at lambda = 3 to 0.07; 20 000 draws add 0.004. */
static void test_start(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 20000 };
  static const char *const weights[] = {"lambda=1", "lambda=3"};
  const Likelihood likelihood = fixture_likelihood(1);
  Mixture modes = two_modes(&memory);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &modes, &fit);
  Rounds rounds = make_rounds(2, 0, 1, 1, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  for (int k = 0; k < 2; k++) {
    const double lambda = k ? 3 : 1;
    const char *sets[] = {weights[k], "components=2"};
    FixtureSampler vits = make_sampler(&memory, "vits2", &prior, &likelihood, 0, 1, MANY, 2, sets);
    double *theta = draw_from(&vits, &history, MANY), variance;
    const double left = pow(0.3, lambda) * pow(0.25, 0.5 * (1 - lambda)), right = pow(0.7, lambda);
    CHECK_NEAR(left_share(MANY, theta, &variance), left / (left + right), k ? 0.2 : 0.05);
    CHECK_NEAR(variance, 0.25 / lambda, 0.25 / lambda * 0.35);
    free(theta);
    free_sampler(&vits);
  }
  free_rounds(&rounds);
}

/* Checks that observations of theta_2 alone leave both modes their weights. With steps this small q_j is
 * nearly component j of the posterior, so the weights are right to 0.03 in the mean of 32 runs and 0.15 in
 * each; one Gaussian covers at most one mode and a bit. */
static void test_modes_keep_their_weights(void) {
  SCRATCH_ARENA(memory);
  enum { N = 32, MANY = 500, OBSERVED = 8 };
  const Likelihood likelihood = fixture_likelihood(1);
  Mixture modes = two_modes(&memory);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior = fixture_exact_prior(&memory, &modes, &fit);
  Rounds rounds = make_rounds(2, 0, N, OBSERVED, false, &likelihood);
  for (int l = 0; l < OBSERVED; l++)
    for (int run = 0; run < N; run++) rounds.phi[l * 2 * N + run] = 0;
  static const char *const names[] = {"vits1", "vits2", "vits2_hf"};
  for (int k = 0; k < 4; k++) {
    const char *sets[] = {k < 3 ? "components=3" : "components=1", "step_size=0.1", "steps=40"};
    History history = empty_history(&memory, &rounds, &likelihood);
    FixtureSampler vits = make_sampler(&memory, names[k % 3], &prior, &likelihood, 0, N, MANY, 3, sets);
    for (int l = 0; l < OBSERVED; l++) {
      append_round(&history, &rounds, l);
      sampler_observe(&vits.sampler, &history, vits.fallbacks);
    }
    double *theta = draw_from(&vits, &history, MANY), mean = 0, error = 0;
    for (int run = 0; run < N; run++) {
      const double share = left_share(MANY, theta + run * MANY, NULL);
      mean += share / N;
      error += fabs(share - 0.3) / N;
      if (k < 3) CHECK_NEAR(share, 0.3, 0.2);
    }
    if (k < 3) CHECK_NEAR(mean, 0.3, 0.04);
    CU_ASSERT_TRUE(k < 3 ? error < 0.08 : error > 0.2);
    free(theta);
    free_sampler(&vits);
  }
  free_rounds(&rounds);
}

/* ---- streams */

/* Observes five rounds of these runs, then draws two for each: theta[d, 2 runs]. */
static double *play(const Prior *prior, const Likelihood *likelihood, const char *components, int first_run,
                    int runs) {
  SCRATCH_ARENA(memory);
  Rounds rounds = make_rounds(prior->d, first_run, runs, 5, false, likelihood);
  History history = empty_history(&memory, &rounds, likelihood);
  FixtureSampler vits =
      make_sampler(&memory, "vits2", prior, likelihood, (uint32_t)first_run, runs, 2, 1, &components);
  for (int l = 0; l < rounds.n; l++) {
    append_round(&history, &rounds, l);
    sampler_observe(&vits.sampler, &history, vits.fallbacks);
  }
  double *theta = draw_from(&vits, &history, 2);
  free_sampler(&vits);
  free_rounds(&rounds);
  return theta;
}

/* Checks that a run's draws are the same, bit for bit, alone and in a block of 75: blocks of lanes hold whole
 * runs, 21 or 5 of three components, 12 or 3 of five. */
static void test_no_run_depends_on_another(void) {
  SCRATCH_ARENA(memory);
  enum { BLOCK = 75 };
  static const int alone[] = {0, 21, 74};
  static const char *const numbers[] = {"components=3", "components=5"};
  for (int d = 2; d <= 9; d += 7) {
    PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, 2, 2, 1.5);
    Prior prior;
    if (d == 2)
      prior = fixture_exact_prior(&memory, &mixture, &fit);
    else
      CHECK_OK(prior_standard(&memory, d, &fit, &prior));
    for (int l = 0; l < 2; l++) {
      const Likelihood likelihood = {.ops = likelihood_find(l ? "logistic" : "gaussian"), .noise = 0.7};
      double *block = play(&prior, &likelihood, numbers[l], 0, BLOCK);
      for (size_t a = 0; a < sizeof alone / sizeof *alone; a++) {
        double *single = play(&prior, &likelihood, numbers[l], alone[a], 1);
        for (int i = 0; i < d; i++)
          CU_ASSERT(memcmp(single + 2 * i, block + 2 * (i * BLOCK + alone[a]), 2 * sizeof *single) == 0);
        free(single);
      }
      free(block);
    }
  }
}

int main(void) {
  CU_TestInfo tests[] = {
      {"weights of the exact posterior's components", test_weights_of_the_exact_posterior},
      {"components of one mode share its weight", test_components_of_one_mode_share_its_weight},
      {"weights without a density", test_weights_without_a_density},
      {"draws before the first observation", test_start},
      {"modes keep their weights", test_modes_keep_their_weights},
      {"no run depends on another", test_no_run_depends_on_another},
      CU_TEST_INFO_NULL};
  return harness_run("vits_mixture", tests);
}
