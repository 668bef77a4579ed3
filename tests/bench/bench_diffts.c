/* Measures the speed of a whole DiffTS simulation (DiffTS paper, Section 6.2: d = 2, T = 100, 200 rounds, 100
 * arms, one block of 64 runs) run through the study, relative to the FMA peak at the same moment; then of its
 * parts alone, and the cost of `twisted` relative to it. Only the products of the networks count as work. The
 * weights are hardly trained: speed does not depend on them. Usage: bench_diffts [WIDTH of the hidden
 * layers] */
#include "core/arena.h"
#include "core/chunk.h"
#include "core/clock.h"
#include "core/linalg/linalg.h"
#include "core/quantile.h"
#include "core/simd_peak.h"
#include "problem/world.h"
#include "sampler/diffusion/laplace_product.h"
#include "study/keys.h"
#include "study/study.h"
#include "study/study_problem.h"

#include <stdio.h>
#include <stdlib.h>

enum { D = 2, STAGES = 100, ROUNDS = 200, RUNS = 64, TRIES = 21 };

static void ok(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_diffts: %s\n", status_message());
  exit((int)status);
}

/* A study with two tasks, the prior that both share, and the inputs of the parts. */
typedef struct {
  Study study;
  Task task, rival; /* DiffTS, and the same with twisted */
  Problem problem;
  Prior prior;
  TaskResult result;
  World world;
  LaplaceEvidence evidence;
  Chunk chunk;
  double s[D * RUNS], mu[D * RUNS], z[D * RUNS], theta[D * RUNS];
  int arm[RUNS];
  int64_t fallbacks[RUNS];
} Case;

static void make_prior(Arena *memory, Case *c) {
  const Config *setting = c->study.file->settings[0];
  Belief belief;
  Samples samples;
  ok(study_belief_create(setting, &c->study.file->policies[0], &c->problem, 0, &belief));
  ok(problem_training_samples(memory, &c->problem, 0, belief.train_samples, &samples));
  ok(prior_fit(memory, belief.family, &belief.fit, &samples, &c->prior));
}

/* Makes evidence and state as in the middle of a simulation: 100 observations of the unit disc. */
static void make_parts(Arena *memory, Case *c) {
  RngLanes rng = {.key = rng_key(1, RNG_TEST), .draws = 1, .lanes = RUNS};
  ok(world_create(&c->problem, 0, 0, RUNS, &c->world));
  ok(laplace_dps_evidence_create(memory, D, RUNS, 0, &c->evidence));
  c->chunk = chunk_begin(rng);
  rng_lanes_normal(&rng, D, c->theta);
  rng_lanes_normal(&rng, D, c->mu);
  for (int n = 0; n < RUNS; n++) {
    double *a = c->evidence.precision + n;
    a[0] = 30, a[3 * RUNS] = 20, a[RUNS] = a[2 * RUNS] = 3;
    for (int i = 0; i < D; i++)
      c->evidence.vector[i * RUNS + n] = 25 * c->theta[i * RUNS + n],
                                    c->s[i * RUNS + n] = c->mu[i * RUNS + n];
  }
  c->evidence.lanes = RUNS;
  linalg_factor_eigen(D, RUNS, c->evidence.precision, c->evidence.basis, c->evidence.eigenvalue);
  linalg_lanes_multiply_transposed(D, RUNS, c->evidence.basis, c->evidence.vector, c->evidence.rotated);
  laplace_product_begin(&c->evidence);
}

static Case *new_case(Arena *memory, int width) {
  char text[512];
  StudyFile *file;
  Case *c = calloc(1, sizeof *c);
  if (!c) abort();
  snprintf(text, sizeof text,
           "{name: speed, runs: %d, block: %d, policies: [diffts, {name: twisted, particles: 4}], problem: "
           "{rounds: %d, arms: 100, theta: cross}, prior: {stages: %d, hidden: [%d, %d], training_steps: "
           "2}}\n",
           RUNS, RUNS, ROUNDS, STAGES, width, width);
  ok(config_study_parse("bench_diffts", text, &study_schema, 0, NULL, &file));
  ok(study_create(file, &c->study));
  ok(study_problem_create(file->settings[0], &c->problem));
  make_prior(memory, c);
  c->task = study_task(&c->study, 0);
  c->rival = study_task(&c->study, 1);
  ok(study_result_create(&c->study, &c->task, &c->result));
  make_parts(memory, c);
  return c;
}

static void free_case(Case *c) {
  world_destroy(&c->world);
  study_result_destroy(&c->result);
  problem_destroy(&c->problem);
  study_destroy(&c->study);
  free(c);
}

