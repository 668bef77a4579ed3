/* A theta* and a posterior for each arm: the world's draws, Thompson sampling against separate posteriors
 * computed here arm by arm, samplers that carry a state, independence of the block, refusals. */
#include "core/arena.h"
#include "glm_fixture.h"

#include "policy/policy.h"
#include "problem/embedding/embedding_file.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <unistd.h>

enum { D = 3, K = 5, B = 6, ROUNDS = 40, SEED = 3 };

typedef struct {
  StudyFile *study;
  Problem problem;
  Likelihood likelihood; /* what the policy assumes */
  World world;
  History history;
  Policy policy;
  int runs;
} Game;

static void open_study(const char *problem, const char *likelihood, const char *policy, StudyFile **out) {
  char text[500];
  snprintf(text, sizeof text, "name: t\nproblem: {%s}\nlikelihood: %s\npolicies: [%s]\n", problem, likelihood,
           policy);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, out));
}

static const char OWN[] =
    "theta: gaussian, dimension: 3, arms: 5, rounds: 30, features: gaussian, unknown: per_arm";

static void game_begin(Arena *memory, const char *likelihood, const char *policy, const Prior *prior,
                       uint32_t first_run, int runs, Game *game) {
  memset(game, 0, sizeof *game);
  game->runs = runs;
  open_study(OWN, likelihood, policy, &game->study);
  const ConfigPolicy *chosen = &game->study->policies[0];
  PolicyMethod method;
  CU_ASSERT_TRUE(policy_find(chosen->name, &method));
  CHECK_OK(study_problem_create(game->study->settings[0], &game->problem));
  CHECK_OK(world_create(&game->problem, 0, first_run, runs, &game->world));
  game->likelihood = policy_likelihood(&method, chosen->options, &game->problem);
  PolicySetup setup = {.prior = prior,
                       .likelihood = &game->likelihood,
                       .problem = &game->problem,
                       .options = chosen->options,
                       .seed = SEED,
                       .first_run = first_run,
                       .runs = runs};
  CHECK_OK(policy_history(memory, &method, &setup, &game->history));
  CHECK_OK(history_reserve(&game->history, ROUNDS));
  CHECK_OK(policy_create(memory, &method, &setup, &game->policy));
}

static void game_end(Game *game) {
  world_destroy(&game->world);
  problem_destroy(&game->problem);
  config_study_free(game->study);
}

/* Plays one round; what was seen goes to phi[D, runs] and y[runs]. Returns the summed regret. */
static double play_round(Game *game, int round, int *arm, double *phi, double *y) {
  double regret[B], sum = 0;
  int64_t fallbacks[B] = {0};
  world_advance(&game->world, (uint32_t)round);
  policy_choose(&game->policy, &game->world, &game->history, arm, fallbacks);
  world_play(&game->world, arm, phi, y, regret);
  history_record(&game->history, arm, phi, y);
  policy_observe(&game->policy, &game->history, fallbacks);
  for (int b = 0; b < game->runs; b++) {
    CU_ASSERT_TRUE(arm[b] >= 0 && arm[b] < K);
    CU_ASSERT_EQUAL(fallbacks[b], 0);
    sum += regret[b];
  }
  return sum;
}

static double play(Game *game, int *arms /* [ROUNDS, runs] */) {
  double phi[D * B], y[B], sum = 0;
  for (int k = 1; k <= ROUNDS; k++) sum += play_round(game, k, arms + (k - 1) * game->runs, phi, y);
  return sum;
}

static Prior make_prior(Arena *memory) {
  Prior prior;
  PriorFit chain = {.schedule.stages = 20, .schedule.alpha = 0.9};
  CHECK_OK(prior_standard(memory, D, &chain, &prior));
  return prior;
}

/* ---- Thompson sampling against K posteriors for each run */

/* Draws theta = L^-T (L^-1 h + z), that is, mean + R z with R R' = covariance and R = L^-T upper triangular,
 * which is unique. */
static void draw(const double *mean, const double *precision, const double *z, double *theta) {
  double l[D][D] = {{0}};
  for (int i = 0; i < D; i++)
    for (int j = 0; j <= i; j++) {
      double sum = precision[i * D + j];
      for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
    }
  for (int i = D - 1; i >= 0; i--) {
    theta[i] = z[i];
    for (int k = i + 1; k < D; k++) theta[i] -= l[k][i] * theta[k];
    theta[i] /= l[i][i];
  }
  for (int i = 0; i < D; i++) theta[i] += mean[i];
}

