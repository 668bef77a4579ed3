/* A bandit that is hard to explore (VITS paper, Appendix G): the best arm is theta* itself, the second is
 * nearly as good, all others are random. All K of them are unit vectors and stay for the whole run. */
#include "problem/problems.h"

#include <math.h>
#include <string.h>

static const double TWIN_NOISE = 0.1; /* of each coordinate, before scaling to unit length */

/* Scales the columns of x[d, n] to unit length. */
static void normalise_columns(int d, int n, double *x) {
  for (int c = 0; c < n; c++) {
    double square = 0;
    for (int i = 0; i < d; i++) {
      double value = x[(size_t)i * (size_t)n + (size_t)c];
      square += value * value;
    }
    for (int i = 0; i < d; i++) x[(size_t)i * (size_t)n + (size_t)c] /= sqrt(square);
  }
}

static Status twin_create(Problem *self, const Config *config) {
  (void)config;
  if (self->arms < 2)
    return status_set(STATUS_INPUT,
                      "problem.arms: %d, but problem.family = twin has at least 2: theta* and its twin",
                      self->arms);
  if (self->resample_arms)
    return status_set(STATUS_INPUT,
                      "problem.resample_arms: true, but the arms of problem.family = twin are fixed");
  return theta_create_gaussian(self->d, self->seed, &self->theta);
}

static void twin_transform(const Problem *self, RngLanes rng, double *theta) {
  normalise_columns(self->d, (int)rng.lanes, theta);
}

/* Sets arm 0 to theta* and arm 1 to its twin. More arms leave the first ones as they are. */
static void twin_draw_features(World *world) {
  const int d = world->problem->d, runs = world->runs;
  const size_t arm = (size_t)d * (size_t)runs;
  RngLanes rng = world_streams(world, RNG_ARMS);
  double *twin = world->features + arm;
  memcpy(world->features, world->theta, arm * sizeof *world->theta);
  rng_lanes_normal(&rng, (world->problem->arms - 1) * d, twin);
  for (size_t i = 0; i < arm; i++) twin[i] = world->theta[i] + TWIN_NOISE * twin[i];
  for (int k = 1; k < world->problem->arms; k++)
    normalise_columns(d, runs, world->features + (size_t)k * arm);
}

const ProblemOps problem_twin = {.name = "twin",
                                 .summary = "theta* and a near copy of it among random arms",
                                 .reference = "VITS, Appendix G",
                                 .arms = 10,
                                 .dimension = 10,
                                 .arms_of_theta = true,
                                 .create = twin_create,
                                 .transform = twin_transform,
                                 .features = twin_draw_features};
