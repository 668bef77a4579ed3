#include "parallel/auto.h"

#include "metric/draws.h"
#include "parallel/prepare.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

/* From the least to the most expensive draw. */
static const struct {
  const char *family, *sampler;
} CANDIDATES[AUTO_CANDIDATES] = {
    {"gaussian", "mixts"}, {"mixture", "mixts"}, {"denoiser", "localised"}, {"diffusion", "twisted"}};

const int auto_sizes[AUTO_SIZES] = {5, 50};
enum { LEAST_SAMPLES = 50, MOST_TASKS = 128, DRAWS = 32 };

/* Splits the samples, in a random order: the first `held` become tasks. */
static Status split(Arena *memory, const PriorFit *fit, const Samples *all, int held, Samples *tasks,
                    Samples *training) {
  const int d = all->d, n = all->n;
  *tasks = (Samples){.d = d, .n = held};
  *training = (Samples){.d = d, .n = n - held};
  ALLOCATE(memory, tasks->theta, (size_t)d * (size_t)tasks->n);
  ALLOCATE(memory, training->theta, (size_t)d * (size_t)training->n);
  for (int k = 0; k < n; k++) {
    const int from = rng_permuted(n, rng_key(fit->seed, RNG_AUTO), fit->replicate, k);
    const Samples *to = k < held ? tasks : training;
    const int place = k < held ? k : k - held;
    for (int i = 0; i < d; i++) to->theta[i * to->n + place] = all->theta[i * n + from];
  }
  return STATUS_OK;
}

/* Observes one more round of every task: features on the unit sphere, from streams of the task alone. */
static void observe(const Samples *tasks, const Likelihood *likelihood, RngKey key, double *phi, double *work,
                    History *history) {
  const int d = tasks->d, n = tasks->n;
  RngLanes rng = {.key = key, .round = (uint32_t)history->rounds + 1, .draws = 1, .lanes = (uint32_t)n};
  double *normal = work, *uniform = work + n, *reward = work + 2 * n;
  rng_lanes_normal(&rng, d, phi);
  rng_lanes_normal(&rng, 1, normal);
  rng_lanes_uniform(&rng, 1, uniform);
  for (int k = 0; k < n; k++) {
    double square = 0, product = 0;
    for (int i = 0; i < d; i++) square += phi[i * n + k] * phi[i * n + k];
    for (int i = 0; i < d; i++) {
      phi[i * n + k] /= sqrt(square);
      product += phi[i * n + k] * tasks->theta[i * n + k];
    }
    reward[k] = likelihood->ops->sample(likelihood, product, uniform[k], normal[k]);
  }
  history_record(history, NULL, phi, reward);
}

/* Computes score[tasks] of draws theta[d, tasks DRAWS]. */
static Status score_draws(const Samples *tasks, const double *theta, double *score) {
  SCRATCH_ARENA(scratch);
  const int d = tasks->d, n = tasks->n;
  double *cloud, *truth;
  ALLOCATE(&scratch, cloud, (size_t)d * DRAWS);
  ALLOCATE(&scratch, truth, d);
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < d; i++) {
      memcpy(cloud + (size_t)i * DRAWS, theta + ((size_t)i * (size_t)n + (size_t)k) * DRAWS,
             DRAWS * sizeof *cloud);
      truth[i] = tasks->theta[i * n + k];
    }
    score[k] = metric_energy_score(d, DRAWS, cloud, truth);
  }
  return STATUS_OK;
}

