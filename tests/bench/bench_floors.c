/* Measures the least work that a draw needs, and the time that it takes, for the samplers with particles, for
 * Langevin steps and for rejection. The least work is floating-point operations at the peak, bytes that no
 * cache holds at the rate of memory, and random numbers and exponentials at the rates at which this program
 * makes them, one after the other. All rates are measured between the tries. Usage: bench_floors, which
 * writes JSON for peers.py */
#include "core/clock.h"
#include "core/simd.h"
#include "core/simd_peak.h"
#include "core/special.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"
#include "policy/policies.h"
#include "problem/problem_theta.h"
#include "sampler/methods.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 64, OBSERVATIONS = 100, TRIES = 5, NUMBERS = 64 * 64, MOST_DIMENSION = 10 };
static const double SECONDS = 0.04; /* minimum of a try */

/* The work of a draw, or the rates of a core: how many of each per second. */
typedef struct {
  double operations, floats, bytes, uniforms, normals, exponentials, densities;
} Work;

static double numbers[NUMBERS];

static void stop_unless(bool fine) {
  if (!fine) abort();
}

/* ---- rates */

static double rate_of(void (*make)(void)) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    const double start = clock_cpu();
    for (int k = 0; k < 100; k++) make();
    best = fmax(best, 100 * NUMBERS / (clock_cpu() - start));
  }
  return best;
}

static RngLanes streams(void) { return (RngLanes){.key = rng_key(1, RNG_TEST), .draws = 1, .lanes = RUNS}; }
static void make_uniforms(void) {
  RngLanes rng = streams();
  rng_lanes_uniform(&rng, NUMBERS / RUNS, numbers);
}
static void make_normals(void) {
  RngLanes rng = streams();
  rng_lanes_normal(&rng, NUMBERS / RUNS, numbers);
}
SIMD_CLONES
static void make_exponentials(void) {
  for (int k = 0; k < NUMBERS; k++) numbers[k] = special_exp(-fabs(numbers[k]));
}

static Work rates(void) {
  SCRATCH_ARENA(arrays);
  PeakMemory memory;
  Work rate = {.operations = simd_peak_best(simd_peak_double),
               .floats = simd_peak_best(simd_peak_float),
               .uniforms = rate_of(make_uniforms),
               .normals = rate_of(make_normals),
               .exponentials = rate_of(make_exponentials)};
  stop_unless(simd_peak_memory_create(&arrays, 1, &memory) == STATUS_OK);
  for (int i = 0; i < TRIES; i++) rate.bytes = fmax(rate.bytes, simd_peak_memory_rate(&memory));
  return rate;
}

static double floor_of(Work work, Work rate) {
  return work.operations / rate.operations + work.floats / rate.floats + work.bytes / rate.bytes +
         work.uniforms / rate.uniforms + work.normals / rate.normals + work.exponentials / rate.exponentials +
         (work.densities > 0 ? work.densities / rate.densities : 0);
}

static void write_row(const char *label, int d, Work work, Work rate, double seconds) {
  static bool begun = false;
  printf("%s{\"label\": \"%s\", \"d\": %d, \"operations\": %.6g, \"floats\": %.6g, \"bytes\": %.6g, "
         "\"uniforms\": %.6g, \"normals\": %.6g, \"exponentials\": %.6g, \"densities\": %.6g, "
         "\"floor_seconds\": %.6g, \"seconds\": %.6g}",
         begun ? ",\n " : "[", label, d, work.operations, work.floats, work.bytes, work.uniforms,
         work.normals, work.exponentials, work.densities, floor_of(work, rate), seconds);
  begun = true;
}

/* ---- a prior that counts the points at which its density is evaluated */

static double looked_up;
static const PriorOps *counted;

static void count_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  looked_up += lanes;
  counted->log_density(prior, lanes, theta, out);
}

static void count_densities(Prior *prior, PriorOps *ops) {
  counted = prior->ops;
  *ops = *prior->ops;
  ops->log_density = count_log_density;
  prior->ops = ops;
}

/* Makes two Gaussians of unit variances whose coordinates have different correlations. */
static void cross(Arena *memory, int d, Prior *out) {
  Mixture mixture;
  const PriorFit chain = {.schedule = {.stages = 100, .alpha = 0.97}};
  stop_unless(mixture_create(memory, d, 2, &mixture) == STATUS_OK);
  for (int c = 0; c < 2; c++) {
    mixture.weight[c] = 0.5;
    for (int k = 0; k < d * d; k++)
      mixture.covariance[c * d * d + k] = k % (d + 1) == 0 ? 1 : c == 0 ? 0.5 : -0.05;
  }
  stop_unless(mixture_prepare(&mixture) == STATUS_OK);
  stop_unless(prior_from_mixture(memory, &mixture, &chain, out) == STATUS_OK);
}

/* ---- draws */

typedef struct {
  Likelihood likelihood;
  History history;
  Sampler sampler;
  double observe_seconds; /* of a run and an observation */
} Case;

