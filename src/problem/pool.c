/* Bandits with a pool of K vectors N(0, I) per run, fixed for all rounds. In each round the features of an
 * arm are a member of the pool, drawn with replacement, plus zeta times N(0, I): the smaller zeta, the fewer
 * directions are ever seen. theta* is N(0, I / d), so that phi' theta* has variance 1 + zeta^2 in every
 * dimension. */
#include "core/simd.h"
#include "problem/problems.h"

#include <math.h>

const char POOL_REWARDS[] = "linear quadratic";

enum { RUNS = 8 /* runs for which members are added together */ };

typedef struct {
  double zeta;
  double *pool; /* [d, K], scratch for one run */
} Pool;

static Status arm_pool_create(Problem *self, const Config *config) {
  Pool *state = self->state;
  state->zeta = config_real(config, "problem.zeta");
  self->resample_arms = true;
  self->quadratic = config_is(config, "problem.reward", "quadratic");
  if (self->quadratic && !likelihood_is_conjugate(&self->likelihood))
    return status_set(STATUS_INPUT,
                      "problem.reward = quadratic needs likelihood gaussian; with likelihood %s the reward "
                      "depends on phi' theta, so problem.reward must be linear",
                      self->likelihood.ops->name);
  /* The key problem.noise is in units of the standard deviation for a signal-to-noise ratio of 1: the square
   * root of E (phi' theta*)^2, or of E (phi' theta*)^4 if rewards are quadratic. */
  const double variance = 1 + state->zeta * state->zeta;
  self->likelihood.noise *= self->quadratic ? variance * sqrt(3 + 6.0 / self->d) : sqrt(variance);
  self->kept = (size_t)self->d * (size_t)self->arms;
  ALLOCATE(&self->memory, state->pool, (size_t)self->d * (size_t)self->arms);
  TRY(problem_theta_create_gaussian(self->d, self->seed, &self->theta));
  for (int i = 0; i < self->d; i++) self->theta.mixture.covariance[i * self->d + i] = 1.0 / self->d;
  return mixture_prepare(&self->theta.mixture);
}

/* Stores the pools of the runs, kept[B, K, d]: member m comes from stream (POOL, run, round 0, draw m). */
static void arm_pool_keep(World *world) {
  const Problem *self = world->problem;
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, arms = (size_t)self->arms;
  for (uint32_t b = 0; b < (uint32_t)world->runs; b++) {
    RngLanes rng = rng_lanes(rng_key(self->seed, RNG_POOL), world->first_run + b, 1, self->arms, 0);
    rng_lanes_normal(&rng, self->d, state->pool);
    io_dataset_transpose(self->d, self->arms, state->pool, world->kept + b * d * arms);
  }
}

/* Finds member[count], those of the pools kept[count, K, d] that the uniform numbers choose. */
INLINE void choose_members(size_t count, size_t d, size_t arms, const double *kept, const double *uniform,
                           const double **member) {
  for (size_t b = 0; b < count; b++) member[b] = kept + (b * arms + (size_t)(uniform[b] * (double)arms)) * d;
}

/* Computes phi[d, count] <- zeta phi + member[count]. The product is rounded first, as in
 * special_two_products. */
INLINE void add_members_of(size_t count, size_t d, size_t stride, double zeta, const double *const *member,
                           double *restrict phi) {
  for (size_t i = 0; i < d; i++)
    for (size_t b = 0; b < count; b++)
      phi[i * stride + b] = member[b][i] + (zeta * phi[i * stride + b] + 0.0);
}

/* Does the same for all runs, a few at a time. */
SIMD_CLONES
static void arm_pool_add_members(size_t d, size_t arms, size_t runs, double zeta, const double *kept,
                                 const double *uniform, double *phi) {
  const double *member[RUNS];
  size_t b = 0;
  for (; b + RUNS <= runs; b += RUNS) {
    choose_members(RUNS, d, arms, kept + b * arms * d, uniform + b, member);
    add_members_of(RUNS, d, runs, zeta, member, phi + b);
  }
  choose_members(runs - b, d, arms, kept + b * arms * d, uniform + b, member);
  add_members_of(runs - b, d, runs, zeta, member, phi + b);
}

/* Draws noise, and adds the members to zeta times the noise while it is in the cache, two arms at a time: a
 * pair uses whole positions of both streams. Another number of arms means another pool. */
static void arm_pool_draw_features(World *world) {
  const Problem *self = world->problem;
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, runs = (size_t)world->runs;
  RngLanes noise = world_streams(world, RNG_ARMS), member = world_streams(world, RNG_POOL_MEMBER);
  double *features = world->features;
  for (int k = 0; k < self->arms; k += 2) {
    const int pair = k + 1 < self->arms ? 2 : 1;
    rng_lanes_normal(&noise, pair * self->d, features);
    rng_lanes_uniform(&member, pair, world->scratch);
    for (int m = 0; m < pair; m++, features += d * runs)
      arm_pool_add_members(d, (size_t)self->arms, runs, state->zeta, world->kept,
                           world->scratch + (size_t)m * runs, features);
  }
}

const ProblemOps problem_pool = {.name = "pool",
                                 .summary = "arms from a pool of K vectors plus noise, redrawn each round",
                                 .reference = "VITS, Section 4.1 and Appendix H",
                                 .keys = "problem.zeta problem.reward problem.resample_arms",
                                 .arms = 50,
                                 .dimension = 20,
                                 .state_size = sizeof(Pool),
                                 .create = arm_pool_create,
                                 .keep = arm_pool_keep,
                                 .features = arm_pool_draw_features};
