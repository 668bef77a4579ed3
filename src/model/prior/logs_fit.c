#include "model/prior/logs_fit.h"

#include "core/linalg/linalg.h"
#include "model/logs/logs_identified.h"
#include "model/logs/logs_points.h"
#include "model/mixture/mixture_fit.h"
#include "model/prior/families.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- rounds of EM */

/* Rounds of a fit with rows, of one that only replaces crude units, and of one of those among which the
 * number of components is chosen; steps of a round with several components, after the first. */
enum { MOST_ROUNDS = 40, ROUGH_ROUNDS = 3, CHOOSING_ROUNDS = 1, FEW_STEPS = 8 };

/* Continues EM until it has converged. To find evidence takes far longer than a step with it, so each round
 * takes several with what it found: with one component as many as it takes, with more a few, as each
 * component has its own approximation of the likelihood, which holds near the component. From the first round
 * on that finds the likelihood lower than before, rounds take the step only that raises it. */
static Status prior_fit_converge(EmLogs *items, const EmPlan *plan, RngKey key, uint32_t run, int rounds,
                                 Mixture *mixture) {
  EmPlan more = *plan;
  double before = -INFINITY, now;
  if (!logs_has_rows(items->logs)) return em_continue(&items->data, plan, key, run, mixture, NULL);
  if (mixture->components > 1) more.most_iterations = FEW_STEPS;
  for (int round = 0; round < rounds; round++) {
    const Rng rng = {.key = key, .run = run, .round = (uint32_t)round};
    TRY(mixture_prepare(mixture));
    TRY(em_logs_approximate(items, mixture));
    TRY(em_step(&items->data, plan, rng, mixture, &now));
    if (em_has_converged(plan, before, now)) break;
    if (now < before) more.most_iterations = 0;
    before = now;
    TRY(em_continue(&items->data, &more, key, run, mixture, NULL));
  }
  return STATUS_OK;
}

/* ---- the frame */

/* Sets the frame's centre to the least-squares fit of all tasks together, and its units so that theta alone
 * would explain the residual; with non-Gaussian rewards the centre is 0, and phi' theta is about 1 in these
 * units. */
static Status prior_fit_crude_frame(const Logs *logs, LogsFrame *frame) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)logs->d;
  double *gram, *factor, *moment, square = 0, count = 0, trace = 0, explained = 0, residual = 1;
  ALLOCATE_ARRAYS(&scratch, d * d, &gram, &factor);
  ALLOCATE(&scratch, moment, d);
  for (int t = 0; t < logs->tasks; t++) {
    const double *entry = logs_task(logs, t);
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j <= i; j++, entry++) {
        gram[i * d + j] += *entry;
        if (j < i) gram[j * d + i] += *entry;
      }
    for (size_t i = 0; i < d; i++) moment[i] += *entry++;
    square += entry[0];
    count += entry[1];
  }
  if (!logs_has_rows(logs)) {
    for (size_t i = 0; i < d; i++) trace += gram[i * (d + 1)];
    memcpy(factor, gram, d * d * sizeof *factor);
    for (size_t i = 0; i < d; i++) factor[i * (d + 1)] += 1e-9 * trace; /* matters only if X'X is singular */
    memcpy(frame->shift, moment, d * sizeof *moment);
    linalg_factor_cholesky(logs->d, 1, factor, NULL);
    linalg_factor_solve(logs->d, 1, factor, frame->shift);
    for (size_t i = 0; i < d; i++) explained += frame->shift[i] * moment[i];
    residual = fmax(square - explained, 1e-12 * square) / count;
  }
  for (size_t i = 0; i < d; i++) {
    const double mean_square = gram[i * (d + 1)] / count;
    frame->scale[i] = mean_square > 0 && residual > 0 ? sqrt(residual / mean_square) : 1;
  }
  /* The rounding error of sums of squared rewards. */
  frame->least_variance = square > 0 ? 1e-12 * square / count : 1e-12;
  frame->variance = !logs->estimate_noise ? logs->likelihood->noise * logs->likelihood->noise
                    : residual > 0        ? residual
                                          : 1;
  return STATUS_OK;
}

/* Fits the best Gaussian in this frame, then moves the frame so that it has mean 0 and variances 1. With
 * rows, each iteration is expensive, and a rough fit is enough to replace the crude units. */
