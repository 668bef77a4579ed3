#include "problem/problem_past.h"

#include "core/lanes.h"

enum { BLOCK = 256 /* tasks that are played together */ };

Status problem_past_check(const Problem *problem) {
  if (problem->ops->rewards)
    return status_set(STATUS_INPUT, "problem.family = %s has no theta* for past tasks", problem->ops->name);
  if (problem->ops->arms_of_theta)
    return status_set(STATUS_INPUT,
                      "past tasks (prior.learned_from, prior.guard_tasks) play random arms, but in "
                      "problem.family = %s the arms depend on theta*",
                      problem->ops->name);
  return STATUS_OK;
}

/* Returns the same problem at another time: its streams have their own seed. If each arm has its own theta*,
 * each past task is about one of them, observed in the problem's contexts. */
static Problem past_problem(const Problem *problem, uint32_t replicate) {
  Rng rng = {.key = rng_key(problem->seed, RNG_PAST_WORLD), .run = replicate};
  Problem past = *problem;
  past.seed = rng_index(&rng, UINT64_C(1) << 53);
  past.per_arm = false;
  if (problem->per_arm) past.arms = 1;
  return past;
}

/* What receives the observations of past tasks, and scratch. */
typedef struct {
  PastTake take;
  void *self;
  int *arm; /* [BLOCK] */
  double *phi, *y, *regret; /* [d, BLOCK], [BLOCK], [BLOCK] */
  double *column; /* [d, BLOCK] theta*; then [d] one phi */
  uint32_t first; /* number of the first task */
} Watch;

/* Makes one observation of each task in a block. */
static Status past_world_observe(World *world, uint32_t round, const Watch *watch) {
  const Problem *problem = world->problem;
  const size_t runs = (size_t)world->runs, d = (size_t)problem->d;
  world_advance(world, round);
  for (size_t b = 0; b < runs; b++) {
    Rng rng = {
        .key = rng_key(problem->seed, RNG_HISTORY), .run = world->first_run + (uint32_t)b, .round = round};
    watch->arm[b] = (int)rng_index(&rng, (uint64_t)problem->arms);
  }
  world_play(world, watch->arm, watch->phi, watch->y, watch->regret);
  for (size_t b = 0; b < runs; b++) {
    for (size_t i = 0; i < d; i++) watch->column[i] = watch->phi[i * runs + b];
    TRY(watch->take(watch->self, (int)(world->first_run + b - watch->first), watch->column, watch->y[b]));
  }
  return STATUS_OK;
}

/* Plays one block of tasks, from `first` on. */
static Status past_world_play_block(const Problem *past, const Samples *theta, int first, int observations,
                                    const Watch *watch) {
  const int runs = theta->n - first < BLOCK ? theta->n - first : BLOCK;
  SCOPED(World, world, world_destroy);
  lanes_copy(past->d, runs, theta->theta + first, theta->n, watch->column, runs);
  TRY(world_create_given(past, 0, (uint32_t)first, runs, watch->column, &world));
  for (int round = 1; round <= observations; round++) TRY(past_world_observe(&world, (uint32_t)round, watch));
  return STATUS_OK;
}

Status problem_past_play(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                         PastTake take, void *self) {
  SCRATCH_ARENA(scratch);
  const Problem past = past_problem(problem, replicate);
  const size_t vectors = (size_t)problem->d * BLOCK;
  Watch watch = {.take = take, .self = self, .first = (uint32_t)first};
  Samples theta;
  ALLOCATE(&scratch, watch.arm, BLOCK);
  ALLOCATE(&scratch, watch.phi, 2 * vectors + 2 * BLOCK);
  watch.column = watch.phi + vectors, watch.y = watch.column + vectors, watch.regret = watch.y + BLOCK;
  TRY(problem_training_samples(&scratch, problem, replicate, (int64_t)first + tasks, &theta));
  for (int task = first; task < theta.n; task += BLOCK)
    TRY(past_world_play_block(&past, &theta, task, observations, &watch));
  return STATUS_OK;
}

static Status past_world_add_to_logs(void *logs, int task, const double *phi, double y) {
  return logs_add(logs, task, phi, y);
}

Status problem_past_logs(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                         Logs *logs) {
  return problem_past_play(problem, replicate, first, tasks, observations, past_world_add_to_logs, logs);
}
