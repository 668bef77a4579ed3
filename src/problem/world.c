#include "problem/world.h"

#include "core/real.h"
#include "core/special.h"
#include "rule/rule_index.h"

#include <string.h>

/* Returns the features of arm k, [d, B]. */
static const double *world_arm_features(const World *world, int k) {
  const size_t place = world->problem->per_arm ? 0 : (size_t)k;
  return world->features + place * (size_t)world->problem->d * (size_t)world->runs;
}

void world_longest_squares(const World *world, double *square) {
  const int d = world->problem->d, runs = world->runs;
  for (int b = 0; b < runs; b++) square[b] = 0;
  for (int k = 0; k < problem_vectors(world->problem); k++) {
    const double *phi = world_arm_features(world, k);
    for (int b = 0; b < runs; b++) {
      double own = 0;
      for (int i = 0; i < d; i++) own += phi[i * runs + b] * phi[i * runs + b];
      square[b] = fmax(square[b], own);
    }
  }
}

/* Returns a run's theta* for arm k; its coordinates are `stride` apart. */
static const double *world_arm_theta(const World *world, int run, int k, size_t *stride) {
  const int unknowns = problem_unknowns(world->problem);
  *stride = (size_t)world->runs * (size_t)unknowns;
  return world->theta + (size_t)run * (size_t)unknowns + (world->problem->per_arm ? k : 0);
}

enum { VECTORS = 4, FEW = VECTORS * VECTOR_LANES };

/* Computes phi' theta* of FEW runs, u[FEW], when all arms have one theta*. */
INLINE void world_predictors_of_few(int d, int runs, const double *phi, const double *theta, double *u) {
  Real sum[VECTORS] = {{0}}, x, y;
  for (int i = 0; i < d; i++, phi += runs, theta += runs)
    for (size_t v = 0; v < VECTORS; v++) {
      memcpy(&x, phi + v * (VECTOR_LANES), sizeof x);
      memcpy(&y, theta + v * (VECTOR_LANES), sizeof y);
      sum[v] += x * y + 0.0;
    }
  memcpy(u, sum, sizeof sum);
}

/* Computes phi' theta* of all runs, u[B]. */
SIMD_CLONES
static void world_arm_predictors(int d, int runs, int unknowns, const double *phi, const double *theta,
                                 double *u) {
  const int few = unknowns == 1 ? runs / FEW * FEW : 0; /* runs that come FEW at a time */
  for (int first = 0; first < few; first += FEW)
    world_predictors_of_few(d, runs, phi + first, theta + first, u + first);
  for (int b = few; b < runs; b++) u[b] = 0;
  for (int i = 0; i < d; i++, phi += runs, theta += runs * unknowns)
    if (unknowns == 1)
      for (int b = few; b < runs; b++) u[b] = special_two_products(1, u[b], phi[b], theta[b]);
    else
      for (int b = 0; b < runs; b++) u[b] = special_two_products(1, u[b], phi[b], theta[b * unknowns]);
}

/* Makes arm k the best arm of each run in which it is better than all arms before it. */
SIMD_CLONES
static void world_keep_better_arm(int runs, int k, const double *restrict mean, double *restrict top,
                                  int *restrict best) {
  for (int b = 0; b < runs; b++) {
    const int better = k == 0 || mean[b] > top[b];
    top[b] = better ? mean[b] : top[b];
    best[b] = better ? k : best[b];
  }
}

/* Computes the expected rewards of all arms and finds the best arm of each run. */
static void world_find_best_arms(World *world) {
  const Problem *problem = world->problem;
  const int runs = world->runs;
  double *u = world->scratch, *top = world->scratch + runs;
  if (problem->ops->rewards) problem->ops->rewards(world);
  for (int k = 0; k < problem->arms; k++) {
    size_t stride;
    double *mean = world->mean + (size_t)k * (size_t)runs;
    world_arm_predictors(problem->d, runs, problem_unknowns(problem), world_arm_features(world, k),
                         world_arm_theta(world, 0, k, &stride), u);
    if (problem->quadratic)
      for (int b = 0; b < runs; b++) u[b] *= u[b];
    if (!problem->ops->rewards) problem->likelihood.ops->mean(&problem->likelihood, runs, u, mean);
    world_keep_better_arm(runs, k, mean, top, world->best);
  }
}