/* Scores one candidate: score[sizes, tasks]. A sampler that does not take the likelihood is not judged. */
static Status judge(const PriorFit *fit, const Prior *prior, const char *name, const Samples *tasks,
                    const Likelihood *likelihood, bool *judged, double *score) {
  SCRATCH_ARENA(scratch);
  const SamplerOps *method = sampler_find(name);
  const int n = tasks->n;
  SamplerSetup setup = {
      .prior = prior, .likelihood = likelihood, .runs = n, .draws = DRAWS, .seed = fit->seed};
  char sentence[512];
  Sampler sampler;
  Config *options;
  History history;
  double *phi, *work, *theta;
  int64_t *fallbacks;
  *judged = !sampler_misfit(method, prior, likelihood, sizeof sentence, sentence);
  if (!*judged) return STATUS_OK;
  TRY(config_options(&scratch, "defaults", sampler_keys(method), 0, NULL, &options));
  setup.options = options;
  TRY(sampler_create(&scratch, method, &setup, &sampler));
  TRY(history_create(&scratch, tasks->d, n, likelihood, &history));
  TRY(history_reserve(&history, auto_sizes[AUTO_SIZES - 1]));
  ALLOCATE(&scratch, phi, (size_t)tasks->d * (size_t)n);
  ALLOCATE(&scratch, work, 3 * (size_t)n);
  ALLOCATE(&scratch, theta, (size_t)tasks->d * (size_t)n * DRAWS);
  ALLOCATE(&scratch, fallbacks, n);
  for (int s = 0; s < AUTO_SIZES; s++) {
    while (history.rounds < auto_sizes[s]) {
      observe(tasks, likelihood, rng_key(fit->seed, RNG_AUTO), phi, work, &history);
      sampler_observe(&sampler, &history, fallbacks);
    }
    const RngLanes rng = {.key = rng_key(fit->seed, RNG_AGENT),
                          .round = (uint32_t)auto_sizes[s],
                          .draws = DRAWS,
                          .lanes = (uint32_t)n * DRAWS};
    sampler_sample(&sampler, &history, rng, DRAWS, theta, fallbacks);
    TRY(score_draws(tasks, theta, score + (size_t)s * (size_t)n));
  }
  return STATUS_OK;
}

static void mean_and_error(int n, const double *x, double *mean, double *error) {
  double square = 0;
  *mean = 0;
  for (int i = 0; i < n; i++) *mean += x[i] / n;
  for (int i = 0; i < n; i++) square += (x[i] - *mean) * (x[i] - *mean);
  *error = sqrt(square / (n - 1) / n);
}

/* Chooses by score[AUTO_CANDIDATES, sizes, tasks]; work[AUTO_CANDIDATES + 1, tasks]. */
static void choose(const double *score, double *work, AutoChoice *out) {
  const size_t n = (size_t)out->tasks;
  double unused, *difference = work + AUTO_CANDIDATES * n;
  int best = 0;
  for (size_t c = 0; c < AUTO_CANDIDATES; c++) {
    for (size_t s = 0; s < AUTO_SIZES; s++) {
      const double *own = score + (c * AUTO_SIZES + s) * n;
      mean_and_error(out->tasks, own, &out->score[c][s], &unused);
      for (size_t k = 0; k < n; k++)
        work[c * n + k] = (s ? work[c * n + k] : 0) + own[k] / out->score[0][s] / AUTO_SIZES;
    }
    mean_and_error(out->tasks, work + c * n, &out->ratio[c], &unused);
    if (out->judged[c] && out->ratio[c] < out->ratio[best]) best = (int)c;
  }
  for (int c = AUTO_CANDIDATES - 1; c >= 0; c--) {
    double mean;
    for (size_t k = 0; k < n; k++) difference[k] = work[(size_t)c * n + k] - work[(size_t)best * n + k];
    mean_and_error(out->tasks, difference, &mean, &out->error[c]);
    if (out->judged[c] && mean <= 2 * out->error[c]) out->chosen = c;
  }
}

/* Fits a candidate; the prior exists on rank 0. */
static Status fit_candidate(Arena *memory, const Parallel *parallel, const PriorFit *fit, int candidate,
                            const Samples *samples, Prior *out) {
  const PriorOps *family = prior_find(CANDIDATES[candidate].family);
  PriorFit settled = *fit;
  settled.components = 0;
  prior_settle(family, &settled, samples->d);
  return prepare_fit(memory, parallel, family, &settled, &(FitSource){.samples = samples}, PROGRESS_AUTO,
                     out);
}

