#include "problem/problem.h"

#include "core/special.h"
#include "problem/problems.h"
#include "rule/rule_index.h"

#include <string.h>

static const ProblemOps *const registry[] = {
#define PROBLEM_ENTRY(name) &problem_##name,
    PROBLEM_LIST(PROBLEM_ENTRY)
#undef PROBLEM_ENTRY
        NULL};

const ProblemOps *problem_family(int index) { return registry[index]; }
const char *problem_name(int index) { return registry[index] ? registry[index]->name : NULL; }

/* Returns the family of problem.family; the convergence study has a target instead of a bandit. */
const ProblemOps *problem_of(const Config *config) {
  if (config_is(config, "study", "convergence")) return &problem_target;
  for (int i = 0; registry[i]; i++)
    if (config_is(config, "problem.family", registry[i]->name)) return registry[i];
  return NULL;
}

int problem_arms(const Config *config) {
  enum { ARMS = 100 };
  if (!config_is(config, "problem.arms", "auto")) return (int)config_int(config, "problem.arms");
  int arms = problem_of(config)->arms;
  return arms ? arms : ARMS;
}

/* Returns problem.dimension; 0 if it is left to the distribution of theta*. */
static int64_t problem_asked_dimension(const Config *config) {
  return config_is(config, "problem.dimension", "auto") ? 0 : config_int(config, "problem.dimension");
}

static int64_t problem_distributed_from(const Config *config) {
  return config_is(config, "linear_algebra.distributed_from", "auto")
             ? PROBLEM_DISTRIBUTED
             : config_int(config, "linear_algebra.distributed_from");
}

bool problem_is_large(const Config *config) {
  return config_is(config, "study", "posterior") && problem_of(config)->matrix &&
         (problem_asked_dimension(config) >= PROBLEM_LARGE ||
          problem_asked_dimension(config) >= problem_distributed_from(config));
}

bool problem_is_distributed(const Config *config) {
  return problem_is_large(config) && problem_asked_dimension(config) >= problem_distributed_from(config);
}

Status problem_create_theta(Problem *self, const Config *config) {
  const ThetaOps *distribution = problem_theta_find(config_text(config, "problem.theta"));
  if (self->large) return problem_theta_create_large(distribution, self->d, self->seed, &self->theta);
  return problem_theta_create(distribution, self->d, config_text(config, "problem.file"),
                              config_real(config, "prior.test_fraction"), self->seed, &self->theta);
}

/* Checks the settings, and creates the family's part of the problem. */
static Status problem_complete(Problem *self, const Config *config) {
  const ProblemOps *ops = self->ops;
  if (self->per_arm) self->resample_arms = true; /* the features are a context, drawn in every round */
  if (self->per_arm && !ops->per_arm)
    return status_set(STATUS_INPUT,
                      "problem.unknown: per_arm, but in problem.family = %s all arms share one theta*; use "
                      "synthetic or embedding",
                      ops->name);
  if (!self->large && !config_is(config, "linear_algebra.distributed_from", "auto") &&
      problem_asked_dimension(config) >= problem_distributed_from(config))
    return status_set(STATUS_INPUT,
                      "linear_algebra.distributed_from: %lld, but only posterior studies of problem.family = "
                      "inverse have matrices to spread over ranks",
                      (long long)problem_distributed_from(config));
  const bool drifts = config_is(config, "problem.drift.kind", "switch");
  if (drifts != (self->drift_every > 0))
    return status_set(STATUS_INPUT, "problem.drift: kind switch and every > 0 go together; every is %d",
                      self->drift_every);
  if (drifts && (ops->arms_of_theta || ops->rewards || !config_is(config, "study", "bandit")))
    return status_set(
        STATUS_INPUT,
        "problem.drift: kind switch is for study bandit, with arms that do not depend on theta*; "
        "this is study %s, problem.family %s",
        config_text(config, "study"), ops->name);
  if (ops->needs_file && !config_text(config, "problem.file"))
    return status_set(STATUS_INPUT, "problem.family = %s needs problem.file, which is not given", ops->name);
  TRY(arena_new(&self->memory, &self->state, 1, ops->state_size));
  TRY(ops->create(self, config));
  self->d = self->theta.d;
  /* The arms of a run have different members of a finite set. */
  const int items = problem_theta_test_size(&self->theta);
  if (problem_unknowns(self) <= items) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "problem.arms: %d, but the file has only %d theta* for them; raise prior.test_fraction",
                    self->arms, items);
}

