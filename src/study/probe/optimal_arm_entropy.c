/* How sure an agent is of the optimal arm, measured by the entropy H(A*) of the arm that is best under
 * posterior draws (Russo and Van Roy 2016, An information-theoretic analysis of Thompson sampling). It is
 * estimated from the shares of M draws, so it is about (arms that occur - 1) / (2 M) too low. */
#include "problem/world.h"
#include "study/probes.h"

typedef struct {
  Sampler sampler; /* separate, with separate streams, so that the agent's own draws do not change */
  double *theta, *one; /* [d, B M]; [d, B], one draw per run */
  int *arm, *count; /* [B], [K, B] */
  int64_t *ignored; /* [B], fallbacks */
} OptimalArm;

bool probe_best_arm_is_known(const Simulation *simulation) {
  const TaskRun *run = simulation->run;
  const Config *options = run->policy->options;
  return run->method.sampler && !run->problem->per_arm && !config_is(options, "posterior", "per_arm") &&
         !config_is(options, "model", "network");
}

static Status probe_entropy_create(Arena *memory, const Simulation *simulation, void **state) {
  const Problem *problem = simulation->run->problem;
  SamplerSetup setup = policy_sampler_setup(&simulation->policy.setup);
  const int draws = (int)config_int(simulation->run->setting, "draws"), runs = setup.runs, d = problem->d;
  OptimalArm *self;
  if (!probe_best_arm_is_known(simulation)) return STATUS_OK;
  setup.draws = draws;
  ALLOCATE(memory, self, 1);
  ALLOCATE(memory, self->theta, (size_t)d * (size_t)runs * (size_t)draws);
  ALLOCATE(memory, self->one, d * runs);
  ALLOCATE(memory, self->arm, runs);
  ALLOCATE(memory, self->ignored, runs);
  ALLOCATE(memory, self->count, problem->arms * runs);
  *state = self;
  return sampler_create(memory, simulation->run->method.sampler, &setup, &self->sampler);
}

/* Counts the best arms of M draws given the observations before round k. */
static Status probe_entropy_measure(const Probe *probe, int k) {
  OptimalArm *self = probe->state;
  (void)k;
  const World *world = &probe->simulation->world;
  const SamplerSetup *setup = &self->sampler.setup;
  const int runs = setup->runs, draws = setup->draws, arms = world->problem->arms;
  const int entries = self->sampler.d * runs;
  const RngLanes rng =
      rng_lanes(rng_key(setup->seed, RNG_OPTIMAL_ARM), setup->first_run, runs, draws, world->round);
  sampler_sample(&self->sampler, &probe->simulation->history, rng, draws, self->theta, self->ignored);
  memset(self->count, 0, (size_t)arms * (size_t)runs * sizeof *self->count);
  for (int m = 0; m < draws; m++) {
    for (int n = 0; n < entries; n++) self->one[n] = self->theta[(size_t)n * (size_t)draws + (size_t)m];
    world_greedy(world, self->one, NULL, self->arm);
    for (int b = 0; b < runs; b++) self->count[self->arm[b] * runs + b]++;
  }
  for (int b = 0; b < runs; b++) {
    double entropy = 0;
    for (int a = 0; a < arms; a++) {
      const double share = (double)self->count[a * runs + b] / draws;
      if (share > 0) entropy -= share * log(share);
    }
    probe->value[b] = entropy;
  }
  return STATUS_OK;
}

static Status probe_entropy_observe(const Probe *probe, int k) {
  OptimalArm *self = probe->state;
  (void)k;
  sampler_observe(&self->sampler, &probe->simulation->history, self->ignored);
  return STATUS_OK;
}

const ProbeOps probe_optimal_arm_entropy = {
    .create = probe_entropy_create,
    .measure = {[BEFORE_CHOICE] = probe_entropy_measure, [AFTER_LEARNING] = probe_entropy_observe}};