static void begin_case(Arena *memory, const SamplerOps *method, const Prior *prior, Case *out) {
  static double phi[MOST_DIMENSION * RUNS], y[RUNS];
  static int64_t fallbacks[RUNS];
  const int d = prior->d;
  *out = (Case){.likelihood = {.ops = likelihood_find("gaussian"), .noise = 1}};
  Config *options = NULL;
  Rng rng = {.key = rng_key(1, RNG_HISTORY)};
  stop_unless(config_options(memory, "bench", sampler_keys(method), 0, NULL, &options) == STATUS_OK);
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = &out->likelihood,
                              .runs = RUNS,
                              .draws = 1,
                              .seed = 1,
                              .options = options};
  stop_unless(history_create(memory, d, RUNS, &out->likelihood, &out->history) == STATUS_OK);
  stop_unless(sampler_create(memory, method, &setup, &out->sampler) == STATUS_OK);
  for (int k = 0; k < OBSERVATIONS; k++) {
    rng_normal(&rng, d * RUNS, phi);
    rng_normal(&rng, RUNS, y);
    for (int i = 0; i < d * RUNS; i++) phi[i] /= sqrt(d);
    history_record(&out->history, NULL, phi, y);
    const double start = clock_cpu();
    sampler_observe(&out->sampler, &out->history, fallbacks);
    out->observe_seconds += (clock_cpu() - start) / RUNS / OBSERVATIONS;
  }
}

/* Returns the CPU seconds of a draw of one run, the best try, and how many densities each draw evaluates. */
static double time_draws(Case *c, double *densities) {
  static double theta[MOST_DIMENSION * RUNS];
  static int64_t fallbacks[RUNS];
  double best = INFINITY, draws = 0;
  looked_up = 0;
  for (int i = 0; i < TRIES; i++) {
    const double start = clock_cpu();
    double spent = 0, calls = 0;
    while (spent < SECONDS) {
      RngLanes rng = {.key = rng_key(1, RNG_AGENT), .draws = 1, .round = (uint32_t)calls, .lanes = RUNS};
      sampler_sample(&c->sampler, &c->history, rng, 1, theta, fallbacks);
      calls++, spent = clock_cpu() - start;
    }
    best = fmin(best, spent / calls / RUNS), draws += calls * RUNS;
  }
  *densities = looked_up / draws;
  return best;
}

/* Measures an observation of smc: each of 3000 particles is moved, weighed and copied, to and from memory. */
static void measure_smc(int d, Work rate) {
  SCRATCH_ARENA(memory);
  Prior prior;
  cross(&memory, d, &prior);
  Case c;
  begin_case(&memory, &sampler_smc, &prior, &c);
  const double particles = 3000;
  const Work work = {.operations = particles * (d * (d + 1) + 4 * d),
                     .bytes = particles * 16 * d,
                     .normals = particles * d,
                     .exponentials = particles};
  write_row("smc, an observation", d, work, rate, c.observe_seconds);
}

/* Measures tempered steps: a proposal needs a density, that is, two Gaussians, one of which needs an
 * exponential, and a logarithm of their sum. */
static void measure_tempered(int d, Work rate) {
  SCRATCH_ARENA(memory);
  Prior prior;
  PriorOps ops;
  double proposals;
  cross(&memory, d, &prior);
  count_densities(&prior, &ops);
  Case c;
  begin_case(&memory, &sampler_smc_tempered, &prior, &c);
  const double seconds = time_draws(&c, &proposals);
  const Work work = {.operations = proposals * (2 * d * (d + 1) + 2 * (2 * d * d + 4 * d)),
                     .uniforms = proposals,
                     .normals = proposals * d,
                     .exponentials = 3 * proposals};
  write_row("smc_tempered", d, work, rate, seconds);
}

/* Measures MALA: a step multiplies by the eigenvectors of the evidence and back; a single Gaussian needs
 * neither, and its density costs d. */
static void measure_mala(int d, bool gaussian, Work rate) {
  SCRATCH_ARENA(memory);
  Prior prior;
  const PriorFit chain = {.schedule = {.stages = 100, .alpha = 0.97}};
  double none;
  if (gaussian)
    stop_unless(prior_standard(&memory, d, &chain, &prior) == STATUS_OK);
  else
    cross(&memory, d, &prior);
  Case c;
  begin_case(&memory, &sampler_mala, &prior, &c);
  const double seconds = time_draws(&c, &none), steps = 200;
  const double density = gaussian ? 3 * d : 4 * d * d + 2 * (2 * d * d + 6 * d);
  const Work work = {.operations = steps * (density + 20 * d),
                     .uniforms = steps,
                     .normals = steps * d,
                     .exponentials = steps * (gaussian ? 1.5 : 3.5)};
  write_row(gaussian ? "mala, one Gaussian" : "mala, two Gaussians", d, work, rate, seconds);
}