Status auto_fit(Arena *memory, const Parallel *parallel, const PriorFit *fit, const Samples *samples,
                const Likelihood *likelihood, AutoChoice *choice, Prior *out) {
  SCRATCH_ARENA(scratch);
  Samples tasks, training;
  double *score, *work, seconds = 0;
  const int fifth = samples->n / 5;
  *choice = (AutoChoice){.tasks = fifth < MOST_TASKS ? fifth : MOST_TASKS};
  if (samples->n < LEAST_SAMPLES)
    return status_set(STATUS_INPUT, "%d samples; family auto needs at least %d to judge by", samples->n,
                      LEAST_SAMPLES);
  TRY(split(&scratch, fit, samples, choice->tasks, &tasks, &training));
  ALLOCATE(&scratch, score, (size_t)AUTO_CANDIDATES * AUTO_SIZES * (size_t)choice->tasks);
  ALLOCATE(&scratch, work, (size_t)(AUTO_CANDIDATES + 1) * (size_t)choice->tasks);
  for (int c = 0; c < AUTO_CANDIDATES; c++) {
    SCRATCH_ARENA(candidate);
    Prior prior;
    TRY(fit_candidate(&candidate, parallel, fit, c, &training, &prior));
    seconds += parallel->rank == 0 ? prior.seconds_fit : 0;
    TRY(parallel_agree(parallel,
                       parallel->rank > 0
                           ? STATUS_OK
                           : judge(fit, &prior, CANDIDATES[c].sampler, &tasks, likelihood, &choice->judged[c],
                                   score + (size_t)(c * AUTO_SIZES * choice->tasks))));
  }
  if (parallel->rank == 0) choose(score, work, choice);
  parallel_broadcast(choice, sizeof *choice);
  TRY(fit_candidate(memory, parallel, fit, choice->chosen, samples, out));
  if (parallel->rank > 0) return STATUS_OK;
  out->seconds_fit += seconds;
  out->auto_sampler = CANDIDATES[choice->chosen].sampler;
  return STATUS_OK;
}

static Status put(const AutoChoice *choice, const Prior *prior, StoreFile *file) {
  int axes[2], score, ratio, error;
  char names[256] = "";
  size_t used = 0;
  TRY(prior_put(prior, file));
  for (int c = 0; c < AUTO_CANDIDATES; c++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s with %s", c ? ", " : "",
                             CANDIDATES[c].family, CANDIDATES[c].sampler);
  TRY(store_text_attribute(file, NULL, "auto_candidates", names));
  TRY(store_int_attribute(file, NULL, "auto_chosen", choice->chosen));
  TRY(store_int_attribute(file, NULL, "auto_tasks", choice->tasks));
  TRY(store_dimension(file, "auto_candidate", AUTO_CANDIDATES, &axes[0]));
  TRY(store_dimension(file, "auto_size", AUTO_SIZES, &axes[1]));
  TRY(store_variable(file, "auto_score", STORE_DOUBLE, 2, axes,
                     "mean energy score of posterior draws on held-out tasks of 5 and 50 observations", "1",
                     &score));
  TRY(store_variable(file, "auto_ratio", STORE_DOUBLE, 1, axes,
                     "score over that of the first candidate, mean over sizes; 0 where it was not judged",
                     "1", &ratio));
  TRY(store_variable(file, "auto_error", STORE_DOUBLE, 1, axes,
                     "standard error of its difference to the lowest ratio, paired by task", "1", &error));
  TRY(store_put(file, score, choice->score));
  TRY(store_put(file, ratio, choice->ratio));
  return store_put(file, error, choice->error);
}

Status auto_save(const AutoChoice *choice, const Prior *prior, const char *path) {
  StoreFile *file;
  TRY(store_create(path, STORE_NETCDF4, &file));
  return store_finish(file, put(choice, prior, file));
}

void auto_report(const AutoChoice *choice, FILE *out) {
  fprintf(out,
          "auto: the least expensive within two standard errors of the best on %d held-out tasks\n"
          "  prior      sampler    energy score, 5 and 50 observations  over gaussian (error to the best)\n",
          choice->tasks);
  for (int c = 0; c < AUTO_CANDIDATES; c++)
    if (choice->judged[c])
      fprintf(out, "  %-9s  %-9s  %17.4g %17.4g  %14.3f (%.3f)%s\n", CANDIDATES[c].family,
              CANDIDATES[c].sampler, choice->score[c][0], choice->score[c][1], choice->ratio[c],
              choice->error[c], c == choice->chosen ? "  chosen" : "");
    else
      fprintf(out, "  %-9s  %-9s  does not take this likelihood\n", CANDIDATES[c].family,
              CANDIDATES[c].sampler);
}
