#include "study/simulation.h"

#include "problem/world.h"

/* Draws theta* of the runs after `segment` changes of it: from the task's own prior if it has one. */
static void simulation_draw_theta(Simulation *self, uint32_t segment) {
  const TaskRun *run = self->run;
  const Task *task = run->task;
  World *world = &self->world;
  RngLanes rng = rng_lanes(rng_key(run->study->seed, RNG_TUNE), task->first_run, task->runs, 1, segment);
  if (task->world) {
    ASSERT(!run->problem->per_arm && !run->problem->ops->arms_of_theta);
    task->world->ops->sample(task->world, &rng, world->theta);
  } else {
    world_draw_theta(world, segment);
  }
  world_theta_changed(world);
}

Status simulation_create(Arena *memory, const TaskRun *run, RuleUse use, Simulation *out) {
  const Task *task = run->task;
  const Problem *problem = run->problem;
  PolicySetup setup = study_policy_setup(run);
  setup.use = use;
  out->run = run;
  out->discount = policy_discount(run->policy->options);
  TRY(world_create(problem, task->replicate, task->first_run, task->runs, &out->world));
  TRY(policy_begin(memory, &run->method, &setup, &out->history, &out->policy));
  ALLOCATE(memory, out->arm, task->runs);
  ALLOCATE_ARRAYS(memory, task->runs, &out->reward, &out->regret);
  ALLOCATE(memory, out->phi, problem->d * task->runs);
  if (use != RULE_CHOOSES) ALLOCATE(memory, out->probability, task->runs * problem->arms);
  if (task->world) simulation_draw_theta(out, 0);
  return STATUS_OK;
}

void simulation_destroy(Simulation *self) {
  policy_destroy(&self->policy);
  world_destroy(&self->world);
}

double simulation_seconds(const Simulation *self) { return self->timer.seconds + self->policy.elsewhere; }

/* ---- probes */

Status simulation_add_probe(Arena *memory, const ProbeOps *ops, int curve, void *state, Simulation *self) {
  double *value = NULL;
  if (ops->create) {
    TRY(ops->create(memory, self, &state));
    if (!state) return STATUS_OK;
  }
  GROW(memory, self->probes, self->probe_count);
  if (curve >= 0) ALLOCATE(memory, value, self->run->task->runs);
  self->probes[self->probe_count++] =
      (Probe){.ops = ops, .simulation = self, .curve = curve, .value = value, .state = state};
  return STATUS_OK;
}

void probe_accumulate(const Probe *probe, const double *values) {
  for (int b = 0; b < probe->simulation->world.runs; b++) probe->value[b] += values[b];
}

/* Returns the round at a point of the curves: 0 before the first, and none of the rounds after the last. */
static int simulation_kept_round(const Simulation *self, int point) {
  if (point < 0) return 0;
  if (point >= self->run->result->points) return self->run->problem->rounds + 1;
  return (int)study_axis_value(self->run->study, self->run->task->setting, point);
}

/* Returns whether one of the rounds 1, 2, 5, 10, 20, 50, .. is after round `from` and up to round k. */
static bool simulation_is_due(int from, int k) {
  int unit = 1;
  while (k >= 10 * unit) unit *= 10;
  const int last = k >= 5 * unit ? 5 * unit : k >= 2 * unit ? 2 * unit : unit;
  return last > from;
}

/* Returns whether a probe measures in round k. */
static bool simulation_measures(const Simulation *self, const Probe *probe, int k) {
  if (!probe->ops->sparse) return true;
  if (probe->curve < 0) return simulation_is_due(k - 1, k) || k == self->run->problem->rounds;
  return k == simulation_kept_round(self, self->point) &&
         (simulation_is_due(simulation_kept_round(self, self->point - 1), k) ||
          self->point + 1 == self->run->result->points);
}

