/* Synthetic bandits: theta* from a named distribution, random arms (DiffTS paper, Section 6.2). */
#include "problem/problems.h"
#include "problem/rotation.h"

#include <math.h>
#include <string.h>

const char SYNTHETIC_FEATURES[] = "ball sphere gaussian basis";

typedef struct {
  bool normalised; /* ball and sphere: vectors are scaled to a length */
  bool radius; /* ball: radius u^(1/d) */
  bool basis; /* arm i is unit vector i */
  double condition_number; /* kappa, of E[phi phi'] */
  bool shaped; /* kappa is not 1; in one dimension arms have no shape */
} Synthetic;

static Status synthetic_create(Problem *self, const Config *config) {
  Synthetic *state = self->state;
  state->normalised = !config_is(config, "problem.features", "gaussian");
  state->radius = config_is(config, "problem.features", "ball");
  state->basis = config_is(config, "problem.features", "basis");
  TRY(problem_create_theta(self, config));
  self->d = self->theta.d;
  state->condition_number = config_real(config, "problem.condition_number");
  state->shaped = state->condition_number != 1 && self->d > 1;
  if (state->shaped) self->feature_scratch = (2 * (size_t)self->d + 1) * (size_t)self->d;
  if (!state->basis) return STATUS_OK;
  if (self->per_arm)
    return status_set(STATUS_INPUT, "problem.features: basis gives every arm its own unit vector, but with "
                                    "problem.unknown = per_arm all arms share one context");
  if (config_is(config, "problem.arms", "auto")) self->arms = self->d;
  if (self->arms == self->d) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "problem.arms: %d, but in %d dimensions problem.features = basis has %d unit "
                    "vectors",
                    self->arms, self->d, self->d);
}

/* Computes phi <- shape phi for all feature vectors of every run. With the run's rotation R, shape = R
 * diag(kappa^(-i / (2 (d - 1)))) R'. E[phi phi'] was a multiple of I, and gets the condition number kappa,
 * while its largest eigenvalue stays the same. */
static void synthetic_shape_arms(World *world) {
  const Problem *self = world->problem;
  const Synthetic *state = self->state;
  const size_t d = (size_t)self->d, stride = (size_t)world->runs, vectors = (size_t)problem_vectors(self);
  double *shape = world->scratch + stride, *q = shape + d * d, *phi = q + d * d;
  for (size_t b = 0; b < stride; b++) {
    Rng rng = {.key = rng_key(self->seed, RNG_SHAPE), .run = world->first_run + (uint32_t)b};
    rotation_draw(&rng, self->d, self->d, q);
    memset(shape, 0, d * d * sizeof *shape);
    for (size_t k = 0; k < d; k++) {
      const double scale = pow(state->condition_number, -0.5 * (double)k / (double)(d - 1));
      for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) shape[i * d + j] += scale * q[k * d + i] * q[k * d + j];
    }
    for (size_t k = 0; k < vectors; k++) {
      double *arm = world->features + k * d * stride + b;
      for (size_t i = 0; i < d; i++) phi[i] = arm[i * stride];
      for (size_t i = 0; i < d; i++) {
        double sum = 0;
        for (size_t j = 0; j < d; j++) sum += shape[i * d + j] * phi[j];
        arm[i * stride] = sum;
      }
    }
  }
}

/* Draws a standard normal vector per arm, scaled to length 1 (sphere) or u^(1/d) (ball). Adding arms leaves
 * the first ones unchanged. */
static void synthetic_draw_arms(World *world) {
  const Synthetic *state = world->problem->state;
  const int d = world->problem->d, arms = problem_vectors(world->problem), runs = world->runs;
  RngLanes direction = world_streams(world, RNG_ARMS), radius = world_streams(world, RNG_RADIUS);
  rng_lanes_normal(&direction, arms * d, world->features);
  if (!state->normalised) return;
  for (int k = 0; k < arms; k++) {
    double *arm = world->features + (size_t)k * (size_t)d * (size_t)runs;
    if (state->radius) rng_lanes_uniform(&radius, 1, world->scratch);
    for (int b = 0; b < runs; b++) {
      double square = 0;
      for (int i = 0; i < d; i++) square += arm[i * runs + b] * arm[i * runs + b];
      double scale = (state->radius ? pow(world->scratch[b], 1.0 / d) : 1) / sqrt(square);
      for (int i = 0; i < d; i++) arm[i * runs + b] *= scale;
    }
  }
}

static void synthetic_draw_features(World *world) {
  const Synthetic *state = world->problem->state;
  const size_t d = (size_t)world->problem->d, runs = (size_t)world->runs;
  if (state->basis) {
    memset(world->features, 0, d * d * runs * sizeof *world->features);
    for (size_t i = 0; i < d; i++)
      for (size_t b = 0; b < runs; b++) world->features[(i * d + i) * runs + b] = 1;
  } else {
    synthetic_draw_arms(world);
  }
  if (state->shaped) synthetic_shape_arms(world);
}

const ProblemOps problem_synthetic = {
    .name = "synthetic",
    .summary = "theta* from a named distribution, random arms",
    .reference = "DiffTS, Section 6.2",
    .keys = "problem.theta problem.file problem.features problem.condition_number problem.resample_arms",
    .per_arm = true,
    .state_size = sizeof(Synthetic),
    .create = synthetic_create,
    .features = synthetic_draw_features};
