/* Measures how much of a core's peak the sweeps of expectation propagation reach for clicks: sweeps of a
 * block of runs over ROWS rows each, EP_SWEEPS of them, since no tolerance ends them. Operations count as
 * follows: for each row, v = phi' S phi, mu = phi' m, the sums Lambda (its lower triangle) and b, and the
 * nodes of the tilted Gaussian, which are few because u is nearly known; for each sweep, the Cholesky factor
 * and the inverse. The cost of divisions and exponentials themselves does not count. Prints CSV: d, CPU
 * microseconds of a sweep of one run, share of the peak in float64. Usage: bench_ep */
#include "core/arena.h"
#include "core/clock.h"
#include "core/quantile.h"
#include "core/rng.h"
#include "core/simd_peak.h"
#include "model/history/ep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 64, ROWS = 100, MOST = 20, TRIES = 9 };

static void ok(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_ep: %s\n", status_message());
  exit((int)status);
}

static double operations(int d) {
  const double row = 2.0 * d * d + 2 * d + d * (d + 1) + 2 * d, pair = 16, nodes = TILTED_FEW * pair;
  return ROWS * (row + nodes) + 4 * pow(d, 3) / 3;
}

/* Observes features N(0, I / d), so that the standard deviation of u is at most the prior's, 1. */
static void observe(int d, History *history) {
  static double phi[MOST * RUNS], y[RUNS];
  static int arm[RUNS];
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  for (int k = 0; k < ROWS; k++) {
    rng_normal(&rng, d * RUNS, phi);
    rng_uniform(&rng, RUNS, y);
    for (int i = 0; i < d * RUNS; i++) phi[i] /= sqrt(d);
    for (int n = 0; n < RUNS; n++) y[n] = y[n] < 0.5;
    history_record(history, arm, phi, y);
  }
}

/* The prior N(0, I) of all runs, and the evidence of their sites. */
typedef struct {
  double *prior, *precision, *zero, *vector; /* [d, d, RUNS] twice, [d, RUNS] twice */
} Gaussians;

static Status gaussians_create(Arena *memory, int d, Gaussians *out) {
  const size_t vector = (size_t)d * RUNS;
  ALLOCATE_ARRAYS(memory, vector * (size_t)d, &out->prior, &out->precision);
  ALLOCATE_ARRAYS(memory, vector, &out->zero, &out->vector);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < RUNS; n++) out->prior[(i * d + i) * RUNS + n] = 1;
  return STATUS_OK;
}

static double seconds_of_sweep(Ep *ep, const HistoryView *view) {
  SCRATCH_ARENA(memory);
  Gaussians given;
  double log_evidence[RUNS];
  int64_t fallbacks[RUNS] = {0};
  ok(gaussians_create(&memory, ep->d, &given));
  const double start = clock_cpu();
  const PriorLanes prior = {.precision = given.prior, .vector = given.zero};
  const EvidenceLanes evidence = {.precision = given.precision, .vector = given.vector};
  ep_solve(ep, view, prior, evidence, log_evidence, fallbacks);
  return (clock_cpu() - start) / EP_SWEEPS;
}

/* Takes the median of tries, each timed between tries at the peak. */
static void measure(int d) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  History history;
  Ep ep;
  double share[TRIES], seconds[TRIES];
  ok(history_create(&memory, d, RUNS, &likelihood, &history));
  ok(history_reserve(&history, ROWS));
  observe(d, &history);
  ok(ep_create(&memory, d, RUNS, -1, &ep));
  const HistoryView view = {.history = &history, .draws = 1, .lanes = RUNS};
  for (int i = 0; i < TRIES; i++) {
    const double before = simd_peak_double(), one = seconds_of_sweep(&ep, &view), after = simd_peak_double();
    share[i] = operations(d) * RUNS / one * 2 / (before + after), seconds[i] = one / RUNS;
  }
  printf("%d,%.3g,%.2f\n", d, 1e6 * quantile_median(TRIES, seconds), quantile_median(TRIES, share));
}

int main(void) {
  printf("d,microseconds,share_of_peak\n");
  for (int d = 2; d <= MOST; d += d < 5 ? 3 : d < 10 ? 5 : 10) measure(d);
  return 0;
}
