/* Probabilities of arms: against closed forms and against the frequencies of the rule; arms picked by them
 * against themselves. */
#include "sampler_fixture.h"

#include "policy/policy.h"
#include "rule/rule.h"

enum { RUNS = 3, D = 2, MOST_ARMS = 5, N = 3, SETS = 3, ROUNDS = 10000 };

static const int ARMS[SETS] = {2, 3, MOST_ARMS};

typedef struct {
  Likelihood likelihood;
  Prior prior;
  History history;
} Belief;

static void make_belief(Arena *memory, int components, int runs, Belief *out) {
  const PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_LITERAL);
  const Mixture mixture = fixture_mixture(memory, D, components, 1.5);
  out->likelihood = fixture_likelihood(0.7);
  out->prior = fixture_exact_prior(memory, &mixture, &fit);
  out->history = fixture_history(memory, D, runs, 0, N, &out->likelihood);
}

static Rule make_rule_for(Arena *memory, const Belief *belief, RuleUse use, int set_count,
                          const char *const *sets) {
  Config *options;
  Rule rule;
  CHECK_OK(config_options(memory, "test", policy_keys("mixts"), set_count, sets, &options));
  const SamplerSetup setup = {.prior = &belief->prior,
                              .likelihood = &belief->likelihood,
                              .runs = belief->history.runs,
                              .draws = 1,
                              .seed = FIXTURE_SEED,
                              .options = options};
  CHECK_OK(rule_create(memory, sampler_find("mixts"), &setup, 100, use, &rule));
  return rule;
}

static Rule make_rule(Arena *memory, const Belief *belief, int set_count, const char *const *sets) {
  return make_rule_for(memory, belief, RULE_WEIGHS, set_count, sets);
}

static void make_arms(uint32_t set, int arms, double *features) {
  Rng rng = fixture_rng(set, 4001);
  rng_normal(&rng, arms * D * RUNS, features);
}

/* Computes the chi-squared statistic of counts over arms of positive probability, of which there are *degrees
 * + 1; elsewhere the count is 0. */
static double chi_squared(int arms, const double *p, const double *count, double total, int *degrees) {
  double sum = 0;
  *degrees = -1;
  for (int k = 0; k < arms; k++) {
    if (p[k] > 0) sum += (count[k] - total * p[k]) * (count[k] - total * p[k]) / (total * p[k]), ++*degrees;
    if (p[k] == 0) CU_ASSERT_EQUAL(count[k], 0);
  }
  return sum;
}

/* Returns the quantile 1 - 1e-5 for 1 to 4 degrees of freedom, 19.5 to 28.5, rounded up. */
static double most_chi_squared(int degrees) { return degrees <= 0 ? 1e-9 : 17 + 3 * degrees; }

static const char *const RULES[2][3] = {{"rule=thompson", "propensity_draws=300"},
                                        {"rule=bayes_ucb", "floor=0.1", "propensity_draws=1"}};
static const int RULE_SETS[2] = {2, 3};

/* Checks ten thousand choices by p: three sets of arms, two rules. */
static void test_picked(void) {
  SCRATCH_ARENA(memory);
  Belief belief;
  make_belief(&memory, 3, RUNS, &belief);
  for (int r = 0; r < 2; r++)
    for (int set = 0; set < SETS; set++) {
      double features[MOST_ARMS * D * RUNS], p[RUNS * MOST_ARMS], count[RUNS * MOST_ARMS] = {0};
      int64_t fallbacks[RUNS] = {0};
      int arm[RUNS], degrees;
      const int arms = ARMS[set];
      Rule rule = make_rule(&memory, &belief, RULE_SETS[r], RULES[r]);
      make_arms((uint32_t)set, arms, features);
      rule_probabilities(
          &rule,
          &(RuleChoice){.history = &belief.history, .round = 7, .arms.count = arms, .features = features}, p,
          fallbacks);
      for (uint32_t round = 0; round < ROUNDS; round++) {
        rule_pick(&rule, round, RUNS, arms, p, arm);
        for (int b = 0; b < RUNS; b++) count[b * arms + arm[b]]++;
      }
      for (int b = 0; b < RUNS; b++) {
        double sum = 0;
        for (int k = 0; k < arms; k++) sum += p[b * arms + k];
        CHECK_NEAR(sum, 1, 1e-12);
        const double statistic = chi_squared(arms, p + b * arms, count + b * arms, ROUNDS, &degrees);
        CU_ASSERT(statistic < most_chi_squared(degrees));
        if (r == 1) CU_ASSERT_EQUAL(degrees, arms - 1); /* the floor */
      }
    }
}

/* Checks that what the rule takes on its own, round after round, has the probabilities that 200 000 draws
 * give; with the floor too. */