/* Computes ridge regression from the rows. */
static void ridge(const Rows *rows, double *mean, double *precision) {
  double covariance[D * D], h[D] = {0};
  for (int i = 0; i < D * D; i++) precision[i] = i % (D + 1) == 0;
  for (int l = 0; l < rows->n; l++)
    for (int i = 0; i < D; i++) {
      h[i] += rows->phi[l][i] * rows->y[l];
      for (int j = 0; j < D; j++) precision[i * D + j] += rows->phi[l][i] * rows->phi[l][j];
    }
  fixture_invert(D, precision, covariance);
  for (int i = 0; i < D; i++) {
    mean[i] = 0;
    for (int j = 0; j < D; j++) mean[i] += covariance[i * D + j] * h[j];
  }
}

static void reference_draw(const Rows *rows, uint32_t lane, uint32_t round, double *theta) {
  static const double identity[D * D] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  double mean[D], precision[D * D], covariance[D * D], uniform, z[D];
  if (likelihood_is_conjugate(&rows->likelihood)) {
    ridge(rows, mean, precision);
  } else {
    newton(rows, ZEROS, ONES, ZEROS, identity, mean, covariance);
    fixture_invert(D, covariance, precision);
  }
  Rng rng = {.key = rng_key(SEED, RNG_AGENT), .run = lane, .round = round};
  rng_uniform(&rng, 1, &uniform); /* of a mixture's component */
  rng_normal(&rng, D, z);
  draw(mean, precision, z, theta);
}

static void test_separate_posteriors(void) {
  SCRATCH_ARENA(memory);
  static const char *const likelihoods[] = {"gaussian", "logistic", "poisson"};
  static Rows rows[B][K];
  const uint32_t first_run = 11;
  Prior prior = make_prior(&memory);
  for (int f = 0; f < 3; f++) {
    Game game;
    int arm[B], different = 0;
    double phi[D * B], y[B];
    game_begin(&memory, likelihoods[f], "{name: ts, posterior: per_arm, approximation: laplace}", &prior,
               first_run, B, &game);
    for (int b = 0; b < B; b++)
      for (int k = 0; k < K; k++) rows[b][k] = (Rows){.d = D, .likelihood = game.problem.likelihood};
    for (int round = 1; round <= ROUNDS; round++) {
      play_round(&game, round, arm, phi, y);
      for (int b = 0; b < B; b++) {
        double best = -INFINITY;
        int expected = -1;
        for (int k = 0; k < K; k++) {
          double theta[D], score = 0;
          reference_draw(&rows[b][k], (first_run + (uint32_t)b) * K + (uint32_t)k, (uint32_t)round, theta);
          for (int i = 0; i < D; i++) score += phi[i * B + b] * theta[i];
          if (score > best) best = score, expected = k;
        }
        different += arm[b] != expected;
        Rows *own = &rows[b][arm[b]];
        for (int i = 0; i < D; i++) own->phi[own->n][i] = phi[i * B + b];
        own->y[own->n++] = y[b];
      }
    }
    CU_ASSERT_EQUAL(different, 0);
    game_end(&game);
  }
}

/* ---- samplers that carry a state and use no random numbers to move it, and one whose history forgets: K
 * samplers of one run each */

typedef struct {
  Sampler sampler;
  History history;
} Arm;

static void arm_create(Arena *memory, const Game *game, const char *name, const Prior *prior, uint32_t lane,
                       Arm *arm) {
  const Likelihood *likelihood = &game->problem.likelihood;
  SamplerSetup setup = {.prior = prior,
                        .likelihood = likelihood,
                        .runs = 1,
                        .draws = 1,
                        .seed = SEED,
                        .first_run = lane,
                        .options = game->study->policies[0].options};
  bool made;
  CHECK_OK(sampler_create(memory, sampler_find(name), &setup, &arm->sampler));
  CHECK_OK(sampler_history(memory, &setup, 1, &made, &arm->history));
  if (!made) CHECK_OK(history_create(memory, D, 1, likelihood, &arm->history));
  CHECK_OK(history_reserve(&arm->history, ROUNDS));
}

