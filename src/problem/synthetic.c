#include "problem/synthetic.h"

#include "core/memory.h"
#include "problem/theta.h"

#include <math.h>
#include <stdlib.h>

const char SYNTHETIC_FEATURES[] = "ball sphere gaussian";

/* Radii come from the upper half of the positions of the run's stream, directions from the lower. */
static const uint32_t RADIUS_POSITION = 1u << 31;

typedef struct {
  ThetaSource theta;
  bool normalised; /* ball and sphere: directions */
  bool radius; /* ball: radius u^(1/d) */
} Synthetic;

static Status create(Problem *self, const Config *config) {
  Synthetic *state;
  NEW(state, 1);
  self->state = state;
  state->normalised = !config_is(config, "problem.features", "gaussian");
  state->radius = config_is(config, "problem.features", "ball");
  int dimension =
      config_is(config, "problem.dimension", "auto") ? 0 : (int)config_int(config, "problem.dimension");
  TRY(theta_create(theta_find(config_text(config, "problem.theta")), dimension,
                   config_text(config, "problem.file"), config_real(config, "prior.test_fraction"),
                   self->seed, &state->theta));
  self->d = state->theta.d;
  self->arms = (int)config_int(config, "problem.arms");
  return STATUS_OK;
}

static void destroy(Problem *self) {
  Synthetic *state = self->state;
  if (state) theta_destroy(&state->theta);
  free(state);
}

static void draw_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  const Synthetic *state = self->state;
  theta_draw(&state->theta, replicate, first_run, runs, theta);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const Synthetic *state = self->state;
  return theta_training_samples(&state->theta, replicate, limit, out);
}

static const Mixture *exact_prior(const Problem *self) {
  const Synthetic *state = self->state;
  return state->theta.has_mixture ? &state->theta.mixture : NULL;
}

/* A standard normal vector, scaled to length 1 (sphere) or u^(1/d) (ball). More arms leave the first ones as
 * they are. */
static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round, double *features,
                          double *scratch) {
  const Synthetic *state = self->state;
  int d = self->d, arms = self->arms;
  RngLanes direction = {.key = rng_key(self->seed, RNG_ARMS),
                        .run = first_run,
                        .draws = 1,
                        .round = round,
                        .lanes = (uint32_t)runs};
  rng_lanes_normal(&direction, arms * d, features);
  if (!state->normalised) return;
  RngLanes radius = direction;
  radius.position = RADIUS_POSITION;
  for (int k = 0; k < arms; k++) {
    double *arm = features + (size_t)k * (size_t)d * (size_t)runs;
    if (state->radius) rng_lanes_uniform(&radius, 1, scratch);
    for (int b = 0; b < runs; b++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += arm[i * runs + b] * arm[i * runs + b];
      double scale = (state->radius ? pow(scratch[b], 1.0 / d) : 1) / sqrt(square);
      for (int i = 0; i < d; i++) arm[i * runs + b] *= scale;
    }
  }
}

const ProblemOps problem_synthetic = {.name = "synthetic",
                                      .summary = "theta* from a named distribution, random arms",
                                      .reference = "DiffTS, Section 6.2",
                                      .create = create,
                                      .destroy = destroy,
                                      .theta = draw_theta,
                                      .features = draw_features,
                                      .training_samples = training_samples,
                                      .exact_prior = exact_prior};
