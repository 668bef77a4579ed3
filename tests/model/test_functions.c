/* A likelihood that is known by a function of theta: Gaussian rewards as such a function against the evidence
 * of the same rewards, for every view. */
#include "harness.h"

#include "model/history/history_density.h"

enum { D = 3, RUNS = 3, N = 4, DRAWS = 5000 /* more than one call takes */, LANES = RUNS * DRAWS };
static const double NOISE = 0.7;

/* The rewards of each run, and what the function was asked. */
typedef struct {
  double phi[RUNS][N][D], y[RUNS][N];
  int calls, most; /* most: lanes of a call */
} World;

static void world_density(void *context, int run, int n, const double *theta, double *value,
                          double *gradient) {
  World *world = context;
  world->calls++;
  world->most = n > world->most ? n : world->most;
  for (int k = 0; k < n; k++) {
    value[k] = 5; /* any constant */
    for (int i = 0; gradient && i < D; i++) gradient[i * n + k] = 0;
    for (int l = 0; l < N; l++) {
      double off = world->y[run][l];
      for (int i = 0; i < D; i++) off -= world->phi[run][l][i] * theta[i * n + k];
      value[k] -= off * off / (2 * NOISE * NOISE);
      for (int i = 0; gradient && i < D; i++)
        gradient[i * n + k] += world->phi[run][l][i] * off / (NOISE * NOISE);
    }
  }
}

static void world_draw(World *world, History *evidence, History *functions) {
  Rng rng = {.key = rng_key(3, RNG_TEST)};
  *world = (World){0};
  rng_normal(&rng, RUNS * N * D, &world->phi[0][0][0]);
  rng_normal(&rng, RUNS * N, &world->y[0][0]);
  for (int l = 0; l < N; l++) {
    double phi[D * RUNS], y[RUNS];
    for (int b = 0; b < RUNS; b++) {
      y[b] = world->y[b][l];
      for (int i = 0; i < D; i++) phi[i * RUNS + b] = world->phi[b][l][i];
    }
    history_record(evidence, NULL, phi, y);
    history_record(functions, NULL, NULL, NULL);
  }
}

/* Compares values, up to a constant of each run, and gradients in a view of both histories. */
static void check_view(HistoryDensity *density, HistoryView view, const History *functions) {
  enum { ALL = D * LANES };
  static double z[ALL], value[LANES], gradient[ALL], expected[LANES], expected_gradient[ALL];
  const int lanes = view.lanes;
  double constant[RUNS] = {0};
  bool seen[RUNS] = {false};
  Rng rng = {.key = rng_key(4, RNG_TEST)};
  rng_normal(&rng, D * lanes, z);
  history_density_at(density, &view, NULL);
  history_density(density, z, expected, expected_gradient);
  view.history = functions;
  history_density_at(density, &view, NULL);
  history_density(density, z, value, gradient);
  for (int n = 0; n < lanes; n++) {
    const int run = (view.first + n) / view.draws;
    if (!seen[run]) constant[run] = value[n] - expected[n];
    seen[run] = true;
    CHECK_NEAR(value[n] - expected[n], constant[run], 1e-10);
    for (int i = 0; i < D; i++) CHECK_NEAR(gradient[i * lanes + n], expected_gradient[i * lanes + n], 1e-10);
  }
  history_density(density, z, expected, NULL);
  for (int n = 0; n < lanes; n++) CU_ASSERT_EQUAL(value[n], expected[n]);
}

static void test_views(void) {
  SCRATCH_ARENA(memory);
  const double shift[D] = {0.5, -1, 2}, scale[D] = {2, 0.3, 1};
  static World world;
  const LikelihoodFunctions given = {.density = world_density, .context = &world, .has_gradient = true};
  const Likelihood gaussian = {.ops = likelihood_find("gaussian"), .noise = NOISE},
                   functions = {.ops = &likelihood_functions, .functions = &given};
  History evidence, history, copy;
  HistoryDensity density;
  CU_ASSERT_FALSE(likelihood_is_conjugate(&functions));
  CU_ASSERT_FALSE(likelihood_has_noise(&functions));
  CHECK_OK(history_create(&memory, D, RUNS, &gaussian, &evidence));
  CHECK_OK(history_create(&memory, D, RUNS, &functions, &history));
  CHECK_OK(history_create(&memory, D, 1, &functions, &copy));
  CHECK_OK(history_density_create(&memory, D, RUNS, &gaussian, &density));
  world_draw(&world, &evidence, &history);
  CU_ASSERT_EQUAL(history_observations(&history, 1), N);
  const HistoryView all = history_view(&evidence, DRAWS, 0, LANES),
                    some = history_view(&evidence, 7, 5, 11), /* parts of all three runs */
      single = history_view(&evidence, 1, 0, RUNS);
  check_view(&density, all, &history);
  CU_ASSERT(world.most > 1 && world.most < DRAWS);
  check_view(&density, some, &history);
  check_view(&density, history_view_in(some, shift, scale), &history);
  check_view(&density, history_view_in(single, shift, NULL), &history);
  evidence.temper = history.temper = 0.3;
  check_view(&density, history_view_in(some, shift, scale), &history);
  history_gather(&history, (int[]){0}, &copy);
  CU_ASSERT_EQUAL(history_observations(&copy, 0), N);
  CU_ASSERT_EQUAL(copy.temper, 0.3);
  history_clear(&copy);
  CU_ASSERT_EQUAL(history_observations(&copy, 0), 0);
}

/* Checks that a few points are one call, and that no gradient is needed. */
static void test_few(void) {
  SCRATCH_ARENA(memory);
  static World world;
  const LikelihoodFunctions given = {.density = world_density, .context = &world};
  const Likelihood functions = {.ops = &likelihood_functions, .functions = &given};
  History history;
  static double z[D * 64], value[64];
  CHECK_OK(history_create(&memory, D, 1, &functions, &history));
  const HistoryView view = history_points(&history, 0, 64);
  history_log_likelihood(&view, z, value, NULL);
  CU_ASSERT_EQUAL(world.calls, 1);
  CU_ASSERT_EQUAL(value[63], 5);
}

int main(void) {
  CU_TestInfo tests[] = {{"values and gradients in every view", test_views},
                         {"one call for a few points", test_few},
                         CU_TEST_INFO_NULL};
  return harness_run("functions", tests);
}
