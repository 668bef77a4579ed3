#include "parallel/priors/auto_tasks.h"

#include "core/clock.h"
#include "core/linalg/linalg.h"
#include "metric/metrics.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

/* Draws that each task is scored by. Their noise is most of the noise of a score; still, there are fewer in
 * many dimensions, where a diffusion model takes long to draw. */
enum { MOST_DRAWS = 20, FEWEST_DRAWS = 8, FEW_DIMENSIONS = 10 };
enum { MOST_ROWS = 1000 /* most that are observed, or predicted, per task from logs */ };

/* Allocates the arrays of tasks of which d, n, `tests` and the likelihood are set. */
static Status auto_tasks_allocate(Arena *memory, const PriorFit *fit, int rounds, AutoTasks *out) {
  const size_t lanes = (size_t)out->n, column = (size_t)out->d * lanes;
  out->seed = fit->seed;
  out->replicate = fit->replicate;
  out->draws = out->d <= FEW_DIMENSIONS ? MOST_DRAWS : FEWEST_DRAWS;
  ALLOCATE(memory, out->phi, (size_t)rounds * column);
  ALLOCATE(memory, out->reward, (size_t)rounds * lanes);
  ALLOCATE(memory, out->test, (size_t)out->tests * column);
  ALLOCATE(memory, out->outcome, (size_t)out->tests * lanes);
  return STATUS_OK;
}

static RngLanes auto_tasks_streams(const AutoTasks *self, uint32_t round) {
  return rng_lanes(rng_key(self->seed, RNG_AUTO), self->replicate * (uint32_t)self->n, self->n, 1, round);
}

Status auto_tasks_of_theta(Arena *memory, const Samples *theta, const Likelihood *likelihood, int sizes,
                           const int *size, const PriorFit *fit, AutoTasks *out) {
  SCRATCH_ARENA(scratch);
  const int d = theta->d, n = theta->n, rounds = size[sizes - 1];
  double *normal, *uniform;
  *out = (AutoTasks){.d = d, .n = n, .likelihood = *likelihood, .tests = d, .sizes = sizes, .size = size};
  TRY(auto_tasks_allocate(memory, fit, rounds, out));
  ALLOCATE_ARRAYS(&scratch, n, &normal, &uniform);
  for (int round = 0; round < rounds; round++) {
    double *phi = out->phi + (size_t)round * (size_t)(d * n), *reward = out->reward + round * n;
    RngLanes rng = auto_tasks_streams(out, (uint32_t)round + 1);
    rng_lanes_normal(&rng, d, phi);
    rng_lanes_normal(&rng, 1, normal);
    rng_lanes_uniform(&rng, 1, uniform);
    for (int k = 0; k < n; k++) {
      double square = 0, product = 0;
      for (int i = 0; i < d; i++) square += phi[i * n + k] * phi[i * n + k];
      for (int i = 0; i < d; i++) {
        phi[i * n + k] /= sqrt(square);
        product += phi[i * n + k] * theta->theta[i * n + k];
      }
      reward[k] = likelihood->ops->sample(likelihood, product, uniform[k], normal[k]);
    }
  }
  for (int i = 0; i < d; i++)
    for (int k = 0; k < n; k++) out->test[(i * d + i) * n + k] = 1;
  memcpy(out->outcome, theta->theta, (size_t)d * (size_t)n * sizeof *out->outcome);
  return STATUS_OK;
}

/* ---- logs */

/* Splits the Gaussian evidence of task k into two halves, along the eigenvectors q of X'X. With z = sqrt(l)
 * q' theta + sigma noise in one direction and g an independent standard normal number, (z + sigma g) /
 * sqrt(2) and (z - sigma g) / sqrt(2) are independent rewards of the features sqrt(l / 2) q. */
static Status auto_tasks_halve_evidence(const double *entry, int k, double *work, const AutoTasks *out) {
  const size_t d = (size_t)out->d, n = (size_t)out->n, at = (size_t)k;
  double *matrix = work, *basis = matrix + d * d, *eigenvalue = basis + d * d, *noise = eigenvalue + d;
  const double *moment = entry + d * (d + 1) / 2;
  const RngLanes streams = auto_tasks_streams(out, 1);
  Rng rng = rng_of_lane(&streams, (uint32_t)k);
  for (size_t i = 0, e = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++, e++) matrix[i * d + j] = matrix[j * d + i] = entry[e];
  TRY(linalg_eigen((int)d, matrix, basis, eigenvalue));
  rng_normal(&rng, (int)d, noise);
  for (size_t c = 0; c < d; c++) {
    const double l = eigenvalue[c], sigma = out->likelihood.noise * noise[c];
    if (l <= 1e-9 * eigenvalue[d - 1]) continue; /* nothing was seen in this direction */
    double z = 0;
    for (size_t i = 0; i < d; i++) {
      z += basis[i * d + c] * moment[i] / sqrt(l);
      out->phi[(c * d + i) * n + at] = out->test[(c * d + i) * n + at] = basis[i * d + c] * sqrt(l / 2);
    }
    out->reward[c * n + at] = (z + sigma) / sqrt(2);
    out->outcome[c * n + at] = (z - sigma) / sqrt(2);
  }
  return STATUS_OK;
}