static void arm_draw(Arm *arm, uint32_t lane, uint32_t round, double *theta) {
  int64_t fallbacks = 0;
  RngLanes rng = {.key = rng_key(SEED, RNG_AGENT), .run = lane, .round = round, .draws = 1, .lanes = 1};
  sampler_sample(&arm->sampler, &arm->history, rng, 1, theta, &fallbacks);
}

static void test_carried_states(void) {
  SCRATCH_ARENA(memory);
  static const char *const names[] = {"rvga", "vts", "ts"}, *const options[] = {"", "", ", memory: filtered"},
                           *const likelihoods[] = {"gaussian", "logistic"};
  static Arm arms[B][K];
  const uint32_t first_run = 4;
  Prior prior = make_prior(&memory);
  for (int f = 0; f < 6; f++) {
    Game game;
    char policy[100];
    int arm[B], different = 0;
    double phi[D * B], y[B];
    snprintf(policy, sizeof policy, "{name: %s, posterior: per_arm%s}", names[f / 2], options[f / 2]);
    game_begin(&memory, likelihoods[f % 2], policy, &prior, first_run, B, &game);
    for (uint32_t b = 0; b < B; b++)
      for (uint32_t k = 0; k < K; k++)
        arm_create(&memory, &game, names[f / 2], &prior, (first_run + b) * K + k, &arms[b][k]);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
      play_round(&game, (int)round, arm, phi, y);
      for (uint32_t b = 0; b < B; b++) {
        double best = -INFINITY, one[D];
        int expected = -1;
        int64_t fallbacks = 0;
        for (uint32_t k = 0; k < K; k++) {
          double theta[D], score = 0;
          arm_draw(&arms[b][k], (first_run + b) * K + k, round, theta);
          for (int i = 0; i < D; i++) score += phi[i * B + (int)b] * theta[i];
          if (score > best) best = score, expected = (int)k;
        }
        different += arm[b] != expected;
        Arm *own = &arms[b][arm[b]];
        for (int i = 0; i < D; i++) one[i] = phi[i * B + (int)b];
        history_record(&own->history, NULL, one, &y[b]);
        sampler_observe(&own->sampler, &own->history, &fallbacks);
      }
    }
    CU_ASSERT_EQUAL(different, 0);
    for (int n = 0; n < B * K; n++) {
    }
    game_end(&game);
  }
}

static bool has_key(const SamplerOps *ops, const char *name) {
  for (const ConfigKey *key = sampler_keys(ops); key->name; key++)
    if (strcmp(key->name, name) == 0) return true;
  return false;
}

/* Checks that a state carried to a sampler of fewer runs, together with its history, gives the same draws
 * there. */
static void test_carry(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 70, FEW = 5, OFFSET = 63 };
  Prior prior = make_prior(&memory);
  Likelihood likelihood = glm("logistic");
  static double phi[D * MANY], y[MANY], theta[D * MANY], copy[D * FEW];
  static int64_t fallbacks[MANY];
  static const char *const several[] = {"components=3"};
  for (int m = 0; sampler_method(m / 2); m++) {
    const SamplerOps *ops = sampler_method(m / 2);
    if (!ops->carry || (m % 2 && !has_key(ops, "components"))) continue;
    Config *options;
    Sampler from, to;
    History history, gathered;
    int run[FEW];
    Rng rng = fixture_rng(0, 7000);
    CHECK_OK(config_options(&memory, "test", sampler_keys(ops), m % 2, several, &options));
    SamplerSetup setup = {.prior = &prior,
                          .likelihood = &likelihood,
                          .runs = MANY,
                          .draws = 1,
                          .seed = SEED,
                          .options = options};
    CHECK_OK(sampler_create(&memory, ops, &setup, &from));
    setup.runs = FEW;
    CHECK_OK(sampler_create(&memory, ops, &setup, &to));
    CHECK_OK(history_create(&memory, D, MANY, &likelihood, &history));
    CHECK_OK(history_reserve(&history, 3));
    CHECK_OK(history_create(&memory, D, FEW, &likelihood, &gathered));
    CHECK_OK(history_reserve(&gathered, 3));
    for (int l = 0; l < 3; l++) {
      rng_normal(&rng, D * MANY, phi);
      for (int b = 0; b < MANY; b++) y[b] = (b + l) % 2;
      history_record(&history, NULL, phi, y);
      sampler_observe(&from, &history, fallbacks);
    }
    for (int b = 0; b < FEW; b++) {
      run[b] = OFFSET + b;
      sampler_carry(&from, run[b], &to, b);
    }
    history_gather(&history, run, &gathered);
    RngLanes streams = {.key = rng_key(SEED, RNG_AGENT), .draws = 1, .lanes = MANY};
    sampler_sample(&from, &history, streams, 1, theta, fallbacks);
    streams.run = OFFSET, streams.lanes = FEW;
    sampler_sample(&to, &gathered, streams, 1, copy, fallbacks);
    for (int i = 0; i < D; i++)
      for (int b = 0; b < FEW; b++) CHECK_NEAR(copy[i * FEW + b], theta[i * MANY + OFFSET + b], 0);
  }
}