void world_theta_changed(World *world) {
  if (!world->problem->resample_arms) world_find_best_arms(world);
}

static void world_draw_arms(World *world) {
  world->problem->ops->features(world);
  world_find_best_arms(world);
}

void world_draw_theta(World *world, uint32_t segment) {
  Problem problem = *world->problem;
  problem.theta.segment = segment;
  if (problem.per_arm)
    problem_theta_draw_each(&problem.theta, world->replicate, world->first_run, world->runs, problem.arms,
                            world->theta);
  else
    problem_theta(&problem, world->replicate, world->first_run, world->runs, world->theta);
}

Status world_create(const Problem *problem, uint32_t replicate, uint32_t first_run, int runs, World *out) {
  *out = (World){.problem = problem, .replicate = replicate, .first_run = first_run, .runs = runs};
  const size_t d = (size_t)problem->d, b = (size_t)runs;
  ALLOCATE(&out->memory, out->theta, d * b * (size_t)problem_unknowns(problem));
  ALLOCATE(&out->memory, out->features, d * b * (size_t)problem_vectors(problem));
  if (problem->arms_come_and_go) ALLOCATE(&out->memory, out->available, b * (size_t)problem->arms);
  ALLOCATE(&out->memory, out->kept, b * problem->kept);
  ALLOCATE(&out->memory, out->mean, b * (size_t)problem->arms);
  ALLOCATE(&out->memory, out->best, b);
  ALLOCATE(&out->memory, out->noise, 2 * b);
  ALLOCATE(&out->memory, out->scratch, 2 * b + problem->feature_scratch);
  world_draw_theta(out, 0);
  if (problem->ops->keep) problem->ops->keep(out);
  if (!problem->resample_arms) world_draw_arms(out);
  return STATUS_OK;
}

void world_destroy(World *world) {
  arena_free(&world->memory);
  *world = (World){0};
}

void world_advance(World *world, uint32_t round) {
  world->round = round;
  if (world->problem->resample_arms) world_draw_arms(world);
  RngLanes rng = world_streams(world, RNG_REWARD);
  rng_lanes_uniform(&rng, 1, world->noise);
  rng_lanes_normal(&rng, 1, world->noise + world->runs);
}

void world_play(const World *world, const int *arm, double *phi, double *y, double *regret) {
  const Problem *problem = world->problem;
  const int d = problem->d, runs = world->runs;
  for (int b = 0; b < runs; b++) {
    size_t stride;
    const double *features = world_arm_features(world, arm[b]) + b,
                 *theta = world_arm_theta(world, b, arm[b], &stride);
    double u = 0; /* phi' theta*, products rounded before they are added, as in world_arm_predictors */
    for (int i = 0; i < d; i++) {
      phi[i * runs + b] = features[i * runs];
      u = special_two_products(1, u, features[i * runs], theta[(size_t)i * stride]);
    }
    if (problem->quadratic) u *= u;
    y[b] = problem->ops->rewards ? world->mean[arm[b] * runs + b]
                                 : problem->likelihood.ops->sample(&problem->likelihood, u, world->noise[b],
                                                                   world->noise[runs + b]);
    regret[b] = world->mean[world->best[b] * runs + b] - world->mean[arm[b] * runs + b];
  }
}

void world_greedy(const World *world, const double *theta, double *share, int *arm) {
  const Problem *problem = world->problem;
  const IndexedArms of = {.arms = world_arms(world),
                          .d = problem->d,
                          .runs = world->runs,
                          .features = world->features,
                          .mean = theta,
                          .ties = world_streams(world, RNG_TIE)};
  ASSERT(!problem->per_arm);
  rule_index(&of, arm, NULL, share);
  for (int b = 0; b < world->runs && share; b++, share += problem->arms)
    ties_share(problem->arms, share, 1, share);
}
