/* The training of the stages of a diffusion prior: their start, their batches, their defaults. */
#include "harness.h"

#include "core/arena.h"
#include "model/network/network_kernel.h"
#include "model/prior/families.h"
#include "model/prior/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64, MOST = 3 };

static const double MEAN[MOST] = {0.5, -2, 0}, DEVIATION[MOST] = {1, 0.3, 5};

typedef struct {
  NetworkShape shape;
  size_t count;
  float *parameters, *workspace;
} Start;

static Start start_of(Arena *memory, int d, int hidden_count, const int *hidden, double bar) {
  Start start = {.shape = network_shape(d, hidden_count, hidden, d)};
  Rng rng = {.key = rng_key(3, RNG_TEST)};
  start.count = network_parameters(&start.shape);
  CHECK_OK(arena_new(memory, (void **)&start.parameters, start.count, sizeof *start.parameters));
  CHECK_OK(
      arena_new(memory, (void **)&start.workspace, network_workspace(&start.shape), sizeof *start.workspace));
  training_start(&start.shape, bar, MEAN, DEVIATION, &rng, start.parameters);
  return start;
}

/* Computes outputs for states of every size; x[d, LANES] too. */
static void outputs_of(const Start *start, float *x, float *y) {
  double normal[MOST * LANES];
  const int n = start->shape.width[0] * LANES;
  Rng rng = {.key = rng_key(4, RNG_TEST)};
  rng_normal(&rng, n, normal);
  for (int i = 0; i < n; i++) x[i] = (float)(2 * normal[i]);
  network_forward(&start->shape, start->parameters, LANES, x, y, start->workspace);
}

/* Checks that, where there is room for it, the start is the regression of eps on s = sqrt(bar) z + sqrt(1 -
 * bar) eps, coordinate by coordinate: slope Cov(eps, s) / Var(s), through the means. */
