/* The wheel bandit (Riquelme, Tucker and Snoek 2018, Section 5.4): contexts are uniform on the unit disc. The
 * last of five arms has mean 1.2, the others 1; but outside the radius delta, the arm of the context's
 * quadrant earns 50, which only those learn who play there an arm that is no good inside.
 *
 * The mean is not linear in the context: policies see (x, y, 1) and have a posterior for each arm. Regret is
 * that of the rewards of a round, with their noise. */
#include "problem/problem.h"

#include <math.h>

enum { WHEEL_ARMS = 5, WHEEL_DIMENSION = 3 };

static const double MEAN = 1, LAST_MEAN = 1.2, OUTER_MEAN = 50, OUTER_NOISE = 0.01, DEFAULT_NOISE = 0.05;

typedef struct {
  double delta;
} Wheel;

static Status wheel_create(Problem *self, const Config *config) {
  Wheel *state = self->state;
  state->delta = config_real(config, "problem.delta");
  if (self->arms != WHEEL_ARMS || self->d != WHEEL_DIMENSION)
    return status_set(STATUS_INPUT,
                      "problem.family = wheel has %d arms and contexts (x, y, 1): leave problem.arms and "
                      "problem.dimension out",
                      WHEEL_ARMS);
  if (!likelihood_has_noise(&self->likelihood))
    return status_set(STATUS_INPUT, "problem.family = wheel has Gaussian rewards: leave likelihood out");
  if (config_is(config, "problem.noise", "auto")) self->likelihood.noise = DEFAULT_NOISE;
  self->per_arm = true;
  self->resample_arms = true;
  return problem_theta_create_gaussian(self->d, self->seed, &self->theta);
}

static void wheel_draw_contexts(World *world) {
  const int runs = world->runs;
  double *x = world->features, *y = x + runs, *one = y + runs, *radius = world->scratch,
         *turn = radius + runs;
  RngLanes rng = world_streams(world, RNG_ARMS);
  rng_lanes_uniform(&rng, 1, radius);
  rng_lanes_uniform(&rng, 1, turn);
  for (int b = 0; b < runs; b++) {
    x[b] = sqrt(radius[b]) * cos(2 * M_PI * turn[b]);
    y[b] = sqrt(radius[b]) * sin(2 * M_PI * turn[b]);
    one[b] = 1;
  }
}

/* Draws the rewards of all arms in this round. */
static void wheel_draw_rewards(World *world) {
  const Wheel *state = world->problem->state;
  const int runs = world->runs;
  const double *x = world->features, *y = x + runs;
  RngLanes rng = world_streams(world, RNG_REWARD);
  rng_lanes_normal(&rng, WHEEL_ARMS, world->mean);
  for (int b = 0; b < runs; b++) {
    const bool outside = hypot(x[b], y[b]) >= state->delta;
    const int quadrant = 2 * (x[b] < 0) + (y[b] < 0);
    for (int k = 0; k < WHEEL_ARMS; k++) {
      double *reward = &world->mean[k * runs + b];
      if (outside && k == quadrant)
        *reward = OUTER_MEAN + OUTER_NOISE * *reward;
      else
        *reward = (k == WHEEL_ARMS - 1 ? LAST_MEAN : MEAN) + world->problem->likelihood.noise * *reward;
    }
  }
}

const ProblemOps problem_wheel = {.name = "wheel",
                                  .summary = "five arms, four of which pay only near the rim of a disc",
                                  .reference = "Riquelme, Tucker and Snoek 2018",
                                  .keys = "problem.delta",
                                  .arms = WHEEL_ARMS,
                                  .dimension = WHEEL_DIMENSION,
                                  .state_size = sizeof(Wheel),
                                  .rewards_of = REWARDS_OF_ARMS,
                                  .per_arm = true,
                                  .create = wheel_create,
                                  .features = wheel_draw_contexts,
                                  .rewards = wheel_draw_rewards};
