/* A run has a pool of K vectors N(0, I), fixed for all rounds. In a round the features of each arm are a
 * member of the pool, drawn with replacement, plus zeta times N(0, I): the smaller zeta, the fewer directions
 * are ever seen. theta* is N(0, I / d), so that phi' theta* has variance 1 + zeta^2 in every dimension. */
#include "core/memory.h"
#include "core/tiling.h"
#include "problem/problems.h"

#include <math.h>
#include <stdlib.h>

const char POOL_REWARDS[] = "linear quadratic";

typedef struct {
  double zeta;
  double *pool; /* [d, K], of one run: scratch */
} Pool;

/* N(0, I / d). */
static Status create_theta(int d, uint64_t seed, ThetaSource *out) {
  TRY(theta_create_gaussian(d, seed, out));
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
  self->resample_arms = true;
  self->quadratic = config_is(config, "problem.reward", "quadratic");
  if (self->quadratic && !likelihood_is_conjugate(&self->likelihood))
    return status_set(STATUS_INPUT,
                      "problem.reward = quadratic needs likelihood gaussian; with likelihood %s the reward "
                      "depends on phi' theta, so problem.reward must be linear",
                      self->likelihood.ops->name);
  self->likelihood.noise *= unit_noise(self, state->zeta);
  self->kept = (size_t)self->d * (size_t)self->arms;
  NEW(state->pool, self->kept);
  return create_theta(self->d, self->seed, &self->theta);
}

static void destroy(Problem *self) {
  Pool *state = self->state;
  if (state) free(state->pool);
}

/* The pools of the runs, kept[B, K, d]: member m has the stream (POOL, run, round 0, draw m). */
static void keep_pools(const Problem *self, uint32_t first_run, int runs, double *kept) {
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, arms = (size_t)self->arms;
  for (uint32_t b = 0; b < (uint32_t)runs; b++) {
    RngLanes rng = {.key = rng_key(self->seed, RNG_POOL),
                    .run = first_run + b,
                    .draws = (uint32_t)self->arms,
                    .lanes = (uint32_t)self->arms};
    rng_lanes_normal(&rng, self->d, state->pool);
    for (size_t m = 0; m < arms; m++)
      for (size_t i = 0; i < d; i++) kept[(b * arms + m) * d + i] = state->pool[i * arms + m];
  }
}

/* phi[d, B] of an arm <- zeta phi + the member of each run's pool that its uniform number[B] stands for. The
 * members of a tile of runs stay in the first-level cache together. */
static void add_members(const Problem *self, size_t runs, const double *kept, const double *uniform,
                        double *phi) {
  const double zeta = ((const Pool *)self->state)->zeta;
  const size_t d = (size_t)self->d, arms = (size_t)self->arms;
  for (size_t from = 0; from < runs; from += TILE_LANES) {
    const size_t count = runs - from < TILE_LANES ? runs - from : TILE_LANES;
    const double *member[TILE_LANES];
    for (size_t n = 0; n < count; n++)
      member[n] = kept + ((from + n) * arms + (size_t)(uniform[from + n] * (double)arms)) * d;
    for (size_t i = 0; i < d; i++)
      for (size_t n = 0; n < count; n++)
        phi[i * runs + from + n] = member[n][i] + zeta * phi[i * runs + from + n];
  }
}

/* Noise, times zeta, plus members. More arms mean another pool. */
static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                          const double *kept, double *features, double *scratch) {
  const size_t stride = (size_t)runs, arm = (size_t)self->d * stride;
  RngLanes noise = {.key = rng_key(self->seed, RNG_ARMS),
                    .run = first_run,
                    .draws = 1,
                    .round = round,
                    .lanes = (uint32_t)runs};
  RngLanes member = noise;
  member.key = rng_key(self->seed, RNG_POOL_MEMBER);
  rng_lanes_normal(&noise, self->arms * self->d, features);
  for (int k = 0; k < self->arms; k++) { /* a position of a stream has numbers for two arms */
    if (k % 2 == 0) rng_lanes_uniform(&member, k + 1 < self->arms ? 2 : 1, scratch);
    add_members(self, stride, kept, scratch + (size_t)(k % 2) * stride, features + (size_t)k * arm);
  }
}

const ProblemOps problem_pool = {.name = "pool",
                                 .summary = "arms from a pool of K vectors plus noise, redrawn each round",
                                 .reference = "VITS, Section 4.1 and Appendix H",
                                 .arms = 50,
                                 .dimension = 20,
                                 .create = create,
                                 .destroy = destroy,
                                 .keep = keep_pools,
                                 .features = draw_features};
