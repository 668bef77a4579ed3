/* A Gaussian target N(mu*, A^-1) as what can be learned in a world: theta* is mu*, and the d arms are phi_i =
 * sqrt(a_i) q_i, so that each of them taken once without noise gives the evidence A = sum phi phi' and A mu*.
 * The precisions a_i fall geometrically from 1 to 1 / kappa; the directions q_i are the rows of a random
 * rotation, drawn for each run, and mu* is drawn from N(0, A^-1). */
#include "core/memory.h"
#include "problem/problems.h"
#include "problem/rotation.h"
#include "problem/theta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSION = 5 };

typedef struct {
  ThetaSource normal; /* N(0, I): mu* along the q_i, in units of its standard deviation there */
  double *deviation; /* [d]: 1 / sqrt(a_i) */
  double *rotation, *point; /* [d, d], [d]: scratch */
} Target;

static Status create(Problem *self, const Config *config) {
  Target *state;
  NEW(state, 1);
  self->state = state;
  self->d = config_is(config, "problem.dimension", "auto") ? DIMENSION
                                                           : (int)config_int(config, "problem.dimension");
  self->arms = self->d;
  self->resample_arms = false;
  if (!likelihood_is_conjugate(&self->likelihood))
    return status_set(STATUS_INPUT,
                      "study convergence has a Gaussian target, so likelihood must be gaussian, not %s",
                      self->likelihood.ops->name);
  self->likelihood.noise = 1;
  NEW(state->deviation, self->d);
  NEW(state->rotation, (size_t)self->d * (size_t)self->d);
  NEW(state->point, self->d);
  const double kappa = config_real(config, "problem.condition_number");
  for (int i = 0; i < self->d; i++) state->deviation[i] = i ? pow(kappa, 0.5 * i / (self->d - 1)) : 1;
  return theta_create(theta_find("gaussian"), self->d, NULL, 0, self->seed, &state->normal);
}

static void destroy(Problem *self) {
  Target *state = self->state;
  if (state) {
    theta_destroy(&state->normal);
    free(state->deviation);
    free(state->rotation);
    free(state->point);
  }
  free(state);
}

/* The rows q_i[d] of a rotation, uniform among all. */
static const double *draw_rotation(const Problem *self, Rng rng) {
  const Target *state = self->state;
  rotation_draw(&rng, self->d, self->d, state->rotation);
  return state->rotation;
}

/* The rotation of a run. */
static Rng run_stream(const Problem *self, uint32_t run) {
  return (Rng){.key = rng_key(self->seed, RNG_ROTATION), .run = run};
}

/* Column `at` of x[d, n], standard normal: coordinates along the rotation's rows become the point itself. */
static void place(const Problem *self, Rng rotation, size_t at, size_t n, double *x) {
  const Target *state = self->state;
  const size_t d = (size_t)self->d;
  const double *q = draw_rotation(self, rotation);
  memset(state->point, 0, d * sizeof *state->point);
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) state->point[j] += state->deviation[i] * x[i * n + at] * q[i * d + j];
  for (size_t j = 0; j < d; j++) x[j * n + at] = state->point[j];
}

static void draw_mean(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *mean) {
  const Target *state = self->state;
  theta_draw(&state->normal, replicate, first_run, runs, mean);
  for (uint32_t b = 0; b < (uint32_t)runs; b++)
    place(self, run_stream(self, first_run + b), b, (size_t)runs, mean);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const Target *state = self->state;
  TRY(theta_training_samples(&state->normal, replicate, limit, out));
  Rng rng = {.key = rng_subkey(rng_key(self->seed, RNG_PRIOR_SAMPLES), RNG_ROTATION), .run = replicate};
  for (; rng.draw < (uint32_t)out->n; rng.draw++) place(self, rng, rng.draw, (size_t)out->n, out->theta);
  return STATUS_OK;
}

static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                          const double *kept, double *features, double *scratch) {
  (void)kept;
  (void)round, (void)scratch;
  const Target *state = self->state;
  const size_t d = (size_t)self->d;
  for (uint32_t b = 0; b < (uint32_t)runs; b++) {
    const double *q = draw_rotation(self, run_stream(self, first_run + b));
    for (size_t i = 0; i < d * d; i++) features[i * (size_t)runs + b] = q[i] / state->deviation[i / d];
  }
}

const ProblemOps problem_target = {.name = "target",
                                   .summary = "a Gaussian target of given condition number, no bandit",
                                   .reference = "VITS, Appendices F and I",
                                   .create = create,
                                   .destroy = destroy,
                                   .theta = draw_mean,
                                   .features = draw_features,
                                   .training_samples = training_samples};
