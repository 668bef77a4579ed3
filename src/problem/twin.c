/* A bandit that is hard to explore (VITS paper, Appendix G): the best arm is theta* itself, the second is
 * nearly as good, all others are random. All K of them are unit vectors and stay for the whole run. */
#include "core/memory.h"
#include "problem/problems.h"
#include "problem/theta.h"

#include <math.h>
#include <stdlib.h>

enum { DIMENSION = 10 };

static const double TWIN_NOISE = 0.1; /* of each coordinate, before scaling to unit length */

typedef struct {
  ThetaSource direction; /* N(0, I) */
} Twin;

/* Columns of x[d, n] to unit length. */
static void normalise(int d, int n, double *x) {
  for (int c = 0; c < n; c++) {
    double square = 0;
    for (int i = 0; i < d; i++) {
      double value = x[(size_t)i * (size_t)n + (size_t)c];
      square += value * value;
    }
    for (int i = 0; i < d; i++) x[(size_t)i * (size_t)n + (size_t)c] /= sqrt(square);
  }
}

static Status create(Problem *self, const Config *config) {
  Twin *state;
  NEW(state, 1);
  self->state = state;
  self->d = config_is(config, "problem.dimension", "auto") ? DIMENSION
                                                           : (int)config_int(config, "problem.dimension");
  if (self->arms < 2)
    return status_set(STATUS_INPUT,
                      "problem.arms: %d, but problem.family = twin has at least 2: theta* and its twin",
                      self->arms);
  if (self->resample_arms)
    return status_set(STATUS_INPUT,
                      "problem.resample_arms: true, but the arms of problem.family = twin are fixed");
  return theta_create(theta_find("gaussian"), self->d, NULL, 0, self->seed, &state->direction);
}

static void destroy(Problem *self) {
  Twin *state = self->state;
  if (state) theta_destroy(&state->direction);
  free(state);
}

static void draw_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  const Twin *state = self->state;
  theta_draw(&state->direction, replicate, first_run, runs, theta);
  normalise(self->d, runs, theta);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const Twin *state = self->state;
  TRY(theta_training_samples(&state->direction, replicate, limit, out));
  normalise(out->d, out->n, out->theta);
  return STATUS_OK;
}

/* Arm 0 is theta*, arm 1 its twin. More arms leave the first ones as they are. */
static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                          const double *kept, double *features, double *scratch) {
  (void)kept;
  (void)scratch;
  const int d = self->d;
  const size_t arm = (size_t)d * (size_t)runs;
  RngLanes rng = {.key = rng_key(self->seed, RNG_ARMS),
                  .run = first_run,
                  .draws = 1,
                  .round = round,
                  .lanes = (uint32_t)runs};
  draw_theta(self, 0, first_run, runs, features);
  rng_lanes_normal(&rng, (self->arms - 1) * d, features + arm);
  double *twin = features + arm;
  for (size_t i = 0; i < arm; i++) twin[i] = features[i] + TWIN_NOISE * twin[i];
  for (int k = 1; k < self->arms; k++) normalise(d, runs, features + (size_t)k * arm);
}

const ProblemOps problem_twin = {.name = "twin",
                                 .summary = "theta* and a near copy of it among random arms",
                                 .reference = "VITS, Appendix G",
                                 .arms = 10,
                                 .create = create,
                                 .destroy = destroy,
                                 .theta = draw_theta,
                                 .features = draw_features,
                                 .training_samples = training_samples};
