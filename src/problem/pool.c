/* A run has a pool of K vectors N(0, I), fixed for all rounds. In a round the features of each arm are a
 * member of the pool, drawn with replacement, plus zeta times N(0, I): the smaller zeta, the fewer directions
 * are ever seen. theta* is N(0, I / d), so that phi' theta* has variance 1 + zeta^2 in every dimension. */
#include "core/simd.h"
#include "problem/problems.h"

#include <math.h>

const char POOL_REWARDS[] = "linear quadratic";

/* Members are added so many coordinates of so many runs at a time; a vector of the pool takes whole ones. */
enum { SQUARE = 4, RUNS = 2 * SQUARE };
typedef double Four __attribute__((vector_size(8 * SQUARE)));
typedef double Runs __attribute__((vector_size(8 * RUNS)));

typedef struct {
  double zeta;
  double *pool; /* [d, K], of one run: scratch */
} Pool;

static size_t pool_row(const Problem *self) { return ((size_t)self->d + SQUARE - 1) / SQUARE * SQUARE; }

/* Creates theta* ~ N(0, I / d). */
static Status create_theta(int d, uint64_t seed, ThetaSource *out) {
  TRY(theta_create_gaussian(d, seed, out));
  for (int i = 0; i < d; i++) out->mixture.covariance[(size_t)i * (size_t)d + (size_t)i] = 1.0 / d;
  return mixture_prepare(&out->mixture);
}

/* Returns the standard deviation of the reward noise for a signal to noise ratio of 1: the root of E (phi'
 * theta*)^2, or of E (phi' theta*)^4. */
static double unit_noise(const Problem *self, double zeta) {
  double variance = 1 + zeta * zeta;
  return self->quadratic ? variance * sqrt(3 + 6.0 / self->d) : sqrt(variance);
}

static Status pool_create(Problem *self, const Config *config) {
  Pool *state;
  ALLOCATE(&self->memory, state, 1);
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
  self->kept = pool_row(self) * (size_t)self->arms;
  ALLOCATE(&self->memory, state->pool, (size_t)self->d * (size_t)self->arms);
  return create_theta(self->d, self->seed, &self->theta);
}

/* Stores the pools of the runs, kept[B, K, pool_row]: member m has the stream (POOL, run, round 0, draw
 * m). */
static void keep_pools(const Problem *self, uint32_t first_run, int runs, double *kept) {
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, arms = (size_t)self->arms, row = pool_row(self);
  for (uint32_t b = 0; b < (uint32_t)runs; b++) {
    RngLanes rng = {.key = rng_key(self->seed, RNG_POOL),
                    .run = first_run + b,
                    .draws = (uint32_t)self->arms,
                    .lanes = (uint32_t)self->arms};
    rng_lanes_normal(&rng, self->d, state->pool);
    for (size_t m = 0; m < arms; m++)
      for (size_t i = 0; i < d; i++) kept[(b * arms + m) * row + i] = state->pool[i * arms + m];
  }
}

/* Gathers the SQUARE coordinates of the members of RUNS runs, one vector for each coordinate. */
INLINE void gather_member(const double *const *member, size_t i, Runs *x) {
  Four own[RUNS];
  Runs pair[SQUARE];
  for (size_t n = 0; n < RUNS; n++) __builtin_memcpy(&own[n], member[n] + i, sizeof own[n]);
  for (size_t n = 0; n < SQUARE; n++)
    pair[n] = __builtin_shufflevector(own[n], own[n + SQUARE], 0, 1, 2, 3, 4, 5, 6, 7);
  const Runs low0 = __builtin_shufflevector(pair[0], pair[1], 0, 8, 2, 10, 4, 12, 6, 14);
  const Runs low1 = __builtin_shufflevector(pair[2], pair[3], 0, 8, 2, 10, 4, 12, 6, 14);
  const Runs high0 = __builtin_shufflevector(pair[0], pair[1], 1, 9, 3, 11, 5, 13, 7, 15);
  const Runs high1 = __builtin_shufflevector(pair[2], pair[3], 1, 9, 3, 11, 5, 13, 7, 15);
  x[0] = __builtin_shufflevector(low0, low1, 0, 1, 8, 9, 4, 5, 12, 13);
  x[1] = __builtin_shufflevector(high0, high1, 0, 1, 8, 9, 4, 5, 12, 13);
  x[2] = __builtin_shufflevector(low0, low1, 2, 3, 10, 11, 6, 7, 14, 15);
  x[3] = __builtin_shufflevector(high0, high1, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* Computes phi[d, count] <- zeta phi + the members of `count` <= RUNS runs. The product is rounded first,
 * as in special_two_products. */
INLINE void add_squares(size_t d, size_t stride, size_t count, double zeta, const double *const *member,
                        double *phi) {
  for (size_t i = 0; i < d; i += SQUARE) {
    const size_t rows = d - i < SQUARE ? d - i : SQUARE;
    Runs own[SQUARE], x = {0};
    gather_member(member, i, own);
    for (size_t r = 0; r < rows; r++) {
      __builtin_memcpy(&x, phi + (i + r) * stride, count * sizeof *phi);
      x = own[r] + (zeta * x + 0.0);
      __builtin_memcpy(phi + (i + r) * stride, &x, count * sizeof *phi);
    }
  }
}

/* Computes phi[d, B] of an arm <- zeta phi + the member of each run's pool that its uniform number[B]
 * stands for. */
SIMD_CLONES
static void add_members(size_t d, size_t row, size_t arms, size_t runs, double zeta, const double *kept,
                        const double *uniform, double *phi) {
  for (size_t from = 0; from < runs; from += RUNS) {
    const size_t count = runs - from < RUNS ? runs - from : RUNS;
    const double *member[RUNS];
    for (size_t n = 0; n < RUNS; n++) {
      const size_t b = from + (n < count ? n : 0); /* of runs that are not there, the first */
      member[n] = kept + (b * arms + (size_t)(uniform[b] * (double)arms)) * row;
    }
    if (count == RUNS)
      add_squares(d, runs, RUNS, zeta, member, phi + from);
    else
      add_squares(d, runs, count, zeta, member, phi + from);
  }
}

/* Draws noise and adds zeta times it and the members, two arms at a time, as long as they are in the
 * cache: time, as long as they are in the cache: so many have the numbers of whole positions in both
 * streams. More arms mean another pool. */
static void pool_draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                               const double *kept, double *features, double *scratch) {
  const Pool *state = self->state;
  const size_t d = (size_t)self->d, stride = (size_t)runs;
  RngLanes noise = {.key = rng_key(self->seed, RNG_ARMS),
                    .run = first_run,
                    .draws = 1,
                    .round = round,
                    .lanes = (uint32_t)runs};
  RngLanes member = noise;
  member.key = rng_key(self->seed, RNG_POOL_MEMBER);
  for (int k = 0; k < self->arms; k += 2) {
    const int pair = k + 1 < self->arms ? 2 : 1;
    rng_lanes_normal(&noise, pair * self->d, features);
    rng_lanes_uniform(&member, pair, scratch);
    for (int m = 0; m < pair; m++, features += d * stride)
      add_members(d, pool_row(self), (size_t)self->arms, stride, state->zeta, kept,
                  scratch + (size_t)m * stride, features);
  }
}

const ProblemOps problem_pool = {.name = "pool",
                                 .summary = "arms from a pool of K vectors plus noise, redrawn each round",
                                 .reference = "VITS, Section 4.1 and Appendix H",
                                 .arms = 50,
                                 .dimension = 20,
                                 .create = pool_create,
                                 .keep = keep_pools,
                                 .features = pool_draw_features};