/* ---- every sampler */

/* Checks that the arms are the same however the runs are cut into blocks, and better than chance. */
static void test_every_sampler(void) {
  SCRATCH_ARENA(memory);
  static const char *const likelihoods[] = {"gaussian", "logistic"};
  static int whole[ROUNDS * B], part[ROUNDS * B];
  enum { FIRST = 2 };
  Prior prior = make_prior(&memory);
  for (int f = 0; f < 2; f++) {
    Game game;
    game_begin(&memory, likelihoods[f], "random", NULL, 0, B, &game);
    double chance = play(&game, whole);
    game_end(&game);
    game_begin(&memory, likelihoods[f], "oracle", NULL, 0, B, &game);
    CHECK_NEAR(play(&game, whole), 0, 0);
    game_end(&game);
    for (int m = 0; sampler_method(m); m++) {
      char policy[100], sentence[300];
      const SamplerOps *sampler = sampler_method(m);
      Likelihood likelihood = glm(likelihoods[f]);
      if (sampler_misfit(sampler, &prior, &likelihood, sizeof sentence, sentence)) continue;
      if (sampler->update && !sampler->carry && !sampler->restless) continue; /* refused, see below */
      snprintf(policy, sizeof policy, "{name: %s, posterior: per_arm}", sampler->name);
      game_begin(&memory, likelihoods[f], policy, &prior, 0, B, &game);
      double regret = play(&game, whole);
      game_end(&game);
      if (regret > 0.9 * chance)
        printf("\n    %s, %s: regret %.3g, random %.3g\n", sampler->name, likelihoods[f], regret, chance);
      CU_ASSERT_TRUE(regret <= 0.9 * chance);
      game_begin(&memory, likelihoods[f], policy, &prior, FIRST, B - FIRST, &game);
      play(&game, part);
      game_end(&game);
      int different = 0;
      for (int k = 0; k < ROUNDS; k++)
        for (int b = FIRST; b < B; b++) different += whole[k * B + b] != part[k * (B - FIRST) + b - FIRST];
      if (different) printf("\n    %s, %s: %d arms differ\n", sampler->name, likelihoods[f], different);
      CU_ASSERT_EQUAL(different, 0);
    }
  }
}

/* ---- worlds */

/* Checks that theta_k* are independent N(0, I), also across arms of a run, that the context is new in each
 * round, and that regret is the distance to the best expected reward. */
static void test_synthetic_world(void) {
  enum { RUNS = 4000 };
  StudyFile *study;
  Problem problem;
  World world;
  static double phi[D * RUNS], y[RUNS], regret[RUNS], before[D * RUNS];
  static int arm[RUNS];
  open_study(OWN, "gaussian", "random", &study);
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CHECK_OK(world_create(&problem, 0, 0, RUNS, &world));
  for (int p = 0; p < K * D; p++)
    for (int q = 0; q <= p; q++) {
      double mean = 0, moment = 0;
      for (int b = 0; b < RUNS; b++) {
        double x = world.theta[(p % D) * RUNS * K + b * K + p / D];
        double z = world.theta[(q % D) * RUNS * K + b * K + q / D];
        mean += x / RUNS, moment += x * z / RUNS;
      }
      CHECK_NEAR(mean, 0, 5 / sqrt(RUNS));
      CHECK_NEAR(moment, p == q, 5 * sqrt(p == q ? 2.0 : 1) / sqrt(RUNS)); /* five standard errors */
    }
  for (uint32_t round = 1; round <= 2; round++) {
    world_advance(&world, round);
    for (int b = 0; b < RUNS; b++) arm[b] = (b + (int)round) % K;
    world_play(&world, arm, phi, y, regret);
    double residual = 0;
    for (int b = 0; b < RUNS; b++) {
      double u[K] = {0}, best = -INFINITY;
      for (int k = 0; k < K; k++) {
        for (int i = 0; i < D; i++) u[k] += phi[i * RUNS + b] * world.theta[i * RUNS * K + b * K + k];
        best = fmax(best, u[k]);
      }
      CHECK_NEAR(regret[b], best - u[arm[b]], 1e-12);
      residual += (y[b] - u[arm[b]]) * (y[b] - u[arm[b]]) / RUNS;
      if (round == 2) CU_ASSERT_TRUE(fabs(phi[b] - before[b]) > 0);
    }
    CHECK_NEAR(residual, 1, 5 * sqrt(2.0 / RUNS));
    memcpy(before, phi, sizeof before);
  }
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(study);
}

