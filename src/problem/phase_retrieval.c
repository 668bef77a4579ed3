/* Phase retrieval: y = (A theta*)^2 + noise, entry by entry, with A[m, d] of standard normal numbers
 * (BIPSDA). The features of the arms, which a history has in order, are the rows of A. */
#include "problem/problems.h"

static const double NOISE = 25;

static Status phase_retrieval_create(Problem *self, const Config *config) {
  const bool noise = !config_is(config, "problem.noise", "auto");
  const Likelihood own = {.ops = &likelihood_squared, .noise = noise ? self->likelihood.noise : NOISE};
  TRY(problem_set_likelihood(self, config, &own));
  TRY(problem_create_theta(self, config));
  self->d = self->theta.d;
  self->arms_in_order = true;
  return STATUS_OK;
}

static void phase_retrieval_draw_features(World *world) {
  const Problem *self = world->problem;
  RngLanes rng = world_streams(world, RNG_ARMS);
  rng_lanes_normal(&rng, self->arms * self->d, world->features);
}

const ProblemOps problem_phase_retrieval = {
    .name = "phase_retrieval",
    .summary = "y = (A theta*)^2 + noise, A standard normal; the arms are the rows of A, in order",
    .reference = "BIPSDA, arXiv:2503.03007",
    .keys = "problem.theta problem.file problem.resample_arms",
    .arms = 5,
    .rewards_of = REWARDS_OF_OBSERVATIONS,
    .create = phase_retrieval_create,
    .features = phase_retrieval_draw_features};
