/* Rules. Conformance: every registered rule with every sampler; the index of Bayes-UCB against its
 * formula. */
#include "sampler_fixture.h"

#include "policy/policy.h"
#include "rule/rule.h"

enum { RUNS = 3, D = 2, MOST_ARMS = 40 };

static Rule make_rule(Arena *memory, const SamplerOps *method, const Prior *prior,
                      const Likelihood *likelihood, int horizon, int set_count, const char *const *sets) {
  Config *options;
  Rule rule;
  CHECK_OK(config_options(memory, "test", policy_keys(method->name), set_count, sets, &options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = likelihood,
                              .runs = RUNS,
                              .draws = 1,
                              .seed = FIXTURE_SEED,
                              .options = options};
  CHECK_OK(rule_create(memory, method, &setup, horizon, RULE_CHOOSES, &rule));
  return rule;
}

/* Draws features[K, d, B], normal numbers. */
static void make_arms(int arms, double *features) {
  Rng rng = fixture_rng(0, 4000);
  rng_normal(&rng, arms * D * RUNS, features);
}

/* Returns phi' theta of an arm and a run. */
static double score(const double *features, const double *theta, int arm, int run) {
  double sum = 0;
  for (int i = 0; i < D; i++) sum += features[(arm * D + i) * RUNS + run] * theta[i];
  return sum;
}

/* Checks that where theta is known any rule takes the best arm, of equal arms any, and the only arm if
 * there is one; and all this also with a single round. */
static void check_rule(const RuleOps *ops, const SamplerOps *method, const Prior *prior,
                       const Likelihood *likelihood, const double *theta, int horizon) {
  SCRATCH_ARENA(memory);
  char set[40];
  const char *sets[] = {set};
  double features[MOST_ARMS * D * RUNS], same[MOST_ARMS * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  int arm[RUNS], others = 0;
  snprintf(set, sizeof set, "rule=%s", ops->name);
  History history = fixture_history(&memory, D, RUNS, 0, 0, likelihood);
  Rule rule = make_rule(&memory, method, prior, likelihood, horizon, 1, sets);
  CU_ASSERT_PTR_EQUAL(rule.ops, ops);
  make_arms(MOST_ARMS, features);
  rule_choose(&rule,
              &(RuleChoice){.history = &history, .round = 1, .arms.count = MOST_ARMS, .features = features},
              arm, fallbacks);
  for (int run = 0; run < RUNS; run++)
    for (int k = 0; k < MOST_ARMS; k++)
      CU_ASSERT(score(features, theta, arm[run], run) >= score(features, theta, k, run) - 0.01);
  for (int k = 0; k < MOST_ARMS; k++) memcpy(same + k * D * RUNS, features, D * RUNS * sizeof *same);
  for (uint32_t round = 1; round <= 5; round++) {
    rule_choose(&rule,
                &(RuleChoice){.history = &history, .round = round, .arms.count = MOST_ARMS, .features = same},
                arm, fallbacks);
    for (int run = 0; run < RUNS; run++) others += arm[run] > 0;
  }
  CU_ASSERT(others > 5); /* of 15; the chance of fewer is 1e-14 */
  rule_choose(&rule, &(RuleChoice){.history = &history, .round = 1, .arms.count = 1, .features = features},
              arm, fallbacks);
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(arm[run], 0);
}

static void test_every_rule_and_sampler(void) {
  SCRATCH_ARENA(memory);
  const double theta[D] = {0.7, -1.2};
  const Likelihood likelihood = fixture_likelihood(1);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  Mixture point;
  char sentence[256];
  int pairs = 0;
  CHECK_OK(mixture_create(&memory, D, 1, &point));
  point.weight[0] = 1;
  for (int i = 0; i < D; i++) point.mean[i] = theta[i], point.covariance[i * (D + 1)] = 1e-8;
  CHECK_OK(mixture_prepare(&point));
  Prior prior = fixture_exact_prior(&memory, &point, &fit);
  for (int r = 0; rule_method(r); r++) {
    const RuleOps *ops = rule_method(r);
    CU_ASSERT(ops->name[0] && ops->summary[0] && ops->reference[0]);
    for (int m = 0; sampler_method(m); m++) {
      if (sampler_misfit(sampler_method(m), &prior, &likelihood, sizeof sentence, sentence)) continue;
      check_rule(ops, sampler_method(m), &prior, &likelihood, theta, 200);
      check_rule(ops, sampler_method(m), &prior, &likelihood, theta, 1);
      pairs++;
    }
  }
  CU_ASSERT(pairs > 30);
}

/* Checks that the arm that rule `bayes_ucb` takes has the largest E[r] + z sd[r], and that `top` is that
 * value: moments of the posterior as the fixture has them, z as Python computes it:
 * -statistics.NormalDist().inv_cdf(0.5 / (1 + alpha (n - t))). */
static void check_index(const Prior *prior, const Likelihood *likelihood, int horizon, int choices,
                        int set_count, const char *const *sets, double z) {
  SCRATCH_ARENA(memory);
  enum { N = 3 };
  double features[MOST_ARMS * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  int arm[RUNS];
  History history = fixture_history(&memory, D, RUNS, 0, N, likelihood);
  Rule rule = make_rule(&memory, sampler_find("mixts"), prior, likelihood, horizon, set_count, sets);
  make_arms(MOST_ARMS, features);
  rule_choose(
      &rule,
      &(RuleChoice){
          .history = &history, .round = 1, .choices = choices, .arms.count = MOST_ARMS, .features = features},
      arm, fallbacks);
  for (int run = 0; run < RUNS; run++) {
    const FixtureData data = fixture_data(D, N, likelihood->noise, (uint32_t)run);
    const FixturePosterior exact = fixture_posterior(prior->mixture, &data);
    double highest = -INFINITY;
    for (int k = 0; k < MOST_ARMS; k++) {
      const double x = features[k * D * RUNS + run], y = features[(k * D + 1) * RUNS + run];
      const double *s = exact.total_covariance;
      const double index = x * exact.total_mean[0] + y * exact.total_mean[1] +
                           z * sqrt(x * x * s[0] + 2 * x * y * s[1] + y * y * s[3]);
      highest = fmax(highest, index);
      if (k == arm[run]) CHECK_NEAR(index, rule.top[run], 1e-9);
    }
    CHECK_NEAR(rule.top[run], highest, 1e-9);
    CU_ASSERT_EQUAL(fallbacks[run], 0);
  }
}

static void test_bayes_ucb(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(0.7);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Mixture mixture = fixture_mixture(&memory, D, 3, 1.5);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  const char *const plain[] = {"rule=bayes_ucb"}, *const alpha[] = {"rule=bayes_ucb", "bayes_ucb_alpha=0.5"},
                    *const given[] = {"rule=bayes_ucb", "bayes_ucb_alpha=0.5", "horizon=50"},
                    *const high[] = {"rule=bayes_ucb", "quantile=0.95"},
                    *const low[] = {"rule=bayes_ucb", "quantile=0.3"},
                    *const most[] = {"rule=bayes_ucb", "bayes_ucb_alpha=1e6", "horizon=1000000000"};
  check_index(&prior, &likelihood, 200, 0, 1, plain, 1.9807523966472786);
  check_index(&prior, &likelihood, 200, 100, 1, plain, 1.6906216295848977);
  check_index(&prior, &likelihood, 200, 199, 1, plain, 0.11418529432142835);
  check_index(&prior, &likelihood, 200, 1000, 1, plain, 0); /* no round is left */
  check_index(&prior, &likelihood, 50, 10, 2, alpha, 1.9807523966472786);
  check_index(&prior, &likelihood, 0, 10, 3, given, 1.9807523966472786);
  check_index(&prior, &likelihood, 0, 0, 3, most, 8.02685888253454);
  check_index(&prior, &likelihood, 0, 5, 2, high, 1.6448536269514715);
  check_index(&prior, &likelihood, 0, 5, 2, low, -0.5244005127080407);
}

/* Checks the default alpha: with clicks and counts it is that of alpha = 0.03, with Gaussian rewards, above,
 * that of 0.1. */
static void test_default_alpha(void) {
  SCRATCH_ARENA(memory);
  enum { HORIZON = 200 };
  const char *const plain[] = {"rule=bayes_ucb"}, *const low[] = {"rule=bayes_ucb", "bayes_ucb_alpha=0.03"};
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Mixture mixture = fixture_mixture(&memory, D, 1, 1.5);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int f = 0; likelihood_family(f); f++) {
    const Likelihood likelihood = {.ops = likelihood_family(f), .noise = 1};
    if (likelihood_has_noise(&likelihood)) continue;
    Rule automatic = make_rule(&memory, sampler_find("ts"), &prior, &likelihood, HORIZON, 1, plain);
    Rule given = make_rule(&memory, sampler_find("ts"), &prior, &likelihood, HORIZON, 2, low);
    for (int choices = 0; choices < HORIZON; choices += 60)
      CU_ASSERT_EQUAL(automatic.ops->quantile(&automatic, choices), given.ops->quantile(&given, choices));
    /* statistics.NormalDist().inv_cdf(1 - 0.5 / (1 + 0.03 * 200)) */
    CHECK_NEAR(automatic.ops->quantile(&automatic, 0), 1.4652337926855223, 1e-9);
  }
}

/* Checks a sampler without a closed form, whose draws are exact for a Gaussian prior: moments of 20 000 draws
 * within 5 standard errors of the posterior's, sqrt((s_ii s_jj + s_ij^2) / M) for a covariance. */
static void test_moments_of_draws(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 20000, N = 3 };
  const Likelihood likelihood = fixture_likelihood(0.7);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Mixture mixture = fixture_mixture(&memory, D, 1, 1.5);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  const SamplerOps *method = sampler_find("localised");
  double mean[D * RUNS], covariance[D * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  History history = fixture_history(&memory, D, RUNS, 0, N, &likelihood);
  CU_ASSERT_FALSE(sampler_has_moments(method, true, true));
  fixture_moments(method, &prior, &history, MANY, 0, NULL, mean, covariance, fallbacks);
  for (int run = 0; run < RUNS; run++) {
    const FixtureData data = fixture_data(D, N, likelihood.noise, (uint32_t)run);
    const FixturePosterior exact = fixture_posterior(&mixture, &data);
    const double *s = exact.total_covariance;
    for (int i = 0; i < D; i++) {
      const double s_ii = s[i * (D + 1)];
      CHECK_NEAR(mean[i * RUNS + run], exact.total_mean[i], 5 * sqrt(s_ii / MANY));
      for (int j = 0; j < D; j++) {
        const double s_ij = s[i * D + j], s_jj = s[j * (D + 1)];
        CHECK_NEAR(covariance[(i * D + j) * RUNS + run], s_ij, 5 * sqrt((s_ii * s_jj + s_ij * s_ij) / MANY));
      }
    }
  }
}

/* Returns the mean reward of u ~ N(center, deviation^2), by a fine trapezoidal rule. */
static double mean_reward(const Likelihood *likelihood, double center, double deviation) {
  double sum = 0, total = 0;
  for (double z = -9; z <= 9; z += 0x1p-6) {
    const double u = center + deviation * z;
    double mean;
    likelihood->ops->mean(likelihood, 1, &u, &mean);
    sum += exp(-0.5 * z * z) * mean;
    total += exp(-0.5 * z * z);
  }
  return sum / total;
}

/* Checks that rule `greedy` takes the arm with the largest mean reward, which with clicks and counts is often
 * not the one with the largest phi' mean. */
static void test_greedy_takes_mean_reward(void) {
  SCRATCH_ARENA(memory);
  const char *const greedy[] = {"rule=greedy"};
  const double center[D] = {-2, -1.9}, deviation[D] = {1.5, 0.5};
  double features[MOST_ARMS * D * RUNS];
  int64_t fallbacks[RUNS] = {0};
  int arm[RUNS], others = 0;
  Mixture gaussian;
  CHECK_OK(mixture_create(&memory, D, 1, &gaussian));
  gaussian.weight[0] = 1;
  for (int i = 0; i < D; i++) {
    gaussian.mean[i] = center[i];
    gaussian.covariance[i * (D + 1)] = deviation[i] * deviation[i];
  }
  CHECK_OK(mixture_prepare(&gaussian));
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Prior prior = fixture_exact_prior(&memory, &gaussian, &fit);
  make_arms(MOST_ARMS, features);
  for (int f = 0; likelihood_family(f); f++) {
    const Likelihood likelihood = {.ops = likelihood_family(f), .noise = 1};
    const History history = fixture_history(&memory, D, RUNS, 0, 0, &likelihood);
    Rule rule = make_rule(&memory, sampler_find("ts"), &prior, &likelihood, 100, 1, greedy);
    const RuleChoice choice = {
        .history = &history, .round = 1, .arms.count = MOST_ARMS, .features = features};
    rule_choose(&rule, &choice, arm, fallbacks);
    for (int run = 0; run < RUNS; run++) {
      double best = -INFINITY, taken = 0, top = -INFINITY;
      int first = 0;
      for (int k = 0; k < MOST_ARMS; k++) {
        const double x = features[k * D * RUNS + run], y = features[(k * D + 1) * RUNS + run];
        const double mean = x * center[0] + y * center[1], sd = hypot(x * deviation[0], y * deviation[1]);
        const double reward = mean_reward(&likelihood, mean, sd);
        best = fmax(best, reward);
        if (k == arm[run]) taken = reward;
        if (mean > top) first = k;
        top = fmax(top, mean);
      }
      CHECK_NEAR(taken, best, 1e-9 * best);
      CHECK_NEAR(rule.top[run], best, 1e-9 * best);
      others += arm[run] != first;
    }
  }
  CU_ASSERT(others > 0);
}

static void test_refused(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Mixture mixture = fixture_mixture(&memory, D, 1, 1.5);
  const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  const SamplerOps *method = sampler_find("ts");
  static const struct {
    const char *sets[3], *part;
  } cases[] = {{{"rule=greedy", "bayes_ucb_alpha=0.2"}, "option bayes_ucb_alpha belongs to rule: bayes_ucb"},
               {{"rule=thompson", "horizon=20"}, "option horizon belongs to rule: bayes_ucb"},
               {{"rule=bayes_ucb", "bayes_ucb_alpha=0.2"}, "set its option horizon"},
               {{"rule=bayes_ucb", "horizon=20", "quantile=0.9"},
                "option horizon has no effect beside a constant quantile"},
               {{"rule=bayes_ucb", "bayes_ucb_alpha=0.2", "quantile=0.9"},
                "option bayes_ucb_alpha has no effect beside"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Config *options;
    Rule rule;
    CHECK_OK(config_options(&memory, "test", policy_keys("ts"), cases[i].sets[2] ? 3 : 2, cases[i].sets,
                            &options));
    const SamplerSetup setup = {
        .prior = &prior, .likelihood = &likelihood, .runs = 1, .draws = 1, .options = options};
    CHECK_FAILS(rule_create(&memory, method, &setup, 0, RULE_CHOOSES, &rule), STATUS_INPUT, cases[i].part);
  }
}

int main(void) {
  CU_TestInfo tests[] = {
      {"every rule with every sampler: a known theta, ties, one arm", test_every_rule_and_sampler},
      {"Bayes-UCB takes the largest mean + z sd", test_bayes_ucb},
      {"the default alpha depends on the rewards", test_default_alpha},
      {"moments of draws", test_moments_of_draws},
      {"greedy takes the largest mean reward", test_greedy_takes_mean_reward},
      {"what is refused", test_refused},
      CU_TEST_INFO_NULL};
  return harness_run("rule", tests);
}