enum { ITEMS = 60, USERS = 9 };
static char path[64];

/* Writes theta[item, i] = item + i / 8. */
static void write_items(void) {
  StoreFile *file;
  double theta[D * ITEMS], features[USERS * D];
  for (int item = 0; item < ITEMS; item++)
    for (int i = 0; i < D; i++) theta[i * ITEMS + item] = item + i / 8.0;
  for (int user = 0; user < USERS; user++)
    for (int i = 0; i < D; i++) features[user * D + i] = -user - i / 8.0;
  Embedding embedding = {
      .d = D, .theta = {.d = D, .n = ITEMS, .theta = theta}, .arms = USERS, .features = features, .noise = 1};
  CHECK_OK(embedding_create(path, "items", &embedding, NULL, &file));
  CHECK_OK(store_finish(file, STATUS_OK));
}

/* Checks that the arms of a run are different items, all equally often, and none that priors are fitted to,
 * and that every run has one user in a round. */
static void test_items(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3000, ARMS = 8, KEPT = 12 };
  StudyFile *study;
  Problem problem;
  World world;
  Samples samples;
  char keys[200];
  int count[ITEMS] = {0}, users[USERS] = {0}, learned = 0;
  write_items();
  snprintf(keys, sizeof keys, "family: embedding, file: %s, arms: %d, unknown: per_arm", path, ARMS);
  open_study(keys, "gaussian", "random", &study);
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CHECK_OK(world_create(&problem, 1, 0, RUNS, &world));
  for (int b = 0; b < RUNS; b++) {
    bool seen[ITEMS] = {false};
    for (int k = 0; k < ARMS; k++) {
      int item = (int)world.theta[b * ARMS + k];
      for (int i = 0; i < D; i++) CU_ASSERT_EQUAL(world.theta[(i * RUNS + b) * ARMS + k], item + i / 8.0);
      CU_ASSERT_FALSE(seen[item]);
      seen[item] = true;
      count[item]++;
    }
  }
  CHECK_OK(problem_training_samples(&memory, &problem, 1, -1, &samples));
  CU_ASSERT_EQUAL(samples.n, ITEMS - KEPT);
  for (int s = 0; s < samples.n; s++) learned += count[(int)samples.theta[s]];
  CU_ASSERT_EQUAL(learned, 0);
  /* An item is among 8 of 12 with probability 2 / 3: sd sqrt(3000 (2/3) (1/3)) = 26; five of them. */
  int kept = 0;
  for (int item = 0; item < ITEMS; item++)
    if (count[item] > 0) CHECK_NEAR(count[item], RUNS * 2 / 3.0, 5 * 26), kept++;
  CU_ASSERT_EQUAL(kept, KEPT);
  world_advance(&world, 1);
  for (int b = 0; b < RUNS; b++) users[(int)-world.features[b]]++;
  for (int user = 0; user < USERS; user++) /* sd sqrt(3000 (1/9) (8/9)) = 17 */
    CHECK_NEAR(users[user], RUNS / (double)USERS, 5 * 17.3);
  world_destroy(&world);
  problem_destroy(&problem);
  config_study_free(study);
  unlink(path);
}

