/* Policies whose mean reward is a network: the arm that they choose, what they refuse, and that they learn a
 * reward that no linear model can. */
#include "core/arena.h"
#include "model/network/network_plain.h"
#include "sampler_fixture.h"

#include "policy/policies.h"
#include "policy/policy.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_belief.h"
#include "study/study_problem.h"

/* Checks that the chosen arm is that of the largest output, computed in plain double precision. */
static void test_arms(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, K = 70, B = 3 };
  const int hidden[] = {6};
  const NetworkShape shape = network_shape(D, 1, hidden, 1);
  const int p = (int)network_parameters(&shape);
  Problem problem = {.d = D, .arms = K};
  World world = {.problem = &problem, .runs = B};
  double *theta = fixture_new((size_t)(p * B), sizeof *theta);
  Rng rng = fixture_rng(1, 8001);
  NetworkArms arms;
  int arm[B];
  world.features = fixture_new(K * D * B, sizeof *world.features);
  rng_normal(&rng, K * D * B, world.features);
  rng_normal(&rng, p * B, theta);
  CHECK_OK(policy_network_arms_create(&memory, &shape, K, &arms));
  policy_network_arms_best(&arms, &world, theta, arm);
  for (int b = 0; b < B; b++) {
    double column[64], phi[D], top = -INFINITY, taken = 0;
    for (int i = 0; i < p; i++) column[i] = theta[i * B + b];
    for (int k = 0; k < K; k++) {
      double u;
      for (int i = 0; i < D; i++) phi[i] = world.features[(k * D + i) * B + b];
      network_plain_forward(&shape, column, phi, &u);
      if (k == arm[b]) taken = u;
      top = fmax(top, u);
    }
    CHECK_NEAR(taken, top, 1e-5 * (1 + fabs(top)));
  }
  free(world.features);
  free(theta);
}

/* ---- a bandit */

static StudyFile *parse(const char *policy) {
  char text[400];
  StudyFile *study;
  snprintf(text, sizeof text,
           "name: t\nproblem: {family: pool, reward: quadratic, dimension: 2, arms: 10, rounds: 200, noise: "
           "0.3}\npolicies: [%s]\n",
           policy);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &study));
  return study;
}

/* Plays one block as the bandit study does: regret[runs]. */
static void play(const char *policy, int runs, double *regret) {
  SCRATCH_ARENA(memory);
  StudyFile *study = parse(policy);
  const ConfigPolicy *chosen = &study->policies[0];
  PolicyMethod method;
  Problem problem;
  World world;
  Belief belief;
  Prior prior;
  History history;
  Policy player;
  double *phi = fixture_new((size_t)(2 * runs), sizeof *phi), *y = fixture_new((size_t)runs, sizeof *y);
  double *lost = fixture_new((size_t)runs, sizeof *lost);
  int *arm = fixture_new((size_t)runs, sizeof *arm);
  int64_t *fallbacks = fixture_new((size_t)runs, sizeof *fallbacks);
  ASSERT(policy_find(chosen->name, &method));
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CHECK_OK(world_create(&problem, 0, 0, runs, &world));
  CHECK_OK(study_belief_create(study->settings[0], chosen, &problem, 0, &belief));
  CHECK_OK(study_belief_prior(&memory, &belief, &problem, "", &prior));
  const PolicySetup setup = {.prior = &prior,
                             .likelihood = &belief.likelihood,
                             .problem = &problem,
                             .options = chosen->options,
                             .seed = FIXTURE_SEED,
                             .runs = runs};
  CHECK_OK(policy_begin(&memory, &method, &setup, &history, &player));
  memset(regret, 0, (size_t)runs * sizeof *regret);
  for (int k = 1; k <= problem.rounds; k++) {
    world_advance(&world, (uint32_t)k);
    policy_choose(&player, &world, &history, arm, fallbacks);
    world_play(&world, arm, phi, y, lost);
    history_record(&history, arm, phi, y);
    policy_observe(&player, &history, fallbacks);
    for (int b = 0; b < runs; b++) regret[b] += lost[b];
  }
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(study);
  void *blocks[] = {phi, y, lost, arm, fallbacks};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Checks that the network beats a linear model on rewards (phi' theta*)^2, which no linear function of phi
 * follows. Paired with it, the network's regret is lower by more than three standard errors. */
static void test_network_beats_linear(void) {
  enum { RUNS = 144 };
  static const char *const networks[] = {
      "{name: lmc, steps: 20, model: network, hidden: [10]}",
      "{name: vits2, steps: 3, model: network, hidden: [8]}",
  };
  double linear[RUNS], regret[RUNS];
  play("lints", RUNS, linear);
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
    double mean = 0, square = 0;
    play(networks[i], RUNS, regret);
    for (int b = 0; b < RUNS; b++) {
      const double gain = linear[b] - regret[b];
      mean += gain / RUNS, square += gain * gain / RUNS;
    }
    const double error = sqrt((square - mean * mean) / RUNS);
    if (!(mean > 3 * error)) printf("\n    %s: %.3g +- %.2g\n", networks[i], mean, error);
    CU_ASSERT(mean > 3 * error);
  }
}

/* ---- refusals */

static void refuse(const char *policy, const char *part) {
  StudyFile *study = parse(policy);
  const ConfigPolicy *chosen = &study->policies[0];
  PolicyMethod method;
  Problem problem;
  Belief belief;
  ASSERT(policy_find(chosen->name, &method));
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  Status status = policy_check(&method, chosen->options, &problem);
  if (status == STATUS_OK) status = study_belief_create(study->settings[0], chosen, &problem, 0, &belief);
  if (status == STATUS_OK) status = study_belief_check(&belief, method.sampler, &problem);
  CHECK_FAILS(status, STATUS_INPUT, part);
  problem_destroy(&problem);
  config_study_free(study);
}

static void test_refusals(void) {
  refuse("{name: ts, model: network}", "sampler ts needs a mean reward that depends on phi' theta");
  refuse("{name: vts, model: network}", "sampler vts needs a mean reward that depends on phi' theta");
  refuse("{name: mixts, model: network}", "prior: standard");
  refuse("{name: lmc, model: network, prior: exact}", "prior: standard");
  refuse("{name: lmc, model: network, posterior: per_arm}", "posterior must be shared");
  refuse("{name: lmc, model: network, hidden: [1, 1, 1, 1, 1, 1, 1, 1]}", "at most 7 hidden layers");
}

int main(void) {
  CU_TestInfo tests[] = {{"the arm of the largest output", test_arms},
                         {"a network beats the linear model on quadratic rewards", test_network_beats_linear},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  return harness_run("network_arms", tests);
}
