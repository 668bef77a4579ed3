/* Exponential tomography: counts of photons behind what attenuates them, y ~ Poisson(1000 exp(-A theta*)),
 * with lengths A[m, d] of paths uniform on [0.01, 0.05] (BIPSDA, whose theta is x + 10).
 *
 * Rewards are counts with an exposure, and the features of the arms, which a history has in order, are the
 * rows of -A. */
#include "problem/problems.h"

#include <math.h>

static const double PHOTONS = 1000, SHORTEST = 0.01, LONGEST = 0.05;

static Status tomography_create(Problem *self, const Config *config) {
  const Likelihood own = {.ops = &likelihood_poisson, .log_exposure = log(PHOTONS)};
  TRY(problem_set_likelihood(self, config, &own));
  TRY(problem_create_theta(self, config));
  self->d = self->theta.d;
  self->arms_in_order = true;
  return STATUS_OK;
}

static void tomography_draw_features(World *world) {
  const Problem *self = world->problem;
  const size_t count = (size_t)self->arms * (size_t)self->d * (size_t)world->runs;
  RngLanes rng = world_streams(world, RNG_ARMS);
  rng_lanes_uniform(&rng, self->arms * self->d, world->features);
  for (size_t i = 0; i < count; i++)
    world->features[i] = -(SHORTEST + (LONGEST - SHORTEST) * world->features[i]);
}

const ProblemOps problem_tomography = {.name = "tomography",
                                       .summary = "counts 1000 exp(-A theta*) of photons on paths of random "
                                                  "lengths A; the arms are the rows of -A, in order",
                                       .reference = "BIPSDA, arXiv:2503.03007",
                                       .keys = "problem.theta problem.file problem.resample_arms",
                                       .arms = 15,
                                       .create = tomography_create,
                                       .features = tomography_draw_features};
