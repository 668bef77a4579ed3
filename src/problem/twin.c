/* A bandit that is hard to explore (VITS paper, Appendix G): the best arm is theta* itself, the second is
 * nearly as good, and all others are random. All K arms are unit vectors and stay the same for the whole
 * run. */
#include "problem/problem.h"

#include <math.h>
#include <string.h>

static const double TWIN_NOISE = 0.1; /* of each coordinate, before scaling to unit length */

/* Scales the columns of x[d, n] to unit length. */
static void twin_bandit_normalise(int d, int n, double *x) {
  for (int c = 0; c < n; c++) {
    double square = 0;
    for (int i = 0; i < d; i++) {
      double value = x[(size_t)i * (size_t)n + (size_t)c];
      square += value * value;
    }
    for (int i = 0; i < d; i++) x[(size_t)i * (size_t)n + (size_t)c] /= sqrt(square);
  }
}

static Status twin_bandit_create(Problem *self, const Config *config) {
  (void)config;
  if (self->arms < 2)
    return status_set(STATUS_INPUT,
                      "problem.arms: %d, but problem.family = twin needs at least 2: theta* and its twin",
                      self->arms);
  if (self->resample_arms)
    return status_set(STATUS_INPUT,
                      "problem.resample_arms: true, but the arms of problem.family = twin are fixed");
  return problem_theta_create_gaussian(self->d, self->seed, &self->theta);
}

static void twin_bandit_transform(const Problem *self, RngLanes rng, double *theta) {
  twin_bandit_normalise(self->d, (int)rng.lanes, theta);
}

/* Sets arm 0 to theta* and arm 1 to its twin, and draws the others. Adding arms leaves the first ones
 * unchanged. */
static void twin_bandit_draw_features(World *world) {
  const int d = world->problem->d, runs = world->runs;
  const size_t arm = (size_t)d * (size_t)runs;
  RngLanes rng = world_streams(world, RNG_ARMS);
  double *twin = world->features + arm;
  memcpy(world->features, world->theta, arm * sizeof *world->theta);
  rng_lanes_normal(&rng, (world->problem->arms - 1) * d, twin);
  for (size_t i = 0; i < arm; i++) twin[i] = world->theta[i] + TWIN_NOISE * twin[i];
  for (int k = 1; k < world->problem->arms; k++)
    twin_bandit_normalise(d, runs, world->features + (size_t)k * arm);
}

const ProblemOps problem_twin = {.name = "twin",
                                 .summary = "theta* and a near copy of it among random arms",
                                 .reference = "VITS, Appendix G",
                                 .keys = "",
                                 .arms = 10,
                                 .dimension = 10,
                                 .arms_of_theta = true,
                                 .create = twin_bandit_create,
                                 .transform = twin_bandit_transform,
                                 .features = twin_bandit_draw_features};