static Status prior_fit_refine_frame(const Logs *logs, bool roughly, LogsFrame *frame) {
  const bool rows = logs_has_rows(logs);
  const EmPlan plan = {.most_iterations = rows ? 500 : 2000, .tolerance = rows ? 1e-7 : 1e-12};
  SCRATCH_ARENA(scratch);
  EmLogs items;
  const int d = logs->d;
  double *mean = frame->common.mean, *covariance = frame->common.covariance;
  TRY(mixture_prepare(&frame->common));
  TRY(em_logs_create(&scratch, logs, frame, 0, logs->tasks, 1, &items));
  TRY(prior_fit_converge(&items, &plan, rng_key(0, RNG_MIXTURE_START), 0,
                         roughly ? ROUGH_ROUNDS : MOST_ROUNDS, &frame->common));
  for (int i = 0; i < d; i++) {
    const double sd = sqrt(covariance[i * (d + 1)]);
    frame->shift[i] += frame->scale[i] * mean[i];
    frame->scale[i] *= sd;
    mean[i] = 0;
    for (int j = 0; j < d; j++) covariance[i * d + j] /= sd, covariance[j * d + i] /= sd;
  }
  if (!logs_has_rows(logs)) frame->variance = items.variance;
  return mixture_prepare(&frame->common);
}

Status logs_frame_standard(Arena *memory, int d, LogsFrame *out) {
  *out = (LogsFrame){.variance = 1};
  ALLOCATE_ARRAYS(memory, d, &out->shift, &out->scale);
  TRY(mixture_create(memory, d, 1, &out->common));
  out->common.weight[0] = 1;
  for (int i = 0; i < d; i++) out->scale[i] = out->common.covariance[i * (d + 1)] = 1;
  return mixture_prepare(&out->common);
}

Status logs_frame(Arena *memory, const Logs *logs, LogsFrame *out) {
  enum { STEPS = 2 }; /* the first replaces the crude units */
  TRY(logs_frame_standard(memory, logs->d, out));
  TRY(prior_fit_crude_frame(logs, out));
  for (int step = 0; step < STEPS; step++) TRY(prior_fit_refine_frame(logs, step == 0, out));
  return STATUS_OK;
}

/* ---- EM */

/* Returns the plan of EM. With evidence there are more optima of equal height than with samples; a prior
 * worth one item keeps components from collapsing on a few tasks. */
EmPlan logs_plan(int components, int starts, bool choosing) {
  enum { SHARED = 40, LEAST = 2, TRIAL_ITEMS = 4096, TRIAL_EACH = 64 };
  const int share = SHARED / components > LEAST ? SHARED / components : LEAST;
  return (EmPlan){.starts = choosing && share < starts ? share : starts,
                  .finalists = choosing ? 1 : 5,
                  .trial_items =
                      TRIAL_ITEMS > TRIAL_EACH * components ? TRIAL_ITEMS : TRIAL_EACH * components,
                  .trial_iterations = 30,
                  .most_iterations = 200,
                  .tolerance = 1e-7,
                  .prior_items = components > 1};
}

/* Fits a mixture in the frame, prepared. With rows, starts compete by the evidence under the common Gaussian.
 * EM then continues with the best mixture, so that evidence or noise converge too, if they are found. */
static Status prior_fit_log_items(Arena *memory, EmLogs *items, int components, const EmPlan *plan,
                                  RngKey key, uint32_t run, Mixture *out) {
  const Logs *logs = items->logs;
  const int rounds = plan->finalists == 1 ? CHOOSING_ROUNDS : MOST_ROUNDS;
  if (components == 1) {
    TRY(mixture_copy(memory, &items->frame->common, out));
  } else {
    if (logs_has_rows(logs)) TRY(em_logs_approximate(items, &items->frame->common));
    TRY(em_fit(memory, &items->data, components, plan, key, run, out, NULL));
  }
  if (components == 1 || logs_has_rows(logs) || logs->estimate_noise)
    TRY(prior_fit_converge(items, plan, key, run, rounds, out));
  return mixture_prepare(out);
}

bool logs_candidate_fits(int d, int tasks, int components) {
  enum { EACH = 3 };
  return components == 1 ||
         (components <= LOGS_MOST_COMPONENTS && EACH * components * (d + 1.0) <= tasks - mixture_fold(tasks));
}

