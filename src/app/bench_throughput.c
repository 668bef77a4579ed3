#include "app/bench_throughput.h"

#include "core/clock.h"
#include "problem/world.h"
#include "study/simulation.h"

/* The CPU seconds of a piece of work. */

enum { FIRST_TRIES = 20 };
static const double PART = 0.02; /* CPU seconds of work between two measurements of the peaks */

static MeterRates bench_meter_try_peaks(Meter *meter) {
  MeterRates found = {simd_peak_float(), simd_peak_double(), simd_peak_memory_rate(&meter->memory)};
  meter->best.floats = fmax(meter->best.floats, found.floats);
  meter->best.doubles = fmax(meter->best.doubles, found.doubles);
  meter->best.bytes = fmax(meter->best.bytes, found.bytes);
  return found;
}

Status bench_meter_create(Arena *memory, int ranks, Meter *out) {
  *out = (Meter){0};
  TRY(simd_peak_memory_create(memory, ranks, &out->memory));
  for (int i = 0; i < FIRST_TRIES; i++) bench_meter_try_peaks(out);
  return STATUS_OK;
}

/* Begins to time a piece of work. */
static void bench_meter_clear(Meter *meter) {
  meter->seconds = meter->part = 0;
  meter->possible = (MeterRates){0};
  meter->now = bench_meter_try_peaks(meter);
}

static void bench_meter_start(Meter *meter) { meter->since = clock_cpu(); }

/* Adds what is left of the work after the last bench_meter_stop. */
static void bench_meter_finish(Meter *meter) {
  const double used = meter->part;
  const MeterRates before = meter->now, after = bench_meter_try_peaks(meter);
  meter->seconds += used;
  meter->possible.floats += used * (before.floats + after.floats) / 2;
  meter->possible.doubles += used * (before.doubles + after.doubles) / 2;
  meter->possible.bytes += used * (before.bytes + after.bytes) / 2;
  meter->now = after;
  meter->part = 0;
}

/* Adds the time since bench_meter_start, or since the last call if the work went on. There may be many short
 * pieces: `seconds` grows when a part is complete. */
static void bench_meter_stop(Meter *meter) {
  meter->part += clock_cpu() - meter->since;
  if (meter->part >= PART) bench_meter_finish(meter);
  bench_meter_start(meter);
}

/* Counting the work of networks. */

/* A prior that counts the work of its networks: what a sampler asks of a learned reverse chain, in operations
 * of the networks' matrix products and in bytes of their weights. */
typedef struct {
  Prior prior; /* with this chain */
  /* Since they were last set to 0: two floating-point operations for each weight and lane of an evaluation,
   * and the same again for a product with the Jacobian; the weights once per call. */
  double flops, bytes;
  /* Private. */
  Chain chain;
  const Chain *inner;
  double forward, jacobian, weights; /* flops per lane, and of all rows of its Jacobian; bytes */
} Counted;

/* Counts so many evaluations of the network, and of all rows of its Jacobian, for each lane. */
static const Chain *bench_count_products(const Chain *chain, int lanes, int evaluations, int jacobians) {
  Counted *self = (Counted *)((char *)(uintptr_t)chain - offsetof(Counted, chain));
  self->flops += (evaluations * self->forward + jacobians * self->jacobian) * lanes;
  self->bytes += self->weights;
  return self->inner;
}

static void bench_counted_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const Chain *inner = bench_count_products(chain, lanes, 1, 0);
  inner->noise(inner, t, lanes, s, eps);
}

static void bench_counted_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                              double *out) {
  const Chain *inner = bench_count_products(chain, lanes, 2, 0);
  inner->noise_vjp(inner, t, lanes, s, v, out);
}

static void bench_counted_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                   double *jacobian) {
  const Chain *inner = bench_count_products(chain, lanes, 1, 1);
  inner->noise_jacobian(inner, t, lanes, s, eps, jacobian);
}

/* Begins to count the work of self->prior's networks, which have this shape. *self must stay where it is. */
static void bench_counted_begin(Counted *self, const NetworkShape *shape) {
  const double last = 2.0 * shape->width[shape->layers - 1] * shape->width[shape->layers];
  for (int l = 0; l < shape->layers; l++) self->forward += 2.0 * shape->width[l] * shape->width[l + 1];
  self->jacobian = shape->width[shape->layers] *
                   (self->forward - last); /* the rows begin as those of the last layer's matrix */
  self->weights = (double)network_parameters(shape) * sizeof(float);
  self->inner = self->prior.chain;
  self->chain = *self->inner;
  self->chain.noise = bench_counted_noise;
  self->chain.noise_vjp = bench_counted_vjp;
  if (self->inner->noise_jacobian) self->chain.noise_jacobian = bench_counted_jacobian;
  self->prior.chain = &self->chain;
}

