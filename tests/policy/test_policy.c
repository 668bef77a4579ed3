/* Policies (walks the registry): every one runs, is deterministic and is not beaten by chance; LinUCB and
 * epsilon-greedy against their formulas. */
#include "core/arena.h"
#include "harness.h"

#include "policy/policy.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <string.h>

enum { B = 24, K = 12, ROUNDS = 40 };

typedef struct {
  StudyFile *study;
  Problem problem;
  World world;
  History history;
  Policy policy;
} Game;

static void game_begin(Arena *memory, const char *policy, const Prior *prior, Game *game) {
  char text[300];
  snprintf(text, sizeof text, "name: t\nproblem: {arms: %d, rounds: %d}\npolicies: [%s]\n", K, ROUNDS,
           policy);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &game->study));
  CHECK_OK(study_problem_create(game->study->settings[0], &game->problem));
  CHECK_OK(world_create(&game->problem, 0, 0, B, &game->world));
  CHECK_OK(history_create(memory, game->problem.d, B, &game->problem.likelihood, &game->history));
  PolicyMethod method;
  CU_ASSERT_TRUE(policy_find(game->study->policies[0].name, &method));
  PolicySetup setup = {.prior = prior,
                       .problem = &game->problem,
                       .options = game->study->policies[0].options,
                       .seed = 3,
                       .runs = B};
  CHECK_OK(policy_create(memory, &method, &setup, &game->policy));
}

static void game_end(Game *game) {
  world_destroy(&game->world);
  problem_destroy(&game->problem);
  config_study_free(game->study);
}

/* Returns the mean regret of a run over the game; the arms of every round go to arms[ROUNDS, B]. */
static double play(Game *game, int *arms) {
  double phi[2 * B], y[B], regret[B], sum = 0;
  int64_t fallbacks[B] = {0};
  for (int k = 1; k <= ROUNDS; k++) {
    int *arm = arms + (k - 1) * B;
    world_advance(&game->world, (uint32_t)k);
    policy_choose(&game->policy, &game->world, &game->history, arm, fallbacks);
    for (int b = 0; b < B; b++) CU_ASSERT_TRUE(arm[b] >= 0 && arm[b] < K);
    world_play(&game->world, arm, phi, y, regret);
    history_record(&game->history, NULL, phi, y);
    for (int b = 0; b < B; b++) sum += regret[b] / B;
  }
  return sum;
}

/* Makes a mixture of one component: every sampler fits it, including its exact chain, and so does `auto`,
 * because a sampler was chosen with it. */
static Prior make_prior(Arena *memory) {
  Prior prior;
  PriorFit chain = {.schedule.stages = 20, .schedule.alpha = 0.9};
  CHECK_OK(prior_standard(memory, 2, &chain, &prior));
  prior.auto_sampler = "mixts";
  return prior;
}

static void test_every_policy(void) {
  SCRATCH_ARENA(memory);
  static int arms[ROUNDS * B], again[ROUNDS * B];
  Prior prior = make_prior(&memory);
  Game game;
  game_begin(&memory, "random", NULL, &game);
  double chance = play(&game, arms);
  game_end(&game);
  PolicyMethod method;
  for (int i = 0; policy_method(i, &method); i++) {
    /* Not if it needs more than this program (program_python.py), or a log (program_replay.py). */
    if (method.ops && (method.ops->ready || method.ops->check)) continue;
    game_begin(&memory, method.name, method.sampler ? &prior : NULL, &game);
    double regret = play(&game, arms);
    game_end(&game);
    game_begin(&memory, method.name, method.sampler ? &prior : NULL, &game);
    play(&game, again);
    game_end(&game);
    CU_ASSERT_EQUAL(memcmp(arms, again, sizeof arms), 0);
    if (!strcmp(method.name, "oracle")) CHECK_NEAR(regret, 0, 0);
    if (!strcmp(method.name, "random")) CHECK_NEAR(regret, chance, 0);
    if (regret > chance * 1.001) printf("\n    %s: regret %.3g, random %.3g\n", method.name, regret, chance);
    CU_ASSERT_TRUE(regret <= chance * 1.001);
  }
}

