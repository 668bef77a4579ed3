#include "parallel/priors/auto.h"

#include "model/prior/logs_fit.h"
#include "parallel/priors/auto_tasks.h"
#include "parallel/priors/fits.h"

#include <math.h>
#include <string.h>

/* Logs are given more tasks, since predicted rewards say less about a prior than theta does. If few tasks are
 * held out, each is played several times, with other features and noise or with other halves. */
enum { LEAST_TASKS = 50, MOST_OF_THETA = 128, MOST_OF_LOGS = 512, LANES = 256, MOST_REPEATS = 8 };
/* A candidate that was fitted to all but this share of the data is as good as one fitted again to all. */
static const double SMALL_SHARE = 0.05;
/* The cheaper candidate is taken if it is within this many standard errors of the best: the first level if
 * held-out likelihood finds no shape beyond a Gaussian, the second if it does. The score discriminates less
 * than the distance between draws and posterior: with two standard errors, mixtures were chosen on thin
 * surfaces although they were up to 2.6 times as far from the posterior as the best (docs/results/priors.md).
 */
static const double LEVEL_OF_GAUSSIAN = 2, LEVEL_OF_SHAPES = 0.5;

/* The data to learn from: samples, or logs and, once a mixture is fitted to them, posterior draws under it.
 */
typedef struct {
  FitSource source;
  Samples drawn;
} Learnt;

static void auto_mean_and_error(int n, const double *x, double *mean, double *error) {
  double square = 0;
  *mean = 0;
  for (int i = 0; i < n; i++) *mean += x[i] / n;
  for (int i = 0; i < n; i++) square += (x[i] - *mean) * (x[i] - *mean);
  *error = sqrt(square / (n - 1) / n);
}

/* Chooses a candidate by score[CANDIDATES, sizes, repeats, tasks], which becomes [CANDIDATES, sizes, tasks],
 * the averages over repeats; work[CANDIDATES + 1, tasks] is scratch. */
static void auto_choose_by_score(size_t repeats, double *score, double *work, AutoChoice *out) {
  const size_t n = (size_t)out->tasks, sizes = (size_t)out->sizes;
  double unused, *difference = work + CANDIDATES * n;
  int best = 0;
  for (size_t i = 0; i < CANDIDATES * sizes; i++)
    for (size_t k = 0; k < n; k++) {
      double sum = 0;
      for (size_t r = 0; r < repeats; r++) sum += score[(i * repeats + r) * n + k];
      score[i * n + k] = sum / (double)repeats;
    }
  for (size_t c = 0; c < CANDIDATES; c++) {
    for (size_t s = 0; s < sizes; s++) {
      const double *own = score + (c * sizes + s) * n;
      auto_mean_and_error(out->tasks, own, &out->score[c][s], &unused);
      for (size_t k = 0; k < n; k++)
        work[c * n + k] = (s ? work[c * n + k] : 0) + own[k] / out->score[0][s] / (double)sizes;
    }
    auto_mean_and_error(out->tasks, work + c * n, &out->ratio[c], &unused);
    if (out->judged[c] && out->ratio[c] < out->ratio[best]) best = (int)c;
  }
  for (int c = CANDIDATES - 1; c >= 0; c--) {
    double mean;
    for (size_t k = 0; k < n; k++) difference[k] = work[(size_t)c * n + k] - work[(size_t)best * n + k];
    auto_mean_and_error(out->tasks, difference, &mean, &out->error[c]);
    if (out->judged[c] && mean <= out->level * out->error[c]) out->chosen = c;
  }
}