static void test_regression(void) {
  static const struct {
    int d, hidden_count, hidden[3];
  } cases[] = {{2, 0, {0}}, {1, 1, {4}}, {2, 2, {20, 20}}, {3, 3, {40, 12, 15}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (double bar = 0.05; bar < 1; bar += 0.45) {
      SCRATCH_ARENA(memory);
      float x[MOST * LANES], y[MOST * LANES];
      const Start start = start_of(&memory, cases[c].d, cases[c].hidden_count, cases[c].hidden, bar);
      outputs_of(&start, x, y);
      for (int i = 0; i < cases[c].d; i++)
        for (int n = 0; n < LANES; n++) {
          const double variance = bar * DEVIATION[i] * DEVIATION[i] + (1 - bar), mean = sqrt(bar) * MEAN[i];
          CHECK_NEAR(y[i * LANES + n], sqrt(1 - bar) * (x[i * LANES + n] - mean) / variance, 2e-5);
        }
    }
}

/* Checks that without room the network is 0; its hidden units are random all the same. */
static void test_no_room(void) {
  SCRATCH_ARENA(memory);
  float x[MOST * LANES], y[MOST * LANES];
  const Start start = start_of(&memory, 3, 2, (int[]){40, 11}, 0.5);
  outputs_of(&start, x, y);
  for (int k = 0; k < 3 * LANES; k++) CU_ASSERT_EQUAL(y[k], 0);
  for (size_t k = 0; k < start.count - 3 * 12; k++) CU_ASSERT(start.parameters[k] != 0);
}

/* Checks that the first 2 d of 2000 units pass the coordinates on; biases and weights of the others are N(0,
 * 2 / d), and the mean of that many squares is within 4 of its standard errors, sqrt(2 / 2000). */
static void test_spread(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, UNITS = 2000 };
  const Start start = start_of(&memory, D, 1, (int[]){UNITS}, 0.5);
  const float *bias = start.parameters + D * UNITS;
  double weights = 0, biases = 0;
  for (int k = 2 * D; k < UNITS; k++) {
    weights += pow(start.parameters[D * k], 2) / (UNITS - 2 * D);
    biases += pow(bias[k], 2) / (UNITS - 2 * D);
  }
  CHECK_NEAR(weights, 2.0 / D, 4 * sqrt(2.0 / UNITS));
  CHECK_NEAR(biases, 2.0 / D, 4 * sqrt(2.0 / UNITS));
  for (int k = 0; k < 2 * D; k++) CU_ASSERT_EQUAL(bias[k], 0);
}

/* Checks that the second half of a batch has the samples of the first, with its noise negated. */
static void test_pairs(void) {
  SCRATCH_ARENA(memory);
  enum { N = 20, BATCH = 128, PAIRS = BATCH / 2, STAGE = 9 };
  PriorFit fit = {.schedule = {.stages = 10, .alpha = 0.9},
                  .hidden_count = 1,
                  .hidden = {8},
                  .steps = 1,
                  .batch = BATCH,
                  .patience = 10,
                  .learning_rate = 0.01};
  double theta[N], loss;
  for (int j = 0; j < N; j++) theta[j] = j;
  Samples samples = {1, N, theta};
  TrainingSetup setup;
  float parameters[25];
  CHECK_OK(training_create(&memory, &fit, &samples, &setup));
  training_stage(&setup, STAGE, parameters, &loss);
  for (int n = 0; n < PAIRS; n++) {
    const double signal = sqrt(pow(0.9, STAGE)), z = (setup.x[n] + setup.x[PAIRS + n]) / (2 * signal);
    CU_ASSERT_EQUAL(setup.noise[n], -setup.noise[PAIRS + n]);
    CHECK_NEAR(z, round(z), 1e-5);
    CHECK_NEAR(setup.x[n] - setup.x[PAIRS + n], 2 * sqrt(1 - signal * signal) * setup.noise[n], 1e-5);
  }
}

/* Checks groups: the first stage of a group is what it is alone; the next one is that network, trained
 * further, which one step at a rate close to 0 leaves as it is; and a stage that is far away starts on its
 * own. */
static void test_groups(void) {
  enum { N = 50, PARAMETERS = 25 };
  PriorFit fit = {.schedule = {.stages = 12, .alpha = 0.9},
                  .hidden_count = 1,
                  .hidden = {8},
                  .steps = 1,
                  .batch = 64,
                  .patience = 10,
                  .learning_rate = 1e-12};
  double theta[N], loss, group[TRAINING_GROUP * (PARAMETERS + 1)];
  float alone[PARAMETERS];
  for (int j = 0; j < N; j++) theta[j] = j % 7 - 3;
  Samples samples = {1, N, theta};
  CU_ASSERT_EQUAL(training_groups(&fit), 2);
  CU_ASSERT_EQUAL(training_stage_values(&fit, 1), PARAMETERS + 1);
  for (int far = 0; far < 2; far++) {
    SCRATCH_ARENA(memory);
    TrainingSetup setup;
    fit.schedule.alpha = far ? 0.1 : 0.9;
    CHECK_OK(training_create(&memory, &fit, &samples, &setup));
    CHECK_OK(training_group(&setup, 1, group));
    for (int t = 11; t <= 12; t++) {
      training_stage(&setup, far ? t : 11, alone, &loss);
      const double *values = group + (t - 11) * (PARAMETERS + 1);
      for (int i = 0; i < PARAMETERS; i++) CHECK_NEAR(values[i], alone[i], 1e-6);
      if (far || t == 11) CHECK_NEAR(values[PARAMETERS], loss, 1e-6);
    }
  }
}

static void test_defaults(void) {
  static const struct {
    int width;
    double rate;
  } cases[] = {{20, 0.02}, {75, 0.02}, {100, 0.015}, {200, 0.0075}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    PriorFit fit = {.hidden_count = 2, .hidden = {7, cases[c].width}};
    prior_settle(&prior_diffusion, &fit, 2);
    CU_ASSERT(fit.steps == 1500 && fit.batch == 128);
    CHECK_NEAR(fit.learning_rate, cases[c].rate, 1e-15);
  }
  PriorFit fit = {.hidden_count = 0, .steps = 3, .batch = 5, .learning_rate = 1};
  prior_settle(&prior_diffusion, &fit, 3);
  CU_ASSERT(fit.hidden_count == 2 && fit.hidden[0] == 30 && fit.hidden[1] == 30);
  CU_ASSERT(fit.steps == 3 && fit.batch == 5);
  CHECK_NEAR(fit.learning_rate, 1, 0);
}

int main(void) {
  CU_TestInfo tests[] = {{"the start is the linear regression", test_regression},
                         {"no room for it", test_no_room},
                         {"random weights and biases", test_spread},
                         {"noise in pairs", test_pairs},
                         {"groups of stages", test_groups},
                         {"defaults by width", test_defaults},
                         CU_TEST_INFO_NULL};
  return harness_run("training", tests);
}