/* Stores the values of round k: of a curve that has every round, or if the round is kept. */
static void simulation_store(Simulation *self, int k) {
  const bool kept = k == simulation_kept_round(self, self->point);
  for (int i = 0; i < self->probe_count; i++) {
    const Probe *probe = &self->probes[i];
    const bool every = probe->curve >= self->run->study->along;
    const int place = every ? k - 1 : self->point;
    if (probe->curve < 0 || !(every || kept) || !simulation_measures(self, probe, k)) continue;
    for (int b = 0; b < self->world.runs; b++)
      study_result_values(self->run->result, probe->curve, b)[place] = probe->value[b];
  }
  self->point += kept;
}

/* Lets the probes measure, while the clock of the policy stands still. To read the clock takes as long as a
 * cheap policy needs for a round. */
static Status simulation_measure(Simulation *self, int moment, int k) {
  for (int i = 0; i < self->probe_count; i++) {
    const Probe *probe = &self->probes[i];
    ProbeMeasure *measure = probe->ops->measure[moment];
    if (!measure || !simulation_measures(self, probe, k)) continue;
    if (!probe->ops->quick) timer_stop(&self->timer);
    TRY(measure(probe, k));
    if (!probe->ops->quick) timer_start(&self->timer);
  }
  return STATUS_OK;
}

/* ---- rounds */

void simulation_advance(Simulation *self, int k) {
  const int every = self->run->problem->drift_every;
  if (every > 0 && k > 1 && (k - 1) % every == 0) simulation_draw_theta(self, (uint32_t)((k - 1) / every));
  world_advance(&self->world, (uint32_t)k);
}

Status simulation_choose(Simulation *self) {
  int64_t *fallbacks = self->run->result->columns.fallbacks;
  return self->probability ? policy_weigh(&self->policy, &self->world, &self->history, self->probability,
                                          self->arm, fallbacks)
                           : policy_choose(&self->policy, &self->world, &self->history, self->arm, fallbacks);
}

void simulation_settle(Simulation *self) {
  policy_settle(&self->policy, &self->world, &self->history, self->run->result->columns.fallbacks);
}

void simulation_learn(Simulation *self, const int *arm, const double *phi, const double *y) {
  history_record(&self->history, arm, phi, y);
  policy_observe(&self->policy, &self->history, self->run->result->columns.fallbacks);
}

/* Lets the policy learn from the rewards that arrive at the end of round k. */
static Status simulation_learn_from_round(Simulation *self, int k) {
  if (self->discount < 1) history_discount(&self->history, self->discount);
  if (!self->feedback) {
    simulation_learn(self, self->arm, self->phi, self->reward);
    return simulation_measure(self, AFTER_LEARNING, k);
  }
  const int arrived = feedback_exchange(self->feedback, k, self->arm, self->phi, self->reward);
  for (int i = 0; i < arrived; i++) {
    const FeedbackSlot *slot = &self->feedback->slots[i];
    simulation_learn(self, slot->arm, slot->phi, slot->y);
    TRY(simulation_measure(self, AFTER_LEARNING, k));
  }
  return STATUS_OK;
}

/* Simulates contextual Thompson sampling and its rivals (DiffTS paper, Algorithm 3). */
Status simulation_run(Simulation *self) {
  const int rounds = self->run->problem->rounds;
  timer_start(&self->timer);
  for (int k = 1; k <= rounds; k++) {
    simulation_advance(self, k);
    TRY(simulation_measure(self, BEFORE_CHOICE, k));
    TRY(simulation_choose(self));
    world_play(&self->world, self->arm, self->phi, self->reward, self->regret);
    TRY(simulation_measure(self, AFTER_CHOICE, k));
    TRY(simulation_learn_from_round(self, k));
    TRY(simulation_measure(self, AFTER_ROUND, k));
    simulation_store(self, k);
    if (!core_tick_goes_on(self->run->tick, (double)k / rounds))
      return status_set(STATUS_STOPPED, "stopped in round %d of %d", k, rounds);
  }
  timer_stop(&self->timer);
  return STATUS_OK;
}