Status auto_tasks_of_logs(Arena *memory, const Logs *logs, double noise, const PriorFit *fit,
                          AutoTasks *out) {
  SCRATCH_ARENA(scratch);
  const int d = logs->d, n = logs->tasks;
  const size_t width = logs_width(d);
  Likelihood likelihood = *logs->likelihood;
  double *work;
  int *seen, *rounds, most = 1;
  if (noise > 0) likelihood.noise = noise;
  ALLOCATE(memory, rounds, 1);
  ALLOCATE(&scratch, seen, n);
  ALLOCATE(&scratch, work, 2 * d * d + 2 * d);
  for (int k = 0; k < n; k++)
    most = (int)fmax(most, fmin(logs_task(logs, k)[width - 1] / 2 + 0.5, MOST_ROWS));
  *rounds = logs_has_rows(logs) ? most : d;
  *out = (AutoTasks){.d = d,
                     .n = n,
                     .likelihood = likelihood,
                     .tests = *rounds,
                     .sizes = 1,
                     .size = rounds,
                     .predicted = true};
  TRY(auto_tasks_allocate(memory, fit, *rounds, out));
  if (!logs_has_rows(logs)) {
    for (int k = 0; k < n; k++) TRY(auto_tasks_halve_evidence(logs_task(logs, k), k, work, out));
    return STATUS_OK;
  }
  for (int64_t r = 0; r < logs->observations; r++) {
    const double *row = logs_row(logs, r);
    const int task = (int)row[d + 1], place = seen[task] / 2;
    const bool test = seen[task]++ % 2;
    if (place >= MOST_ROWS) continue;
    double *at = (test ? out->test : out->phi) + (size_t)place * (size_t)(d * n) + task;
    for (int i = 0; i < d; i++) at[i * n] = row[i];
    (test ? out->outcome : out->reward)[place * n + task] = row[d];
  }
  return STATUS_OK;
}

/* ---- scores */

/* Predicts test t of task k from each draw in theta[d, n draws]: out[draws]. Returns false if the task has no
 * such test. Predicted rewards use random streams of the task, the same for all candidates. */
static bool auto_tasks_predict_test(const AutoTasks *self, int k, int t, const double *theta, double *out) {
  const size_t d = (size_t)self->d, n = (size_t)self->n, draws = (size_t)self->draws;
  double square = 0, uniform[MOST_DRAWS], normal[MOST_DRAWS];
  Rng rng = {.key = rng_key(self->seed, RNG_AUTO_REWARDS),
             .run = self->replicate * (uint32_t)n + (uint32_t)k,
             .draw = (uint32_t)t};
  memset(out, 0, draws * sizeof *out);
  for (size_t i = 0; i < d; i++) {
    const double phi = self->test[((size_t)t * d + i) * n + (size_t)k];
    square += phi * phi;
    for (size_t m = 0; m < draws; m++) out[m] += phi * theta[(i * n + (size_t)k) * draws + m];
  }
  if (!self->predicted) return true;
  rng_uniform(&rng, self->draws, uniform);
  rng_normal(&rng, self->draws, normal);
  for (size_t m = 0; m < draws; m++)
    out[m] = self->likelihood.ops->sample(&self->likelihood, out[m], uniform[m], normal[m]);
  return square > 0;
}

Status auto_tasks_score(const AutoTasks *self, const Prior *prior, const char *name, bool *judged,
                        double *seconds, double *score) {
  SCRATCH_ARENA(scratch);
  const SamplerOps *method = sampler_find(name);
  const int n = self->n, draws = self->draws, last = self->size[self->sizes - 1];
  const size_t column = (size_t)self->d * (size_t)n;
  SamplerSetup setup = {
      .prior = prior, .likelihood = &self->likelihood, .runs = n, .draws = draws, .seed = self->seed};
  char sentence[512];
  Sampler sampler;
  Config *options;
  History history;
  double *theta, *cloud, *truth;
  int64_t *fallbacks;
  *judged = !sampler_misfit(method, prior, &self->likelihood, sizeof sentence, sentence);
  if (!*judged) return STATUS_OK;
  TRY(config_options(&scratch, "defaults", sampler_keys(method), 0, NULL, &options));
  setup.options = options;
  TRY(sampler_create(&scratch, method, &setup, &sampler));
  TRY(history_create(&scratch, self->d, n, &self->likelihood, &history));
  TRY(history_reserve(&history, last));
  ALLOCATE(&scratch, theta, column * (size_t)draws);
  ALLOCATE(&scratch, fallbacks, n);
  ALLOCATE(&scratch, cloud, (size_t)self->tests * (size_t)draws);
  ALLOCATE(&scratch, truth, self->tests);
  for (int s = 0; s < self->sizes; s++) {
    for (int k = history.rounds; k < self->size[s]; k++)
      history_record(&history, NULL, self->phi + (size_t)k * column, self->reward + k * n);
    const RngLanes rng = rng_lanes(rng_key(self->seed, RNG_AGENT), 0, n, draws, (uint32_t)self->size[s]);
    const double start = clock_cpu();
    sampler_sample(&sampler, &history, rng, draws, theta, fallbacks);
    *seconds += (clock_cpu() - start) / (self->sizes * n * draws);
    for (int k = 0; k < n; k++) {
      int tests = 0;
      for (int t = 0; t < self->tests; t++)
        if (auto_tasks_predict_test(self, k, t, theta, cloud + tests * draws))
          truth[tests++] = self->outcome[t * n + k];
      score[s * n + k] = tests > 0 ? metric_energy_score(tests, draws, cloud, truth) : 0;
    }
  }
  return STATUS_OK;
}