static const double CALLS_SECONDS = 0.002; /* of draws between two readings of the clock */
/* Limit on CPU time with the beginnings of simulations, as a multiple of what is measured. */
static const double MOST = 10;

/* A block of a policy, and what is needed to measure it. */
typedef struct {
  Task task;
  TaskRun *run;
  Counted counted; /* the prior, with counters if its networks are learned */
  double seconds; /* CPU time allowed */
  Meter *meter; /* not owned */
} Case;

/* Draws given a history. */
typedef struct {
  const History *history; /* not owned */
  Sampler sampler;
  RngLanes rng;
  double *theta; /* [parameters, B] */
  int64_t *fallbacks; /* [B] */
} Draws;

/* Draws `calls` times for all runs, and returns the CPU seconds. */
static double bench_time_draw_calls(Draws *draws, int calls) {
  const double start = clock_cpu();
  for (int i = 0; i < calls; i++) {
    draws->rng.round++;
    sampler_sample(&draws->sampler, draws->history, draws->rng, 1, draws->theta, draws->fallbacks);
  }
  return clock_cpu() - start;
}

static Status bench_measure_draws(Case *c, Throughput *out) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  const Problem *problem = c->run->problem;
  const int runs = c->task.runs;
  Draws draws = {.history = &simulation.history};
  TRY(simulation_create(&memory, c->run, RULE_CHOOSES, &simulation));
  const SamplerSetup setup = policy_sampler_setup(&simulation.policy.setup);
  TRY(sampler_create(&memory, c->run->method.sampler, &setup, &draws.sampler));
  draws.rng = rng_lanes(rng_key(setup.seed, RNG_AGENT), setup.first_run, runs, 1, 0);
  ALLOCATE(&memory, draws.theta, (size_t)c->run->prior->d * (size_t)runs);
  ALLOCATE(&memory, draws.fallbacks, runs);
  /* Each arm is observed in turn, until the sampler has used its time or the rounds end. */
  Meter *meter = c->meter;
  bench_meter_clear(meter);
  for (int k = 1; k <= problem->rounds && meter->seconds < c->seconds; k++) {
    world_advance(&simulation.world, (uint32_t)k);
    for (int b = 0; b < runs; b++) simulation.arm[b] = k % problem->arms;
    world_play(&simulation.world, simulation.arm, simulation.phi, simulation.reward, simulation.regret);
    history_record(&simulation.history, simulation.arm, simulation.phi, simulation.reward);
    if (!draws.sampler.ops->update) continue;
    bench_meter_start(meter);
    sampler_observe(&draws.sampler, &simulation.history, draws.fallbacks);
    bench_meter_stop(meter);
  }
  bench_meter_finish(meter);
  const double spent = meter->seconds; /* for observations of all runs */
  const int at_once = (int)fmax(1, CALLS_SECONDS / bench_time_draw_calls(&draws, 1));
  double calls = 0;
  c->counted.flops = 0;
  bench_meter_start(meter);
  do {
    bench_time_draw_calls(&draws, at_once);
    calls += at_once;
    bench_meter_stop(meter);
  } while (meter->seconds < spent + c->seconds);
  bench_meter_finish(meter);
  out->observations = simulation.history.rounds;
  out->draw_seconds = (spent / simulation.history.rounds + (meter->seconds - spent) / calls) / runs;
  const SamplerOps *ops = draws.sampler.ops;
  if (c->counted.flops > 0) out->draw_floats = c->counted.flops / calls / runs;
  if (ops->operations) out->draw_doubles = ops->operations(&draws.sampler);
  if (isnan(out->draw_floats) && isnan(out->draw_doubles)) return STATUS_OK;
  const double at_peak = fmax(0, out->draw_floats) / meter->possible.floats +
                         fmax(0, out->draw_doubles) / meter->possible.doubles;
  out->draw_of_peak = at_peak * meter->seconds / out->draw_seconds;
  return STATUS_OK;
}

/* Timed simulations, each from its second round on. */
typedef struct {
  Case *c;
  double rounds, reached; /* the rounds measured, over all simulations; the last round reached by any */
  double flops, bytes; /* counted in these rounds */
  bool open;
} Clocked;