static void test_taken(void) {
  SCRATCH_ARENA(memory);
  static const char *const sets[2][3] = {{"propensity_draws=200000"},
                                         {"propensity_draws=200000", "floor=0.05"}};
  Belief belief;
  make_belief(&memory, 3, RUNS, &belief);
  for (int f = 0; f < 2; f++)
    for (int set = 0; set < SETS; set++) {
      double features[MOST_ARMS * D * RUNS], p[RUNS * MOST_ARMS], count[RUNS * MOST_ARMS] = {0};
      int64_t fallbacks[RUNS] = {0};
      int arm[RUNS];
      const int arms = ARMS[set];
      Rule rule = make_rule(&memory, &belief, f + 1, sets[f]);
      make_arms((uint32_t)set, arms, features);
      rule_probabilities(&rule,
                         &(RuleChoice){.history = &belief.history, .arms.count = arms, .features = features},
                         p, fallbacks);
      for (uint32_t round = 1; round <= ROUNDS; round++) {
        rule_choose(&rule,
                    &(RuleChoice){
                        .history = &belief.history, .round = round, .arms.count = arms, .features = features},
                    arm, fallbacks);
        rule_explore(&rule, round, RUNS, (ArmSet){.count = arms}, arm);
        for (int b = 0; b < RUNS; b++) count[b * arms + arm[b]]++;
      }
      /* Within five standard errors, those of the count and those of p (1 / 20 of the former). */
      for (int i = 0; i < RUNS * arms; i++) {
        const double error = sqrt(1.05 * fmax(p[i] * (1 - p[i]), 1e-4) / ROUNDS);
        CHECK_NEAR(count[i] / ROUNDS, p[i], 5 * error);
        CU_ASSERT(p[i] >= 0.05 * f);
      }
    }
}

/* Returns P(u > 0), u ~ N(mean, variance). */
static double above_zero(double mean, double variance) { return 0.5 * (1 + erf(mean / sqrt(2 * variance))); }

/* Computes x' m and x' S x of a run under one Gaussian. */
static void project(const Belief *belief, uint32_t run, const double *x, double *mean, double *variance) {
  const FixtureData data = fixture_data(D, N, belief->likelihood.noise, run);
  const FixturePosterior exact = fixture_posterior(belief->prior.mixture, &data);
  const double *s = exact.total_covariance;
  *mean = x[0] * exact.total_mean[0] + x[1] * exact.total_mean[1];
  *variance = x[0] * x[0] * s[0] + 2 * x[0] * x[1] * s[1] + x[1] * x[1] * s[3];
}

/* Checks two arms under one Gaussian: Phi, to rounding; one half for each of two equal arms. */
static void test_pair(void) {
  SCRATCH_ARENA(memory);
  Belief belief;
  make_belief(&memory, 1, RUNS, &belief);
  double features[2 * D * RUNS], p[RUNS * 2], mean, variance;
  int64_t fallbacks[RUNS] = {0};
  Rule rule = make_rule(&memory, &belief, 0, NULL);
  make_arms(0, 2, features);
  rule_probabilities(
      &rule, &(RuleChoice){.history = &belief.history, .round = 1, .arms.count = 2, .features = features}, p,
      fallbacks);
  for (int b = 0; b < RUNS; b++) {
    double x[D];
    for (int i = 0; i < D; i++) x[i] = features[i * RUNS + b] - features[(D + i) * RUNS + b];
    project(&belief, (uint32_t)b, x, &mean, &variance);
    CHECK_NEAR(p[2 * b], above_zero(mean, variance), 1e-9);
    CHECK_NEAR(p[2 * b] + p[2 * b + 1], 1, 1e-15);
  }
  memcpy(features + D * RUNS, features, D * RUNS * sizeof *features);
  rule_probabilities(
      &rule, &(RuleChoice){.history = &belief.history, .round = 1, .arms.count = 2, .features = features}, p,
      fallbacks);
  for (int b = 0; b < RUNS; b++) CU_ASSERT(p[2 * b] == 0.5 && p[2 * b + 1] == 0.5);
}

/* Checks sets of arms of which some are the same: these have exactly the same probability, and each rule
 * takes them as often as it says, whether or not the probabilities are asked for. Chi-squared as above. */