/* Computes dense 2 x 2 ridge regression of one run: theta and the inverse of I + Lambda. */
static void ridge(const Game *game, int b, double *theta, double *inverse) {
  double a[4 * B], v[2 * B];
  history_evidence(&(HistoryView){&game->history, 1, 0, B, NULL, NULL}, a, v);
  double m00 = 1 + a[b], m01 = a[B + b], m11 = 1 + a[3 * B + b], determinant = m00 * m11 - m01 * m01;
  inverse[0] = m11 / determinant, inverse[1] = -m01 / determinant, inverse[2] = m00 / determinant;
  theta[0] = inverse[0] * v[b] + inverse[1] * v[B + b];
  theta[1] = inverse[1] * v[b] + inverse[2] * v[B + b];
}

/* Checks that LinUCB chooses the arm of the highest bound; with an immense width that of the largest
 * uncertainty, with width 0 the greedy one. */
static void test_linucb(void) {
  SCRATCH_ARENA(memory);
  static const double widths[] = {0, 1, 1e6};
  static int arms[ROUNDS * B];
  for (int w = 0; w < 3; w++) {
    char policy[80];
    Game game;
    snprintf(policy, sizeof policy, "{name: linucb, width: %g}", widths[w]);
    game_begin(&memory, policy, NULL, &game);
    play(&game, arms);
    int arm[B];
    int64_t fallbacks[B] = {0};
    policy_choose(&game.policy, &game.world, &game.history, arm, fallbacks);
    for (int b = 0; b < B; b++) {
      double theta[2], inverse[3], top = -INFINITY, taken = 0, longest = 0;
      ridge(&game, b, theta, inverse);
      for (int k = 0; k < K; k++)
        longest = fmax(longest,
                       hypot(game.world.features[2 * k * B + b], game.world.features[(2 * k + 1) * B + b]));
      double width = widths[w] * (sqrt(2) + sqrt(2 * log((1 + ROUNDS * longest * longest) * ROUNDS)));
      for (int k = 0; k < K; k++) {
        double x = game.world.features[(2 * k) * B + b], y = game.world.features[(2 * k + 1) * B + b];
        double bound = x * theta[0] + y * theta[1] +
                       width * sqrt(x * x * inverse[0] + 2 * x * y * inverse[1] + y * y * inverse[2]);
        top = fmax(top, bound);
        if (k == arm[b]) taken = bound;
      }
      CHECK_NEAR(taken, top, 1e-9 * fmax(1, widths[w]));
    }
    game_end(&game);
  }
}

/* Checks that with epsilon 0 every choice is greedy, and otherwise the share of choices that are not is
 * epsilon / 2 sqrt(n / k) (1 - 1 / K). */
static void test_egreedy(void) {
  SCRATCH_ARENA(memory);
  static const double epsilons[] = {0, 0.2};
  for (int e = 0; e < 2; e++) {
    char policy[80];
    Game game;
    snprintf(policy, sizeof policy, "{name: egreedy, epsilon: %g}", epsilons[e]);
    game_begin(&memory, policy, NULL, &game);
    double phi[2 * B], y[B], regret[B], expected = 0, explored = 0;
    int64_t fallbacks[B] = {0};
    for (int k = 1; k <= ROUNDS; k++) {
      int arm[B], best[B];
      double theta[2 * B];
      world_advance(&game.world, (uint32_t)k);
      policy_choose(&game.policy, &game.world, &game.history, arm, fallbacks);
      for (int b = 0; b < B; b++) {
        double one[2], inverse[3];
        ridge(&game, b, one, inverse);
        theta[b] = one[0], theta[B + b] = one[1];
      }
      world_greedy(&game.world, theta, NULL, best);
      for (int b = 0; b < B; b++) explored += arm[b] != best[b];
      expected += B * fmin(1, epsilons[e] / 2 * sqrt((double)ROUNDS / k)) * (1 - 1.0 / K);
      world_play(&game.world, arm, phi, y, regret);
      history_record(&game.history, NULL, phi, y);
    }
    CHECK_NEAR(explored, expected, 4 * sqrt(expected)); /* binomial, 4 standard deviations */
    game_end(&game);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"every policy: deterministic, in range, not worse than chance", test_every_policy},
                         {"LinUCB takes the highest bound", test_linucb},
                         {"epsilon-greedy explores as often as it should", test_egreedy},
                         CU_TEST_INFO_NULL};
  return harness_run("policy", tests);
}