/* Checks that the theta* of a run do not depend on the block. */
static void test_world_blocks(void) {
  StudyFile *study;
  Problem problem;
  World world, part;
  open_study(OWN, "gaussian", "random", &study);
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CHECK_OK(world_create(&problem, 0, 4, 5, &world));
  CHECK_OK(world_create(&problem, 0, 7, 1, &part));
  world_advance(&world, 3), world_advance(&part, 3);
  for (int i = 0; i < D; i++) {
    CU_ASSERT_EQUAL(world.features[i * 5 + 3], part.features[i]);
    for (int k = 0; k < K; k++) CU_ASSERT_EQUAL(world.theta[i * 5 * K + 3 * K + k], part.theta[i * K + k]);
  }
  world_destroy(&world);
  world_destroy(&part);
  problem_destroy(&problem);
  config_study_free(study);
}

/* Checks that a context is shaped as the first arm of a problem whose arms have their own features. */
static void test_shaped_context(void) {
  static const char shape[] = "theta: gaussian, dimension: 3, arms: 50, resample_arms: true, "
                              "condition_number: 10, unknown: %s";
  StudyFile *study[2];
  Problem problem[2];
  World world[2];
  for (int apart = 0; apart < 2; apart++) {
    char keys[200];
    snprintf(keys, sizeof keys, shape, apart ? "per_arm" : "shared");
    open_study(keys, "gaussian", "random", &study[apart]);
    CHECK_OK(study_problem_create(study[apart]->settings[0], &problem[apart]));
    CHECK_OK(world_create(&problem[apart], 0, 0, B, &world[apart]));
    world_advance(&world[apart], 1);
  }
  for (int i = 0; i < D * B; i++) CU_ASSERT_EQUAL(world[1].features[i], world[0].features[i]);
  for (int apart = 0; apart < 2; apart++) {
    world_destroy(&world[apart]);
    problem_destroy(&problem[apart]);
    config_study_free(study[apart]);
  }
}

/* ---- refusals */

static Status check(const char *keys, const char *policy) {
  StudyFile *study;
  Problem problem;
  PolicyMethod method;
  open_study(keys, "gaussian", policy, &study);
  ASSERT(policy_find(study->policies[0].name, &method));
  Status status = study_problem_create(study->settings[0], &problem);
  if (status == STATUS_OK) {
    status = policy_check(&method, study->policies[0].options, &problem);
    problem_destroy(&problem);
  }
  config_study_free(study);
  return status;
}

static void test_refusals(void) {
  static const char apart[] = "{name: ts, posterior: per_arm}";
  char few[200];
  CHECK_OK(check(OWN, apart));
  CHECK_OK(check(OWN, "random"));
  CHECK_OK(check("arms: 4", apart)); /* arms that stay */
  CHECK_FAILS(check(OWN, "{name: ts, posterior: shared}"), STATUS_INPUT, "set its option posterior: per_arm");
  CHECK_FAILS(check(OWN, "linucb"), STATUS_INPUT, "learns one theta for all arms");
  CHECK_FAILS(check(OWN, "egreedy"), STATUS_INPUT, "learns one theta for all arms");
  CHECK_FAILS(check("resample_arms: true", apart), STATUS_INPUT, "arms that stay the same");
  CHECK_FAILS(check("family: pool", apart), STATUS_INPUT, "arms that stay the same");
  CHECK_FAILS(check("family: pool, unknown: per_arm", "random"), STATUS_INPUT, "share one theta*");
  write_items();
  snprintf(few, sizeof few, "family: embedding, file: %s, arms: 13, unknown: per_arm", path);
  CHECK_FAILS(check(few, apart), STATUS_INPUT, "only 12 theta*");
  unlink(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"ts is K separate posteriors", test_separate_posteriors},
                         {"carried states are those of K separate samplers", test_carried_states},
                         {"a carried state gives the same draws", test_carry},
                         {"every sampler: blocks, better than chance", test_every_sampler},
                         {"synthetic world", test_synthetic_world},
                         {"items as arms", test_items},
                         {"worlds do not depend on the block", test_world_blocks},
                         {"a context of a given shape", test_shaped_context},
                         {"refusals", test_refusals},
                         CU_TEST_INFO_NULL};
  snprintf(path, sizeof path, "per-arm-%d.nc", (int)getpid());
  int failed = harness_run("per_arm", tests);
  unlink(path);
  return failed;
}