Status logs_fit(Arena *memory, const Logs *logs, int components, int starts, RngKey key, uint32_t run,
                Mixture *out, double *noise, double *held_out) {
  SCRATCH_ARENA(scratch);
  EmPlan plan = logs_plan(components, starts, held_out);
  const int n = logs->tasks, held = n > 1 && held_out ? mixture_held_out(n) : 0, size = mixture_fold(n);
  LogsFrame frame;
  EmLogs all;
  *out = (Mixture){0};
  if (n < components)
    return status_set(STATUS_INPUT,
                      "a mixture of %d components needs at least that many tasks, but there are %d",
                      components, n);
  TRY(logs_check_identified(logs));
  TRY(logs_frame(&scratch, logs, &frame));
  TRY(em_logs_create(&scratch, logs, &frame, 0, n, components, &all));
  for (int first = 0; first < held; first += size) { /* tasks of a fold under a fit to the others */
    SCRATCH_ARENA(own);
    EmLogs training, fold;
    Mixture fit;
    TRY(em_logs_create(&own, logs, &frame, first + size, n - size, components, &training));
    TRY(prior_fit_log_items(&own, &training, components, &plan, key, run, &fit));
    TRY(em_logs_create(&own, logs, &frame, first, size, components, &fold));
    fold.variance = training.variance;
    em_logs_density(&fold, &fit, held_out + first);
    if (first == 0) TRY(mixture_copy(memory, &fit, out));
  }
  if (held > 0)
    TRY(prior_fit_converge(&all, &plan, key, run, MOST_ROUNDS, out));
  else
    TRY(prior_fit_log_items(memory, &all, components, &plan, key, run, out));
  *noise = sqrt(all.variance);
  return mixture_transform(out, frame.shift, frame.scale);
}

/* ---- draws, and whole fits */

const PriorOps *logs_family(const PriorOps *family) {
  return family->able & PRIOR_LOGS ? family : &prior_mixture;
}

/* Makes items of all tasks, in the coordinates of theta itself. */
static Status prior_fit_theta_items(Arena *memory, const Logs *logs, int components, double noise,
                                    EmLogs *out) {
  LogsFrame *frame;
  ALLOCATE(memory, frame, 1);
  TRY(logs_frame_standard(memory, logs->d, frame));
  frame->variance = noise * noise;
  return em_logs_create(memory, logs, frame, 0, logs->tasks, components, out);
}

/* Creates `each` samples per task. */
static Status prior_fit_create_samples(Arena *memory, const Logs *logs, int each, Samples *out) {
  *out = (Samples){.d = logs->d};
  if (logs->tasks > INT_MAX / each)
    return status_set(STATUS_INPUT, "too many tasks to draw from: %d", logs->tasks);
  out->n = logs->tasks * each;
  ALLOCATE(memory, out->theta, (size_t)out->d * (size_t)out->n);
  return STATUS_OK;
}

Status logs_draws(Arena *memory, const Logs *logs, const PriorFit *fit, const Mixture *mixture, double noise,
                  Samples *out) {
  SCRATCH_ARENA(scratch);
  EmLogs items;
  TRY(prior_fit_create_samples(memory, logs, LOGS_DRAWS, out));
  TRY(prior_fit_theta_items(&scratch, logs, mixture->components, noise, &items));
  em_logs_draw(&items, mixture, LOGS_DRAWS, rng_key(fit->seed, RNG_PAST_DRAWS), fit->replicate, out->theta);
  return STATUS_OK;
}

Status logs_means(Arena *memory, const Logs *logs, const Mixture *gaussian, double noise, Samples *out) {
  SCRATCH_ARENA(scratch);
  EmLogs items;
  TRY(prior_fit_create_samples(memory, logs, 1, out));
  TRY(prior_fit_theta_items(&scratch, logs, 1, noise, &items));
  em_logs_means(&items, gaussian, out->theta);
  return STATUS_OK;
}

Status logs_density(const Logs *logs, const Mixture *mixture, double *density) {
  SCRATCH_ARENA(scratch);
  EmLogs items;
  TRY(prior_fit_theta_items(&scratch, logs, mixture->components, logs->likelihood->noise, &items));
  em_logs_density(&items, mixture, density);
  return STATUS_OK;
}

Status logs_describe_few(Arena *memory, const Logs *logs, const Mixture *mixture, const char **out) {
  SCRATCH_ARENA(scratch);
  EmLogs items;
  *out = NULL;
  if (!logs_has_rows(logs)) return STATUS_OK;
  TRY(prior_fit_theta_items(&scratch, logs, mixture->components, logs->likelihood->noise, &items));
  const int count = em_logs_count_few(&items, mixture);
  if (count == 0) return STATUS_OK;
  return arena_print(
      memory, out,
      "the posteriors of %d of %d tasks are known only by expectation propagation, because too "
      "few weighted points fall on them; the spread of theta may be too small",
      count, logs->tasks);
}