static void run_task(Case *c, const Task *task) {
  SCOPED(TaskRun, run, study_task_run_destroy);
  ok(study_task_run_create(&c->study, task, NULL, &run));
  run.prior = &c->prior, run.result = &c->result;
  ok(c->study.ops->run(&run));
}
static void simulation(Case *c) { run_task(c, &c->task); }

/* Runs each part as often as one round needs it. */
static void network(Case *c) {
  for (int t = STAGES; t >= 1; t--) c->prior.chain->noise(c->prior.chain, t, RUNS, c->s, c->mu);
}

static void random_numbers(Case *c) {
  RngLanes rng = c->chunk.rng;
  for (int t = STAGES; t >= 0; t--) rng_lanes_normal(&rng, D, c->z);
}

static void stage_update(Case *c) {
  const Schedule *schedule = &c->prior.chain->schedule;
  for (int t = STAGES; t >= 1; t--) {
    double v = schedule_variance(schedule, t, LAST_STAGE_REPAIRED);
    const LaplaceStage stage = {.v = v, .alpha_bar = schedule->alpha_bar[t - 1], .mu = c->mu};
    laplace_product_draw(&c->evidence, &stage, c->z, c->s);
    denoiser_chain_guard(&c->chunk, D, c->s, c->fallbacks);
  }
}

static void arm_scoring(Case *c) { world_greedy(&c->world, c->theta, NULL, c->arm); }

static const struct {
  const char *name;
  void (*run)(Case *c);
  int calls; /* in one simulation */
} parts[] = {{"simulation", simulation, 1},
             {"network", network, ROUNDS},
             {"random numbers", random_numbers, ROUNDS},
             {"stage update", stage_update, ROUNDS},
             {"arm scoring", arm_scoring, ROUNDS}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Times each part in alternation with the peak, many times: a shared core changes its speed for seconds at a
 * time, but the ratios change much less. seconds[PARTS] is the best try, peak_flops[PARTS] the median number
 * of operations that the peak would have done in that time. */
static void measure(Case *c, double *seconds, double *peak_flops) {
  double product[PARTS][TRIES], roof = simd_peak_float();
  for (int i = 0; i < TRIES; i++)
    for (int p = 0; p < PARTS; p++) {
      double start = clock_cpu();
      for (int j = 0; j < parts[p].calls; j++) parts[p].run(c);
      double used = clock_cpu() - start, next = simd_peak_float();
      product[p][i] = used * (roof + next) / 2;
      roof = next;
      if (i == 0 || used < seconds[p]) seconds[p] = used;
    }
  for (int p = 0; p < PARTS; p++) peak_flops[p] = quantile_median(TRIES, product[p]);
}

/* Returns how many times as much `twisted` with four particles costs as DiffTS: the median of five tries,
 * each between two tries of DiffTS. */
static double rival_ratio(Case *c) {
  enum { TURNS = 5 };
  double ratio[TURNS];
  for (int i = 0; i < TURNS; i++) {
    double start = clock_cpu();
    simulation(c);
    double between = clock_cpu();
    run_task(c, &c->rival);
    double after = clock_cpu();
    simulation(c);
    ratio[i] = 2 * (after - between) / (between - start + clock_cpu() - after);
  }
  return quantile_median(TURNS, ratio);
}

static void report(int width) {
  SCRATCH_ARENA(memory);
  Case *c = new_case(&memory, width);
  double seconds[PARTS], peak_flops[PARTS];
  double flops = 2.0 * (2.0 * D * width + (double)width * width) * STAGES * ROUNDS * RUNS;
  measure(c, seconds, peak_flops);
  printf(
      "hidden (%d, %d): %.3f ms of CPU for each run of %d rounds, %.2f Gflop, %.1f Gflop/s, %.0f%% of peak "
      "(median)\n",
      width, width, 1e3 * seconds[0] / RUNS, ROUNDS, flops / RUNS * 1e-9, flops / seconds[0] * 1e-9,
      100 * flops / peak_flops[0]);
  double rest = 100;
  for (int p = 1; p < PARTS; p++) {
    double share = 100 * peak_flops[p] / peak_flops[0];
    rest -= share;
    printf("  %-16s %5.1f%%\n", parts[p].name, share);
  }
  printf("  %-16s %5.1f%%\n  network alone at %.0f%% of peak\n", "rest", rest, 100 * flops / peak_flops[1]);
  printf("  twisted with 4 particles: %.1f times DiffTS\n", rival_ratio(c));
  free_case(c);
}

int main(int argc, char **argv) {
  printf("peak of one core: float %.1f Gflop/s\n", simd_peak_best(simd_peak_float) * 1e-9);
  if (argc > 1) {
    report(atoi(argv[1]));
  } else {
    report(100);
    report(20);
  }
  return 0;
}