/* Measures Langevin steps with the network of a stage, whose operations are in float32. */
static void measure_tilted(int d, Work rate) {
  SCRATCH_ARENA(memory);
  Prior prior;
  static double theta[MOST_DIMENSION * 500];
  PriorFit fit = {
      .schedule = {.stages = 100, .alpha = 0.97}, .standardise = true, .starts = 1, .seed = 1, .steps = 2};
  const Samples samples = {d, 500, theta};
  Rng rng = {.key = rng_key(1, RNG_THETA)};
  double none;
  rng_normal(&rng, 500 * d, theta);
  prior_settle(&prior_diffusion, &fit, d);
  stop_unless(prior_fit(&memory, &prior_diffusion, &fit, &samples, &prior) == STATUS_OK);
  const NetworkShape shape = network_shape(d, fit.hidden_count, fit.hidden, d);
  Case c;
  begin_case(&memory, &sampler_tilted, &prior, &c);
  const double seconds = time_draws(&c, &none), steps = 200;
  const Work work = {.operations = steps * (4 * d * d + 12 * d),
                     .floats = steps * 2 * (double)network_parameters(&shape),
                     .normals = steps * d};
  write_row("tilted", d, work, rate, seconds);
}

/* Returns the CPU seconds of the density at points in the support of a distribution in the plane. */
static double density_rate(const Prior *prior) {
  double best = 0, out[NUMBERS / 2];
  RngLanes rng = {.key = rng_key(1, RNG_TEST), .draws = NUMBERS / 2, .lanes = NUMBERS / 2};
  prior->ops->sample(prior, &rng, numbers);
  for (int i = 0; i < TRIES; i++) {
    const double start = clock_cpu();
    for (int k = 0; k < 20; k++) prior->ops->log_density(prior, NUMBERS / 2, numbers, out);
    best = fmax(best, 20 * (NUMBERS / 2) / (clock_cpu() - start));
  }
  return best;
}

/* Measures rejection in the plane: the points at which the prior's density is evaluated, at the rate of the
 * density. */
static void measure_exact(const ThetaOps *distribution, Work rate) {
  SCRATCH_ARENA(memory);
  ThetaSource source;
  Prior prior;
  PriorOps ops;
  char label[32];
  double densities;
  const PriorFit chain = {.schedule = {.stages = 100, .alpha = 0.97}};
  stop_unless(problem_theta_create(distribution, 0, NULL, 0, 1, &source) == STATUS_OK);
  stop_unless(problem_theta_prior(&memory, &source, &chain, &prior) == STATUS_OK);
  rate.densities = density_rate(&prior);
  count_densities(&prior, &ops);
  Case c;
  begin_case(&memory, &sampler_exact, &prior, &c);
  const double seconds = time_draws(&c, &densities);
  snprintf(label, sizeof label, "exact, %s", distribution->name);
  write_row(label, 2, (Work){.uniforms = 64, .densities = densities}, rate, seconds);
  problem_theta_destroy(&source);
}

/* Measures the choice of the best of 100 arms by each of 64 networks. */
static void measure_arms(int d, int hidden, Work rate) {
  SCRATCH_ARENA(memory);
  enum { ARMS = 100 };
  const NetworkShape shape = network_shape(d, 2, (int[]){hidden, hidden}, 1);
  const size_t weights = network_parameters(&shape), features = (size_t)d * ARMS * RUNS;
  Problem problem = {.d = d, .arms = ARMS};
  World world = {.problem = &problem, .runs = RUNS};
  NetworkArms arms;
  double *theta, best = INFINITY;
  int arm[RUNS];
  char label[32];
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  stop_unless(memory_new((void **)&theta, weights * RUNS, sizeof *theta) == STATUS_OK);
  stop_unless(memory_new((void **)&world.features, features, sizeof *world.features) == STATUS_OK);
  rng_normal(&rng, (int)weights * RUNS, theta);
  rng_normal(&rng, (int)features, world.features);
  stop_unless(policy_network_arms_create(&memory, &shape, ARMS, &arms) == STATUS_OK);
  for (int i = 0; i < TRIES; i++) {
    const double start = clock_cpu();
    double calls = 0, spent = 0;
    for (; spent < SECONDS; calls++, spent = clock_cpu() - start)
      policy_network_arms_best(&arms, &world, theta, arm);
    best = fmin(best, spent / calls / RUNS);
  }
  snprintf(label, sizeof label, "network arms (%d, %d)", hidden, hidden);
  write_row(label, d, (Work){.floats = 2.0 * (double)weights * ARMS}, rate, best);
  free(theta), free(world.features);
}

int main(void) {
  const int dimensions[] = {2, MOST_DIMENSION};
  for (int i = 0; i < 2; i++) {
    const int d = dimensions[i];
    const Work rate = rates();
    measure_smc(d, rate);
    measure_tempered(d, rate);
    measure_mala(d, true, rate);
    measure_mala(d, false, rate);
    measure_tilted(d, rate);
    measure_arms(d, 20, rate);
  }
  const Work rate = rates();
  measure_exact(problem_theta_find("rays"), rate);
  measure_exact(problem_theta_find("swirl"), rate);
  printf("]\n");
  return 0;
}
