#include "problem/problem_past.h"

#include "core/lanes.h"
#include "problem/world.h"

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

Status problem_past_logs(const Problem *problem, uint32_t replicate, int first, int tasks, int observations,
                         Logs *logs) {
  SCRATCH_ARENA(scratch);
  Rng seed = {.key = rng_key(problem->seed, RNG_PAST_WORLD), .run = replicate};
  /* The same problem at another time: its streams have their own seed. If each arm has its own theta*, each
   * past task is about one of them, observed in the problem's contexts. */
  Problem past = *problem;
  past.seed = rng_index(&seed, UINT64_C(1) << 53);
  past.per_arm = false;
  if (problem->per_arm) past.arms = 1;
  const RngKey key = rng_key(past.seed, RNG_HISTORY);
  const size_t d = (size_t)past.d;
  int *arm; /* [BLOCK] */
  double *phi, *y, *regret; /* [d, BLOCK], [BLOCK], [BLOCK] */
  double *one; /* [d], one phi */
  Samples theta;
  ALLOCATE(&scratch, arm, BLOCK);
  ALLOCATE_ARRAYS(&scratch, BLOCK, &y, &regret);
  ALLOCATE(&scratch, phi, d * BLOCK);
  ALLOCATE(&scratch, one, d);
  TRY(problem_training_samples(&scratch, problem, replicate, (int64_t)first + tasks, &theta));
  for (int task = first; task < theta.n; task += BLOCK) {
    const size_t runs = (size_t)(theta.n - task < BLOCK ? theta.n - task : BLOCK);
    SCOPED(World, world, world_destroy);
    TRY(world_create(&past, 0, (uint32_t)task, (int)runs, &world));
    /* Tasks have theta* for training in place of those that the world drew. */
    lanes_copy(past.d, (int)runs, theta.theta + task, theta.n, world.theta, (int)runs);
    world_theta_changed(&world);
    for (uint32_t round = 1; round <= (uint32_t)observations; round++) {
      world_advance(&world, round);
      for (size_t b = 0; b < runs; b++) {
        Rng rng = {.key = key, .run = (uint32_t)task + (uint32_t)b, .round = round};
        arm[b] = (int)rng_index(&rng, (uint64_t)past.arms);
      }
      world_play(&world, arm, phi, y, regret);
      for (size_t b = 0; b < runs; b++) {
        for (size_t i = 0; i < d; i++) one[i] = phi[i * runs + b];
        TRY(logs_add(logs, task - first + (int)b, one, y[b]));
      }
    }
  }
  return STATUS_OK;
}