static void test_ties(void) {
  SCRATCH_ARENA(memory);
  static const char *const rules[][2] = {{"rule=thompson", "propensity_draws=4000"},
                                         {"rule=greedy", "floor=0"},
                                         {"rule=bayes_ucb", "floor=0"},
                                         {"rule=greedy", "floor=0.05"}};
  static const int copies[][MOST_ARMS] = {{0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1, 1, 1}};
  static const int arms_of[] = {3, 3, 3, 5};
  Belief belief;
  make_belief(&memory, 3, RUNS, &belief);
  for (int r = 0; r < 4; r++)
    for (int set = 0; set < 4; set++) {
      const int arms = arms_of[set];
      double own[2 * D * RUNS], features[MOST_ARMS * D * RUNS], p[RUNS * MOST_ARMS];
      double picked[RUNS * MOST_ARMS] = {0}, taken[RUNS * MOST_ARMS] = {0};
      int64_t fallbacks[RUNS] = {0};
      int arm[RUNS], degrees;
      Rule rule = make_rule(&memory, &belief, 2, rules[r]);
      make_arms((uint32_t)set, 2, own);
      for (int k = 0; k < arms; k++)
        memcpy(features + k * D * RUNS, own + copies[set][k] * D * RUNS, D * RUNS * sizeof *own);
      rule_probabilities(&rule,
                         &(RuleChoice){.history = &belief.history, .arms.count = arms, .features = features},
                         p, fallbacks);
      for (int i = 0; i < RUNS * arms; i++)
        for (int j = i - i % arms; j < i; j++)
          if (copies[set][i % arms] == copies[set][j % arms]) CU_ASSERT_EQUAL(p[i], p[j]);
      for (uint32_t round = 1; round <= ROUNDS / 5; round++) {
        rule_pick(&rule, round, RUNS, arms, p, arm);
        for (int b = 0; b < RUNS; b++) picked[b * arms + arm[b]]++;
        rule_choose(&rule,
                    &(RuleChoice){
                        .history = &belief.history, .round = round, .arms.count = arms, .features = features},
                    arm, fallbacks);
        rule_explore(&rule, round, RUNS, (ArmSet){.count = arms}, arm);
        for (int b = 0; b < RUNS; b++) taken[b * arms + arm[b]]++;
      }
      for (int b = 0; b < RUNS; b++) {
        const double limit = chi_squared(arms, p + b * arms, picked + b * arms, ROUNDS / 5.0, &degrees);
        CU_ASSERT(limit < most_chi_squared(degrees));
        /* The shares of draws have an error of their own, half of that of the counts. */
        const double statistic =
            chi_squared(arms, p + b * arms, taken + b * arms, ROUNDS / 5.0, &degrees) / (r == 0 ? 1.5 : 1);
        CU_ASSERT(statistic < most_chi_squared(degrees));
      }
    }
}

/* Checks arms that each have a posterior without data: the same probability for all under `greedy` and
 * `bayes_ucb`, and each is taken. */
static void test_per_arm_without_data(void) {
  SCRATCH_ARENA(memory);
  enum { ARMS_ALONE = 5 };
  static const char *const rules[] = {"rule=greedy", "rule=bayes_ucb"};
  Belief belief;
  make_belief(&memory, 1, RUNS * ARMS_ALONE, &belief);
  belief.history = fixture_history(&memory, D, RUNS * ARMS_ALONE, 0, 0, &belief.likelihood);
  double context[D * RUNS * ARMS_ALONE], p[RUNS * ARMS_ALONE];
  int64_t fallbacks[RUNS * ARMS_ALONE] = {0};
  for (int i = 0; i < D * RUNS * ARMS_ALONE; i++) context[i] = 0.3 + i / (RUNS * ARMS_ALONE);
  for (int r = 0; r < 2; r++) {
    Rule rule = make_rule(&memory, &belief, 1, &rules[r]);
    double count[ARMS_ALONE] = {0};
    int arm[RUNS], degrees;
    rule.per_arm = true;
    rule_probabilities(
        &rule,
        &(RuleChoice){.history = &belief.history, .round = 1, .arms.count = ARMS_ALONE, .features = context},
        p, fallbacks);
    for (int i = 0; i < RUNS * ARMS_ALONE; i++) CU_ASSERT_EQUAL(p[i], 1.0 / ARMS_ALONE);
    for (uint32_t round = 1; round <= 1000; round++) {
      rule_choose(
          &rule,
          &(RuleChoice){
              .history = &belief.history, .round = round, .arms.count = ARMS_ALONE, .features = context},
          arm, fallbacks);
      for (int b = 0; b < RUNS; b++) count[arm[b]]++;
    }
    CU_ASSERT(chi_squared(ARMS_ALONE, p, count, 1000 * RUNS, &degrees) < most_chi_squared(degrees));
  }
}

/* Checks a posterior for each of two arms: the difference of two independent Gaussians, within five standard
 * errors of 20 000 draws; a rule that draws nothing is certain of the larger mean. */