/* Makes posterior draws under rank 0's mixture of the logs, and sends them to all ranks. Collective. */
static Status auto_broadcast_draws(Arena *memory, const AutoJob *job, const Prior *mixture, Learnt *from) {
  Status status = STATUS_OK;
  if (parallel_rank() == 0)
    status = logs_draws(memory, from->source.logs, job->fit, mixture->mixture, mixture->noise, &from->drawn);
  TRY(parallel_agree(status));
  double *theta = from->drawn.theta;
  parallel_broadcast(&from->drawn, sizeof from->drawn);
  const size_t count = (size_t)from->drawn.d * (size_t)from->drawn.n;
  if (parallel_rank() > 0) status = arena_new(memory, (void **)&theta, count, sizeof *theta);
  TRY(parallel_agree(status));
  from->drawn.theta = theta;
  parallel_broadcast(theta, count * sizeof *theta);
  return STATUS_OK;
}

/* Fits a candidate; the prior exists on rank 0. Collective. */
static Status auto_fit_across_ranks(Arena *memory, const AutoJob *job, int candidate, Learnt *from,
                                    Prior *out) {
  const PriorOps *family = prior_find(candidates[candidate].family);
  FitSource source = from->source;
  const bool from_draws = source.logs && !(family->able & PRIOR_LOGS);
  const int d = fit_source_dimension(&source);
  const PriorFit settled = study_candidates_fit(job->fit, candidate, d);
  Prior mixture;
  if (from_draws && from->drawn.n == 0) {
    TRY(auto_fit_across_ranks(memory, job, CANDIDATE_MIXTURE, from, &mixture));
    TRY(auto_broadcast_draws(memory, job, &mixture, from));
  }
  if (from_draws) source = (FitSource){.samples = &from->drawn};
  return fits_run_one(memory, family, &settled, &source, job->mode, job->tick, out);
}

/* Data in two parts, samples of theta or logs: tasks to judge by, and the rest, to learn from. */
typedef struct {
  Samples theta, samples;
  Logs tasks, logs;
} Split;

/* Splits the data in random order: the first `held` become tasks, `repeats` times over, and the rest is for
 * learning. */
static Status auto_hold_out_tasks(Arena *memory, const AutoJob *job, int held, int repeats, Split *out) {
  SCRATCH_ARENA(scratch);
  const FitSource *all = &job->source;
  const int d = fit_source_dimension(all), n = all->logs ? all->logs->tasks : all->samples->n;
  const int again = (repeats - 1) * held;
  int *order; /* those held out, `repeats` times, then the rest */
  ALLOCATE(&scratch, order, again + n);
  for (int k = 0; k < again + n; k++)
    order[k] = rng_permuted(n, rng_key(job->fit->seed, RNG_AUTO), job->fit->replicate,
                            k < again ? k % held : k - again);
  if (all->logs) {
    TRY(logs_select(memory, all->logs, again + held, order, &out->tasks));
    return logs_select(memory, all->logs, n - held, order + again + held, &out->logs);
  }
  Samples *theta = &out->theta, *samples = &out->samples;
  *theta = (Samples){.d = d, .n = again + held};
  *samples = (Samples){.d = d, .n = n - held};
  ALLOCATE(memory, theta->theta, (size_t)d * (size_t)theta->n);
  ALLOCATE(memory, samples->theta, (size_t)d * (size_t)samples->n);
  for (int k = 0; k < again + n; k++) {
    const Samples *to = k < theta->n ? theta : samples;
    const int place = k < theta->n ? k : k - theta->n;
    for (int i = 0; i < d; i++) to->theta[i * to->n + place] = all->samples->theta[i * n + order[k]];
  }
  return STATUS_OK;
}

/* Does the work of auto_choose, and keeps the candidates, which exist on rank 0 only and are allocated from
 * `memory`. The mixture comes first, because it supplies the noise of rewards and the posterior draws of
 * logs.
 */
