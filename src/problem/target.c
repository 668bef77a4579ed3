/* A Gaussian target N(mu*, A^-1) in the form of a world: theta* is mu*, and the d arms are phi_i = sqrt(a_i)
 * q_i, so that taking each of them once without noise gives the evidence A = sum phi phi' and A mu*. The
 * precisions a_i fall geometrically from 1 to 1 / kappa; the directions q_i are the rows of a random
 * rotation, drawn for each run, and mu* is drawn from N(0, A^-1): the problem's source gives mu* along the
 * q_i, in units of its standard deviation there. */
#include "problem/problem.h"
#include "problem/rotation.h"

#include <math.h>
#include <string.h>

typedef struct {
  double *deviation; /* [d]: 1 / sqrt(a_i) */
  double *rotation, *point; /* [d, d], [d]: scratch */
} Target;

static Status target_world_create(Problem *self, const Config *config) {
  Target *state = self->state;
  self->arms = self->d;
  self->resample_arms = false;
  if (!likelihood_is_conjugate(&self->likelihood))
    return status_set(STATUS_INPUT,
                      "study convergence has a Gaussian target, so likelihood must be gaussian, not %s",
                      self->likelihood.ops->name);
  self->likelihood.noise = 1;
  ALLOCATE_ARRAYS(&self->memory, self->d, &state->deviation, &state->point);
  ALLOCATE(&self->memory, state->rotation, (size_t)self->d * (size_t)self->d);
  const double kappa = config_real(config, "problem.condition_number");
  for (int i = 0; i < self->d; i++) state->deviation[i] = i ? pow(kappa, 0.5 * i / (self->d - 1)) : 1;
  return problem_theta_create_gaussian(self->d, self->seed, &self->theta);
}

/* Turns the columns of x[d, n], standard normal coordinates along the rows of a rotation, into points. */
static void transform(const Problem *self, RngLanes lanes, double *x) {
  const Target *state = self->state;
  const size_t d = (size_t)self->d, n = lanes.lanes;
  for (uint32_t at = 0; at < n; at++) {
    const double *q = state->rotation;
    Rng rng = {.key = lanes.key, .run = lanes.run + at / lanes.draws, .draw = at % lanes.draws};
    rotation_draw(&rng, self->d, self->d, state->rotation);
    memset(state->point, 0, d * sizeof *state->point);
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j < d; j++) state->point[j] += state->deviation[i] * x[i * n + at] * q[i * d + j];
    for (size_t j = 0; j < d; j++) x[j * n + at] = state->point[j];
  }
}

static void target_world_draw_features(World *world) {
  const Problem *self = world->problem;
  const Target *state = self->state;
  const size_t d = (size_t)self->d, runs = (size_t)world->runs;
  for (size_t b = 0; b < runs; b++) {
    /* the rotation of the run's theta* (problem_theta) */
    Rng rng = {.key = rng_key(self->seed, RNG_ROTATION), .run = world->first_run + (uint32_t)b};
    rotation_draw(&rng, self->d, self->d, state->rotation);
    for (size_t i = 0; i < d * d; i++)
      world->features[i * runs + b] = state->rotation[i] / state->deviation[i / d];
  }
}

const ProblemOps problem_target = {.name = "target",
                                   .summary = "a Gaussian target with a given condition number, not a bandit",
                                   .reference = "VITS, Appendices F and I",
                                   .keys = "problem.condition_number",
                                   .dimension = 5,
                                   .arms_of_theta = true,
                                   .state_size = sizeof(Target),
                                   .create = target_world_create,
                                   .transform = transform,
                                   .features = target_world_draw_features};