static bool throughput_tick(void *context, double fraction) {
  Clocked *clocked = context;
  Case *c = clocked->c;
  if (!clocked->open) {
    clocked->open = true;
    c->counted.flops = clocked->flops, c->counted.bytes = clocked->bytes;
    bench_meter_start(c->meter);
    return true;
  }
  clocked->rounds++;
  clocked->reached = fmax(clocked->reached, round(fraction * c->run->problem->rounds));
  clocked->flops = c->counted.flops;
  clocked->bytes = c->counted.bytes;
  clocked->open = fraction < 1;
  bench_meter_stop(c->meter);
  return c->meter->seconds < c->seconds;
}

static Status bench_measure_rounds(Case *c, Throughput *out) {
  SCOPED(TaskResult, result, study_result_destroy);
  TRY(study_result_create(c->run->study, &c->task, &result));
  Clocked clocked = {.c = c};
  Status status = STATUS_OK;
  c->run->tick = (Tick){throughput_tick, &clocked}, c->run->result = &result;
  bench_meter_clear(c->meter);
  const double end = clock_cpu() + MOST * c->seconds;
  while (status == STATUS_OK && c->meter->seconds < c->seconds && clock_cpu() < end)
    status = c->run->study->ops->run(c->run);
  if (status == STATUS_STOPPED) status = STATUS_OK;
  TRY(status);
  bench_meter_finish(c->meter);
  const double d = c->run->problem->d, K = c->run->problem->arms, runs = clocked.rounds * c->task.runs;
  const double scores = 2 * d * K;
  const int entries = likelihood_evidence(&c->run->problem->likelihood, c->run->problem->d);
  const double evidence = 2.0 * sizeof(double) * entries; /* read and written */
  const Meter *meter = c->meter;
  out->rounds_reached = (int)clocked.reached;
  out->round_seconds = meter->seconds / runs;
  out->round_flops = clocked.flops / runs + scores;
  out->round_of_peak = clocked.flops / meter->possible.floats + scores * runs / meter->possible.doubles;
  out->round_bytes = problem_vectors(c->run->problem) * d * sizeof(double) + evidence + clocked.bytes / runs;
  out->round_of_bandwidth = out->round_bytes * runs / meter->possible.bytes;
  return STATUS_OK;
}

Status bench_throughput_measure(const Study *study, ThroughputCase which, const char *directory, Meter *meter,
                                Throughput *out) {
  SCOPED(TaskPriors, priors, study_task_priors_free);
  SCOPED(TaskRun, run, study_task_run_destroy);
  priors.directory = directory;
  Case c = {.run = &run, .seconds = which.seconds, .meter = meter};
  c.task = study_task(study, study_task_index(study, which.setting, which.policy, 0));
  if (config_int(study->file->settings[which.setting], "problem.rounds") < 2)
    return status_set(STATUS_INPUT, "key 'problem.rounds': a measurement needs 2 or more");
  TRY(study_task_run_create(study, &c.task, &priors, &run));
  c.counted.prior = *run.prior;
  run.prior = &c.counted.prior;
  const Problem *problem = run.problem;
  *out = (Throughput){.d = problem->d,
                      .arms = problem->arms,
                      .rounds = problem->rounds,
                      .runs = c.task.runs,
                      .draw_seconds = NAN,
                      .draw_floats = NAN,
                      .draw_doubles = NAN,
                      .draw_of_peak = NAN};
  const Prior *prior = &c.counted.prior;
  const PriorFit *fit = &run.belief.fit;
  const SamplerOps *sampler = run.method.sampler;
  const bool chain = sampler && (sampler->needs & NEEDS_CHAIN),
             learned = chain && run.belief.kind == BELIEF_FITTED && !prior->mixture;
  const NetworkShape shape = network_shape(problem->d, fit->hidden_count, fit->hidden, problem->d);
  if (chain) out->stages = fit->schedule.stages;
  if (learned) out->hidden_count = fit->hidden_count;
  for (int l = 0; l < out->hidden_count; l++) out->hidden[l] = fit->hidden[l];
  if (learned && prior->chain) bench_counted_begin(&c.counted, &shape);
  /* With one posterior per arm all arms are drawn together, so only rounds are reported. */
  if (sampler && !problem->per_arm && !config_is(run.policy->options, "posterior", "per_arm"))
    TRY(bench_measure_draws(&c, out));
  return which.draws_only ? STATUS_OK : bench_measure_rounds(&c, out);
}