static Status auto_choose_across_ranks(Arena *memory, const AutoJob *job, AutoChoice *choice,
                                       Prior fitted[CANDIDATES]) {
  static const int order[CANDIDATES] = {CANDIDATE_MIXTURE, 0, 2, 3};
  SCRATCH_ARENA(scratch);
  const bool logs = job->source.logs;
  const int n = logs ? job->source.logs->tasks : job->source.samples->n;
  const int share = logs ? n / 3 : n / 5, most = logs ? MOST_OF_LOGS : MOST_OF_THETA;
  const int held = share < most ? share : most;
  const bool once = logs && logs_has_rows(job->source.logs); /* rows can be halved in one way only */
  const int repeats = once || held > LANES / 2      ? 1
                      : held < LANES / MOST_REPEATS ? MOST_REPEATS
                                                    : LANES / held;
  Split split = {.theta = {0}};
  AutoTasks tasks = {0};
  double *score, *work; /* score[CANDIDATES, sizes, repeats, tasks], on rank 0 */
  *choice = (AutoChoice){
      .tasks = held, .logs = logs, .sizes = logs ? 1 : job->sizes, .kept = held <= SMALL_SHARE * n};
  if (!logs) memcpy(choice->size, job->size, sizeof choice->size);
  if (n < LEAST_TASKS)
    return status_set(STATUS_INPUT, "%d %s; family auto needs at least %d to judge by", n,
                      logs ? "past tasks" : "samples", LEAST_TASKS);
  TRY(parallel_agree(auto_hold_out_tasks(&scratch, job, held, repeats, &split)));
  Learnt from = {.source = {.samples = logs ? NULL : &split.samples, .logs = logs ? &split.logs : NULL}};
  ALLOCATE_ON_RANKS(&scratch, score, (size_t)CANDIDATES * CANDIDATE_SIZES * (size_t)repeats * (size_t)held);
  ALLOCATE_ON_RANKS(&scratch, work, (size_t)(CANDIDATES + 1) * (size_t)held);
  for (int k = 0; k < CANDIDATES; k++) {
    Status status = STATUS_OK;
    const int c = order[k];
    Prior *prior = &fitted[c];
    TRY(auto_fit_across_ranks(memory, job, c, &from, prior));
    if (parallel_rank() == 0 && k == 0) {
      choice->level = prior->mixture->components == 1 ? LEVEL_OF_GAUSSIAN : LEVEL_OF_SHAPES;
      status = logs ? auto_tasks_of_logs(memory, &split.tasks, prior->noise, job->fit, &tasks)
                    : auto_tasks_of_theta(memory, &split.theta, job->likelihood, choice->sizes, choice->size,
                                          job->fit, &tasks);
    }
    if (parallel_rank() == 0 && status == STATUS_OK) {
      choice->seconds_fit[c] = prior->seconds_fit;
      status =
          auto_tasks_score(&tasks, prior, candidates[c].sampler, &choice->judged[c], &choice->seconds_draw[c],
                           score + (size_t)c * (size_t)choice->sizes * (size_t)tasks.n);
    }
    TRY(parallel_agree(status));
    if (logs && k == 0) TRY(auto_broadcast_draws(memory, job, prior, &from));
  }
  if (parallel_rank() == 0) auto_choose_by_score((size_t)repeats, score, work, choice);
  parallel_broadcast(choice, sizeof *choice);
  return STATUS_OK;
}

Status auto_choose(const AutoJob *job, AutoChoice *choice) {
  SCRATCH_ARENA(scratch);
  Prior fitted[CANDIDATES];
  TRY(auto_choose_across_ranks(&scratch, job, choice, fitted));
  choice->kept = false;
  return STATUS_OK;
}

void auto_finish(const AutoChoice *choice, Prior *prior) {
  for (int c = 0; c < CANDIDATES; c++)
    if (!choice->kept || c != choice->chosen) prior->seconds_fit += choice->seconds_fit[c];
  prior->auto_sampler = candidates[choice->chosen].sampler;
}

Status auto_fit(Arena *memory, const AutoJob *job, AutoChoice *choice, Prior *out) {
  Prior fitted[CANDIDATES];
  Learnt from = {.source = job->source};
  TRY(auto_choose_across_ranks(memory, job, choice, fitted));
  if (choice->kept)
    *out = fitted[choice->chosen];
  else
    TRY(auto_fit_across_ranks(memory, job, choice->chosen, &from, out));
  if (parallel_rank() == 0) auto_finish(choice, out);
  return STATUS_OK;
}

