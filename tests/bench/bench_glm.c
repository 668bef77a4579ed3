/* Measures the speed of one round of DiffTS with logistic and with Gaussian rewards against the number of
 * observations (DiffTS paper, Sections 4.2 and 6: d = 5, T = 100, one block of 64 runs, one draw for each).
 * Evidence of Gaussian rewards has a fixed size; with logistic rewards every stage passes over all rewards,
 * once for each iteration of IRLS; with ARMS fixed arms (logistic_arms) it passes over the sums only. Prints
 * CSV: likelihood, observations, CPU seconds of the block's draw (median), IRLS passes per stage. Plotted by
 * analysis/figures/glm_cost.py. Usage: bench_glm */
#include "core/arena.h"
#include "core/clock.h"
#include "core/quantile.h"
#include "core/simd_peak.h"
#include "model/history/history_internal.h"
#include "sampler/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 5, STAGES = 100, RUNS = 64, SAMPLES = 2000, TRIES = 9, ARMS = 50 };
static const int sizes[] = {10, 20, 50, 100, 200, 500, 1000, 2000};

static void ok(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_glm: %s\n", status_message());
  exit((int)status);
}

/* Learns a diffusion prior from N(0, I), well enough for its states to move as they do in a study. */
static void make_prior(Prior *prior) {
  const PriorFit fit = {.schedule.stages = STAGES,
                        .schedule.alpha = 0.97,
                        .standardise = true,
                        .hidden_count = 2,
                        .hidden = {10 * D, 10 * D},
                        .last_stage = LAST_STAGE_REPAIRED,
                        .steps = 300,
                        .batch = 128,
                        .patience = 1000,
                        .learning_rate = 0.02};
  static double theta[D * SAMPLES];
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  rng_normal(&rng, D * SAMPLES, theta);
  ok(prior_fit(prior->memory, prior_find("diffusion"), &fit, &(Samples){.d = D, .n = SAMPLES, .theta = theta},
               prior));
}

/* Draws features uniform in the unit ball: phi[D, RUNS]. */
static void draw_features(Rng *rng, double *phi) {
  double size[RUNS];
  rng_normal(rng, D * RUNS, phi);
  rng_uniform(rng, RUNS, size);
  for (int n = 0; n < RUNS; n++) {
    double square = 0;
    for (int i = 0; i < D; i++) square += phi[i * RUNS + n] * phi[i * RUNS + n];
    for (int i = 0; i < D; i++) phi[i * RUNS + n] *= pow(size[n], 1.0 / D) / sqrt(square);
  }
}

/* Adds observations; each run has a theta of its own from N(0, I). With fixed arms a run chooses each with
 * the same probability. */
static void observe(const Likelihood *likelihood, int observations, bool fixed, History *history) {
  SCRATCH_ARENA(memory);
  static double arms[ARMS][D * RUNS];
  double theta[D * RUNS], phi[D * RUNS], y[RUNS], uniform[RUNS], normal[RUNS];
  int arm[RUNS];
  Rng rng = {.key = rng_key(2, RNG_TEST)};
  ok(fixed ? history_create_planned(&memory, D, RUNS, (HistoryPlan){.arms = ARMS}, likelihood, history)
           : history_create(&memory, D, RUNS, likelihood, history));
  ok(history_reserve(history, observations));
  rng_normal(&rng, D * RUNS, theta);
  for (int k = 0; k < ARMS && fixed; k++) draw_features(&rng, arms[k]);
  for (int t = 0; t < observations; t++) {
    draw_features(&rng, phi);
    rng_uniform(&rng, RUNS, uniform);
    rng_normal(&rng, RUNS, normal);
    for (int n = 0; n < RUNS; n++) {
      double u = 0;
      arm[n] = (int)rng_index(&rng, ARMS);
      for (int i = 0; i < D && fixed; i++) phi[i * RUNS + n] = arms[arm[n]][i * RUNS + n];
      for (int i = 0; i < D; i++) u += phi[i * RUNS + n] * theta[i * RUNS + n];
      y[n] = likelihood->ops->sample(likelihood, u, uniform[n], normal[n]);
    }
    history_record(history, arm, phi, y);
  }
}

/* Returns the median CPU seconds of the draws of TRIES rounds. */
static double median_seconds(const Prior *prior, const History *history) {
  SCRATCH_ARENA(memory);
  static double theta[D * RUNS], seconds[TRIES];
  int64_t fallbacks[RUNS] = {0};
  const SamplerOps *method = sampler_find("diffts");
  SamplerSetup setup = {.prior = prior, .likelihood = history->likelihood, .runs = RUNS, .draws = 1};
  Config *options;
  Sampler sampler;
  ok(config_options(&memory, "bench_glm", sampler_keys(method), 0, NULL, &options));
  setup.options = options;
  ok(sampler_create(&memory, method, &setup, &sampler));
  for (int i = 0; i < TRIES; i++) {
    const RngLanes rng = {.key = rng_key(3, RNG_TEST), .round = (uint32_t)i, .draws = 1, .lanes = RUNS};
    double start = clock_cpu();
    sampler_sample(&sampler, history, rng, 1, theta, fallbacks);
    seconds[i] = clock_cpu() - start;
  }
  return quantile_median(TRIES, seconds);
}

/* Counts the rewards that IRLS visits, at the calls for their derivatives. */
static const LikelihoodOps *counted;
static int64_t looks;
static void count_derivatives(const Likelihood *likelihood, int n, const double *y, const double *u,
                              double *slope, double *curvature) {
  looks += n;
  counted->derivatives(likelihood, n, y, u, slope, curvature);
}

static void report(const Prior *prior, const char *family, bool fixed, int observations) {
  LikelihoodOps ops = *likelihood_find(family);
  const Likelihood likelihood = {.ops = &ops, .noise = 1};
  History history;
  counted = likelihood_find(family);
  ops.derivatives = count_derivatives;
  looks = 0;
  observe(&likelihood, observations, fixed, &history);
  double seconds = median_seconds(prior, &history);
  const int *length = history_rows(&history)->length;
  int64_t rows = 0; /* of the longest run of each strip, which sets the cost for the others */
  for (int from = 0; from < RUNS; from += TILE_LANES) {
    int most = 0;
    for (int n = from; n < from + TILE_LANES; n++) most = length[n] > most ? length[n] : most;
    rows += TILE_LANES * most;
  }
  printf("%s%s,%d,%.6g,%.3f\n", family, fixed ? "_arms" : "", observations, seconds,
         (double)looks / ((double)TRIES * (STAGES + 1) * (double)rows));
}

int main(void) {
  Prior prior;
  make_prior(&prior);
  printf("likelihood,observations,seconds,passes\n");
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    report(&prior, "gaussian", false, sizes[k]);
    report(&prior, "logistic", false, sizes[k]);
    report(&prior, "logistic", true, sizes[k]);
  }
  return 0;
}