Status problem_create(const Config *config, Problem *out) {
  *out = (Problem){.ops = problem_of(config),
                   .d = (int)problem_asked_dimension(config),
                   .arms = problem_arms(config),
                   .rounds = (int)config_int(config, "problem.rounds"),
                   .drift_every = (int)config_int(config, "problem.drift.every"),
                   .resample_arms = config_bool(config, "problem.resample_arms"),
                   .per_arm = config_is(config, "problem.unknown", "per_arm"),
                   .large = problem_is_large(config),
                   .seed = (uint64_t)config_int(config, "seed")};
  double noise = config_is(config, "problem.noise", "auto") ? 1 : config_real(config, "problem.noise");
  out->likelihood = (Likelihood){.ops = likelihood_find(config_text(config, "likelihood")), .noise = noise};
  ASSERT(out->ops && out->likelihood.ops);
  if (out->d == 0) out->d = out->ops->dimension;
  const Status status = problem_complete(out, config);
  if (status != STATUS_OK) problem_destroy(out);
  return status;
}

void problem_destroy(Problem *problem) {
  problem_theta_destroy(&problem->theta);
  arena_free(&problem->memory);
  *problem = (Problem){0};
}

/* Transforms samples of `theta` into theta* of the runs, if the family does so. */
static void problem_transform_theta(const Problem *problem, uint32_t first_run, int runs, double *theta) {
  const RngLanes rng =
      rng_lanes(rng_key(problem->seed, RNG_ROTATION), first_run, runs, 1, problem->theta.segment);
  if (problem->ops->transform) problem->ops->transform(problem, rng, theta);
}

void problem_theta(const Problem *problem, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  problem_theta_draw(&problem->theta, RNG_THETA, replicate, first_run, runs, theta);
  problem_transform_theta(problem, first_run, runs, theta);
}

void problem_theta_for_pictures(const Problem *problem, int count, double *theta) {
  problem_theta_draw(&problem->theta, RNG_THETA_SHOWN, 0, 0, count, theta);
  problem_transform_theta(problem, 0, count, theta);
}

Status problem_training_samples(Arena *memory, const Problem *problem, uint32_t replicate, int64_t limit,
                                Samples *out) {
  TRY(problem_theta_training_samples(memory, &problem->theta, replicate, limit, out));
  const RngKey key = rng_subkey(rng_key(problem->seed, RNG_PRIOR_SAMPLES), RNG_ROTATION);
  const RngLanes rng = rng_lanes(key, replicate, 1, out->n, 0);
  if (problem->ops->transform) problem->ops->transform(problem, rng, out->theta);
  return STATUS_OK;
}

bool problem_has_exact_prior(const Problem *problem) {
  return !problem->ops->transform && !problem->ops->rewards &&
         (problem->large || problem_theta_has_prior(&problem->theta));
}

Status problem_check_exact_prior(const Problem *problem) {
  if (problem_has_exact_prior(problem)) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "there is no exact prior: theta* is drawn from a finite set, or its density is not known; "
      "problem.family = pool has one, and so does synthetic with any problem.theta except 'file'");
}

Status problem_exact_prior(Arena *memory, const Problem *problem, const PriorFit *chain_settings,
                           Prior *out) {
  TRY(problem_check_exact_prior(problem));
  return problem_theta_prior(memory, &problem->theta, chain_settings, out);
}

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

typedef double Vector __attribute__((vector_size(64)));
enum { VECTORS = 4, FEW = VECTORS * sizeof(Vector) / sizeof(double) };

/* Computes phi' theta* of FEW runs, u[FEW], when all arms have one theta*. */
INLINE void predictors_of_few(int d, int runs, const double *phi, const double *theta, double *u) {
  Vector sum[VECTORS] = {{0}}, x, y;
  for (int i = 0; i < d; i++, phi += runs, theta += runs)
    for (size_t v = 0; v < VECTORS; v++) {
      memcpy(&x, phi + v * (FEW / VECTORS), sizeof x);
      memcpy(&y, theta + v * (FEW / VECTORS), sizeof y);
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
    predictors_of_few(d, runs, phi + first, theta + first, u + first);
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
  const IndexedArms of = {.arms = problem->arms,
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
