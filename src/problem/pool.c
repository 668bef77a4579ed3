/* A run has a pool of K vectors N(0, I), fixed for all rounds. In a round the features of each arm are a
 * member of the pool, drawn with replacement, plus zeta times N(0, I): the smaller zeta, the fewer directions
 * are ever seen. theta* is N(0, I / d), so that phi' theta* has variance 1 + zeta^2 in every dimension. */
#include "problem/pool.h"

#include "core/memory.h"
#include "problem/theta.h"
#include "problem/theta_prior.h"

#include <math.h>
#include <stdlib.h>

const char POOL_REWARDS[] = "linear quadratic";

enum { DIMENSION = 20 };

/* In a round the members come from the upper half of the positions of the run's stream, noise from the lower.
 */
static const uint32_t MEMBER_POSITION = 1u << 31;

typedef struct {
  ThetaSource theta;
  double zeta;
  double *pool, *uniform; /* [d, K], [K]: of one run in one round */
} Pool;

/* N(0, I / d). */
static Status create_theta(int d, uint64_t seed, ThetaSource *out) {
  TRY(theta_create(theta_find("gaussian"), d, NULL, 0, seed, out));
  for (int i = 0; i < d; i++) out->mixture.covariance[(size_t)i * (size_t)d + (size_t)i] = 1.0 / d;
  return mixture_prepare(&out->mixture);
}

/* Standard deviation of the reward noise for a signal to noise ratio of 1: the root of E (phi' theta*)^2, or
 * of E (phi' theta*)^4. */
static double unit_noise(const Problem *self, double zeta) {
  double variance = 1 + zeta * zeta;
  return self->quadratic ? variance * sqrt(3 + 6.0 / self->d) : sqrt(variance);
}

static Status create(Problem *self, const Config *config) {
  Pool *state;
  NEW(state, 1);
  self->state = state;
  state->zeta = config_real(config, "problem.zeta");
  self->d = config_is(config, "problem.dimension", "auto") ? DIMENSION
                                                           : (int)config_int(config, "problem.dimension");
  self->resample_arms = true;
  self->has_exact_prior = true;
  self->quadratic = config_is(config, "problem.reward", "quadratic");
  if (self->quadratic && !self->likelihood.ops->conjugate)
    return status_set(STATUS_INPUT,
                      "problem.reward = quadratic needs likelihood gaussian; with likelihood %s the reward "
                      "depends on phi' theta, so problem.reward must be linear",
                      self->likelihood.ops->name);
  self->likelihood.noise *= unit_noise(self, state->zeta);
  NEW(state->pool, (size_t)self->d * (size_t)self->arms);
  NEW(state->uniform, self->arms);
  return create_theta(self->d, self->seed, &state->theta);
}

static void destroy(Problem *self) {
  Pool *state = self->state;
  if (state) {
    theta_destroy(&state->theta);
    free(state->pool);
    free(state->uniform);
  }
  free(state);
}

static void draw_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  const Pool *state = self->state;
  theta_draw(&state->theta, replicate, first_run, runs, theta);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const Pool *state = self->state;
  return theta_training_samples(&state->theta, replicate, limit, out);
}

static Status exact_prior(const Problem *self, const PriorFit *chain_settings, Prior *out) {
  const Pool *state = self->state;
  return theta_prior(&state->theta, chain_settings, out);
}

/* The pool of a run, [d, K]: member m has the stream (ARMS, run, round 0, draw m). It is cheaper to draw it
 * again in each round than to keep those of all runs. */
static const double *draw_pool(const Problem *self, uint32_t run) {
  const Pool *state = self->state;
  RngLanes rng = {.key = rng_key(self->seed, RNG_ARMS),
                  .run = run,
                  .draws = (uint32_t)self->arms,
                  .lanes = (uint32_t)self->arms};
  rng_lanes_normal(&rng, self->d, state->pool);
  return state->pool;
}

/* Noise, times zeta, plus members. More arms mean another pool. */
static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round, double *features,
                          double *scratch) {
  (void)scratch;
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, arms = (size_t)self->arms, stride = (size_t)runs;
  RngLanes noise = {.key = rng_key(self->seed, RNG_ARMS),
                    .run = first_run,
                    .draws = 1,
                    .round = round,
                    .lanes = (uint32_t)runs};
  rng_lanes_normal(&noise, self->arms * self->d, features);
  for (uint32_t b = 0; b < (uint32_t)runs; b++) {
    const double *pool = draw_pool(self, first_run + b);
    Rng member = {.key = noise.key, .run = first_run + b, .round = round, .position = MEMBER_POSITION};
    rng_uniform(&member, self->arms, state->uniform);
    for (size_t k = 0; k < arms; k++) {
      const size_t m = (size_t)(state->uniform[k] * (double)arms);
      double *phi = features + k * d * stride + b;
      for (size_t i = 0; i < d; i++) phi[i * stride] = pool[i * arms + m] + state->zeta * phi[i * stride];
    }
  }
}

const ProblemOps problem_pool = {.name = "pool",
                                 .summary = "arms from a pool of K vectors plus noise, redrawn each round",
                                 .reference = "VITS, Section 4.1 and Appendix H",
                                 .arms = 50,
                                 .create = create,
                                 .destroy = destroy,
                                 .theta = draw_theta,
                                 .features = draw_features,
                                 .training_samples = training_samples,
                                 .exact_prior = exact_prior};