static void test_per_arm(void) {
  SCRATCH_ARENA(memory);
  enum { ARMS_ALONE = 2, DRAWS = 20000 };
  static const char *const draws[] = {"propensity_draws=20000"}, *const greedy[] = {"rule=greedy"};
  Belief belief;
  make_belief(&memory, 1, RUNS * ARMS_ALONE, &belief);
  double context[D * RUNS * ARMS_ALONE], p[RUNS * ARMS_ALONE], sure[RUNS * ARMS_ALONE];
  int64_t fallbacks[RUNS * ARMS_ALONE] = {0};
  Rng rng = fixture_rng(0, 4002);
  rng_normal(&rng, D * RUNS * ARMS_ALONE, context);
  Rule rule = make_rule(&memory, &belief, 1, draws), certain = make_rule(&memory, &belief, 1, greedy);
  rule.per_arm = certain.per_arm = true;
  rule_probabilities(
      &rule,
      &(RuleChoice){.history = &belief.history, .round = 1, .arms.count = ARMS_ALONE, .features = context}, p,
      fallbacks);
  rule_probabilities(
      &certain,
      &(RuleChoice){.history = &belief.history, .round = 1, .arms.count = ARMS_ALONE, .features = context},
      sure, fallbacks);
  for (uint32_t b = 0; b < RUNS; b++) {
    double mean[ARMS_ALONE], variance[ARMS_ALONE], x[D];
    for (uint32_t k = 0; k < ARMS_ALONE; k++) {
      for (int i = 0; i < D; i++) x[i] = context[i * RUNS * ARMS_ALONE + (int)(b * ARMS_ALONE + k)];
      project(&belief, b * ARMS_ALONE + k, x, &mean[k], &variance[k]);
    }
    const double first = above_zero(mean[0] - mean[1], variance[0] + variance[1]);
    CHECK_NEAR(p[2 * b], first, 5 * sqrt(0.25 / DRAWS));
    CU_ASSERT(sure[2 * b] == (mean[0] > mean[1]) && sure[2 * b + 1] == (mean[1] > mean[0]));
  }
}

/* Checks that a settled rule has the probabilities of the round in which it settled, to the bit, for whatever
 * arms and in whatever round, although the history changes; 300 draws are more than one part. */
static void test_settled(void) {
  SCRATCH_ARENA(memory);
  static const char *const sets[][2] = {{"rule=thompson", "propensity_draws=300"},
                                        {"rule=greedy", "propensity_draws=300"}};
  static const int LATER = 9;
  Belief belief;
  for (int components = 1; components <= 3; components += 2) {
    make_belief(&memory, components, RUNS, &belief);
    const History empty = fixture_history(&memory, D, RUNS, 0, 0, &belief.likelihood);
    for (int r = 0; r < 2; r++)
      for (int set = 0; set < SETS; set++) {
        double features[MOST_ARMS * D * RUNS], fresh[RUNS * MOST_ARMS], settled[RUNS * MOST_ARMS];
        int64_t fallbacks[RUNS] = {0};
        RuleChoice choice = {
            .history = &belief.history, .round = 7, .arms.count = ARMS[set], .features = features};
        Rule rule = make_rule_for(&memory, &belief, RULE_SETTLES, 2, sets[r]);
        Rule other = make_rule(&memory, &belief, 2, sets[r]);
        make_arms((uint32_t)set, ARMS[set], features);
        rule_settle(&rule, &choice, fallbacks);
        for (int more = 0; more < LATER; more++) {
          choice.history = &belief.history, choice.round = 7;
          rule_probabilities(&other, &choice, fresh, fallbacks);
          choice.history = &empty, choice.round = (uint32_t)more;
          rule_probabilities(&rule, &choice, settled, fallbacks);
          CU_ASSERT_EQUAL(memcmp(fresh, settled, (size_t)(RUNS * ARMS[set]) * sizeof *fresh), 0);
          make_arms((uint32_t)(SETS + more), ARMS[set], features);
        }
      }
  }
}

static void test_refused(void) {
  SCRATCH_ARENA(memory);
  static const char *const sets[] = {"floor=0.3"};
  Config *options;
  CHECK_OK(config_options(&memory, "test", policy_keys("ts"), 1, sets, &options));
  CHECK_OK(rule_check_arms(options, 3));
  CHECK_FAILS(rule_check_arms(options, 4), STATUS_INPUT, "4 arms cannot all have this probability");
}

int main(void) {
  CU_TestInfo tests[] = {{"arms are picked by their probabilities", test_picked},
                         {"the rule takes arms by these probabilities", test_taken},
                         {"two arms under one Gaussian", test_pair},
                         {"a posterior for each arm", test_per_arm},
                         {"arms that are the same", test_ties},
                         {"a posterior without data for each arm", test_per_arm_without_data},
                         {"a belief that has settled", test_settled},
                         {"what is refused", test_refused},
                         CU_TEST_INFO_NULL};
  return harness_run("propensity", tests);
}