static Status auto_put_choice(const AutoChoice *choice, const Prior *prior, StoreFile *file) {
  double scores[CANDIDATES * CANDIDATE_SIZES];
  char names[256] = "";
  size_t used = 0;
  int axes[2];
  TRY(prior_put(prior, file));
  for (int c = 0; c < CANDIDATES; c++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s with %s", c ? ", " : "",
                             candidates[c].family, candidates[c].sampler);
  TRY(store_text_attribute(file, NULL, "auto_candidates", names));
  TRY(store_int_attribute(file, "auto_chosen", choice->chosen));
  TRY(store_int_attribute(file, "auto_tasks", choice->tasks));
  for (int c = 0; c < CANDIDATES; c++)
    memcpy(scores + c * choice->sizes, choice->score[c], (size_t)choice->sizes * sizeof *scores);
  TRY(store_dimension(file, "auto_candidate", CANDIDATES, &axes[0]));
  TRY(store_dimension(file, "auto_size", (size_t)choice->sizes, &axes[1]));
  TRY(store_write(file, "auto_size", STORE_INT, 1, axes + 1,
                  "observations of a held-out task before draws are scored; 0: half of its observations", "1",
                  choice->size));
  TRY(store_write(file, "auto_score", STORE_DOUBLE, 2, axes,
                  choice->logs ? "mean energy score of predicted rewards of held-out tasks"
                               : "mean energy score of posterior draws on held-out tasks",
                  "1", scores));
  TRY(store_write(file, "auto_ratio", STORE_DOUBLE, 1, axes,
                  "score relative to that of the first candidate, mean over sizes; 0 if not judged", "1",
                  choice->ratio));
  TRY(store_write(file, "auto_error", STORE_DOUBLE, 1, axes,
                  "standard error of its difference to the lowest ratio, paired by task", "1",
                  choice->error));
  TRY(store_write(file, "auto_seconds_fit", STORE_DOUBLE, 1, axes, "CPU time of the fit", "s",
                  choice->seconds_fit));
  return store_write(file, "auto_seconds_draw", STORE_DOUBLE, 1, axes,
                     "CPU time of a posterior draw on held-out tasks; 0 if not judged", "s",
                     choice->seconds_draw);
}

Status auto_save(const AutoChoice *choice, const Prior *prior, const char *path) {
  StoreFile *file;
  TRY(store_create(path, &file));
  return store_finish(file, auto_put_choice(choice, prior, file));
}

void auto_report(const AutoChoice *choice, FILE *out) {
  fprintf(out,
          "auto: the first candidate within %g standard errors of the best on %d held-out tasks, fitted %s\n"
          "  energy score of ",
          choice->level, choice->tasks, choice->kept ? "without them" : "again with them");
  if (choice->logs) {
    fprintf(out, "half of the rewards, predicted from the other half");
  } else {
    for (int s = 0; s < choice->sizes; s++)
      fprintf(out, "%s%d",
              s == 0                   ? "draws after "
              : s == choice->sizes - 1 ? " and "
                                       : ", ",
              choice->size[s]);
    fprintf(out, " observations");
  }
  fprintf(out, "; relative to gaussian (error to the best); CPU s per fit, us per draw\n");
  for (int c = 0; c < CANDIDATES; c++) {
    fprintf(out, "  %-9s  %-9s ", candidates[c].family, candidates[c].sampler);
    if (!choice->judged[c]) {
      fprintf(out, " does not support this likelihood\n");
      continue;
    }
    for (int s = 0; s < choice->sizes; s++) fprintf(out, " %10.4g", choice->score[c][s]);
    fprintf(out, "  %8.3f (%.3f)  %8.3g %8.3g%s\n", choice->ratio[c], choice->error[c],
            choice->seconds_fit[c], 1e6 * choice->seconds_draw[c], c == choice->chosen ? "  chosen" : "");
  }
}
