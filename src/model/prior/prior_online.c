#include "model/prior/prior_online.h"

#include "model/logs/logs_points.h"
#include "model/prior/logs_fit.h"

#include <math.h>
#include <string.h>

/* Each component needs at least EACH (d + 1) tasks. If there are more than TRIAL_TASKS tasks, an update
 * spends at most BUDGET, tasks times components. */
enum { STEPS = 2, SETTLING = 10, STARTS = 4, TRIAL_TASKS = 512, BUDGET = 100000 };
enum { NEW_TASKS = 16, NEW_SHARE = 64, RECENT = 32, PSEUDO = 8, EACH = 3 };
static const double GROWTH = 1.25; /* until fits from new starts are due, or NEW_TASKS if sooner */
/* Number of tasks credited to the start's Gaussian, in addition to those that it explains. */
static const double START_TASKS = 1;

static const EmPlan PLAN = {.starts = STARTS,
                            .finalists = 1,
                            .trial_items = TRIAL_TASKS,
                            .trial_iterations = 10,
                            .most_iterations = 40,
                            .tolerance = 1e-6,
                            .prior_items = 1};

Status prior_online_create(Arena *memory, const Mixture *start, int most, const Likelihood *likelihood,
                           RngKey key, uint32_t run, Online *out) {
  ASSERT(start->components == 1);
  *out = (Online){.memory = memory, .most = most, .key = key, .run = run};
  TRY(mixture_create(memory, start->d, most + 1, &out->contest.mixture));
  TRY(logs_create(memory, start->d, likelihood, &out->logs));
  TRY(mixture_copy(memory, start, &out->start));
  return mixture_copy(memory, start, &out->now);
}

/* Returns the plan of EM for this many learned components. */
static EmPlan prior_online_em_plan(int learned, bool tied) {
  EmPlan plan = PLAN;
  plan.tied = tied ? learned : 0;
  return plan;
}

/* Gives the last component the mean and the covariance of `start`, and prepares the mixture. */
static Status prior_online_set_last(const Mixture *start, Mixture *mixture) {
  const size_t d = (size_t)start->d, last = (size_t)mixture->components - 1;
  memcpy(mixture->mean + last * d, start->mean, d * sizeof *start->mean);
  memcpy(mixture->covariance + last * d * d, start->covariance, d * d * sizeof *start->covariance);
  return mixture_prepare(mixture);
}

/* Runs `steps` steps of EM over all tasks, in which the last component keeps the mean and the covariance of
 * `start`; *likelihood is the one before the last step. */
static Status prior_online_run_em(Online *self, EmLogs *items, const Mixture *start, int steps, bool tied,
                                  Mixture *mixture, double *likelihood) {
  const EmPlan plan = prior_online_em_plan(mixture->components - 1, tied);
  const int last = mixture->components - 1;
  const double tasks = items->data.items, all = tasks + START_TASKS;
  const Rng rng = {.key = self->key, .run = self->run};
  self->work += (int64_t)steps * items->data.items * mixture->components;
  for (int k = 0; k < steps; k++) {
    TRY(em_step(&items->data, &plan, rng, mixture, likelihood));
    for (int c = 0; c <= last; c++)
      mixture->weight[c] = (tasks * mixture->weight[c] + (c == last ? START_TASKS : 0)) / all;
    TRY(prior_online_set_last(start, mixture));
  }
  return STATUS_OK;
}

/* Learns the weights again, from the last tasks; the weights from all tasks count as PSEUDO further tasks. A
 * world that has changed shows in the last tasks first. */
static Status prior_online_weigh_recent(Arena *memory, const Online *self, const LogsFrame *frame,
                                        Mixture *mixture) {
  const int tasks = self->logs.tasks, components = mixture->components;
  EmLogs recent;
  Mixture step;
  double likelihood, *all;
  if (!self->in_order || tasks <= RECENT) return STATUS_OK;
  TRY(em_logs_create(memory, &self->logs, frame, tasks - RECENT, RECENT, components, &recent));
  ALLOCATE(memory, all, components);
  memcpy(all, mixture->weight, (size_t)components * sizeof *all);
  for (int k = 0; k < STEPS; k++) {
    TRY(mixture_copy(memory, mixture, &step));
    TRY(em_step(&recent.data, &PLAN, (Rng){.key = self->key, .run = self->run}, &step, &likelihood));
    for (int c = 0; c < components; c++)
      mixture->weight[c] = (RECENT * step.weight[c] + PSEUDO * all[c]) / (RECENT + PSEUDO);
    TRY(mixture_prepare(mixture));
  }
  return STATUS_OK;
}

/* Returns the log likelihood of all tasks minus the number of learned parameters (AIC). */
static double prior_online_score_mixture(const Mixture *mixture, bool tied, double tasks, double likelihood) {
  const double d = mixture->d, learned = mixture->components - 1;
  return tasks * likelihood - learned * (1 + d) - (tied ? 1 : learned) * d * (d + 1) / 2;
}

/* Keeps a mixture, in coordinates of the frame, and its likelihood for the next step of the fit. */
static Status prior_online_keep_fit(const LogsFrame *frame, const Mixture *mixture, double likelihood,
                                    OnlineContest *out) {
  out->mixture.components = mixture->components;
  out->likelihood = likelihood;
  mixture_copy_parameters(mixture, &out->mixture);
  return mixture_transform(&out->mixture, frame->shift, frame->scale);
}

/* Runs one of the new starts on the last tasks, and keeps it if it is the best so far. */
static Status prior_online_run_start(Arena *memory, Online *self, const LogsFrame *frame, EmLogs *last) {
  OnlineContest *at = &self->contest;
  EmPlan one = prior_online_em_plan(at->components, at->tied);
  Mixture fit;
  double likelihood = 0;
  one.starts = 1;
  one.first_start = at->step;
  one.trial_iterations--;
  one.most_iterations = 1; /* the one that gives the likelihood */
  self->work += (int64_t)PLAN.trial_iterations * last->data.items * at->components;
  if (at->components == 1) { /* a single Gaussian needs no other start */
    TRY(mixture_copy(memory, &frame->common, &fit));
    at->step = STARTS - 1;
    return prior_online_keep_fit(frame, &fit, likelihood, at);
  }
  TRY(em_fit(memory, &last->data, at->components, &one, self->key, self->run, &fit, &likelihood));
  return at->step == 0 || likelihood > at->likelihood ? prior_online_keep_fit(frame, &fit, likelihood, at)
                                                      : STATUS_OK;
}

/* Continues EM from the best start until it has converged, then adds the start's Gaussian. */
static Status prior_online_finish_fit(Arena *memory, Online *self, const LogsFrame *frame,
                                      const Mixture *start, EmLogs *last) {
  OnlineContest *at = &self->contest;
  const EmPlan plan = prior_online_em_plan(at->components, at->tied);
  const double weight = START_TASKS / (self->logs.tasks + START_TASKS);
  Mixture fit, mixture;
  double likelihood;
  self->work += (int64_t)PLAN.most_iterations * last->data.items * at->components;
  TRY(mixture_copy(memory, &at->mixture, &fit));
  TRY(mixture_standardise(&fit, frame->shift, frame->scale));
  TRY(em_continue(&last->data, &plan, self->key, self->run, &fit, &likelihood));
  TRY(mixture_create(memory, fit.d, fit.components + 1, &mixture));
  Mixture part = mixture; /* all but the last */
  part.components = fit.components;
  mixture_copy_parameters(&fit, &part);
  for (int c = 0; c < fit.components; c++) mixture.weight[c] *= 1 - weight;
  mixture.weight[fit.components] = weight;
  TRY(prior_online_set_last(start, &mixture));
  return prior_online_keep_fit(frame, &mixture, likelihood, at);
}

/* Takes one step over all tasks. After the last step the fit competes with `best`, and the next fit begins:
 * the same number of components with one covariance, then twice as many components, if these are allowed. */
static Status prior_online_settle_step(Arena *memory, Online *self, const LogsFrame *frame,
                                       const Mixture *start, EmLogs *all, Mixture *best, double *most) {
  OnlineContest *at = &self->contest;
  Mixture mixture;
  double likelihood;
  const int tasks = self->logs.tasks, next = 2 * at->components;
  TRY(mixture_copy(memory, &at->mixture, &mixture));
  TRY(mixture_standardise(&mixture, frame->shift, frame->scale));
  TRY(prior_online_run_em(self, all, start, 1, at->tied, &mixture, &likelihood));
  TRY(prior_online_keep_fit(frame, &mixture, likelihood, at));
  if (at->step < STARTS + SETTLING) return STATUS_OK;
  const double score = prior_online_score_mixture(&mixture, at->tied, tasks, likelihood);
  if (score > *most) {
    *most = score;
    *best = mixture;
    self->tied = at->tied;
  }
  at->step = -1;
  at->tied = at->components > 1 && !at->tied;
  if (!at->tied)
    at->components = next <= self->most && at->tasks >= EACH * (self->logs.d + 1) * next ? next : 0;
  return STATUS_OK;
}

/* Lets fits from new starts compete with `best`: all of them or, if there are many tasks that come one by
 * one, until this update's budget of work is spent. A fit takes STARTS steps, one that continues from the
 * best of these, and SETTLING steps over all tasks. */
static Status prior_online_run_contest(Arena *memory, Online *self, const LogsFrame *frame,
                                       const Mixture *start, EmLogs *all, Mixture *best, double *most) {
  OnlineContest *at = &self->contest;
  const int used = at->tasks < TRIAL_TASKS ? at->tasks : TRIAL_TASKS;
  const bool spread = self->in_order && self->now.components > 1 && self->logs.tasks > TRIAL_TASKS;
  const int64_t until = self->work + BUDGET;
  EmLogs last = {0};
  while (at->components > 0) {
    if (spread && self->work >= until) break;
    if (at->step <= STARTS && !last.logs)
      TRY(em_logs_create(memory, &self->logs, frame, at->tasks - used, used, self->most, &last));
    if (at->step < STARTS)
      TRY(prior_online_run_start(memory, self, frame, &last));
    else if (at->step == STARTS)
      TRY(prior_online_finish_fit(memory, self, frame, start, &last));
    else
      TRY(prior_online_settle_step(memory, self, frame, start, all, best, most));
    at->step++;
  }
  return STATUS_OK;
}

/* Returns how many new tasks must come before fits from new starts, so that these remain a small part of the
 * work. */
static double prior_online_refit_interval(double tasks) { return fmax(NEW_TASKS, tasks / NEW_SHARE); }

/* Finds the mixture that predicts the tasks best: the current one, or a fit from new starts if these are
 * due. */
static Status prior_online_find_best(Arena *memory, Online *self, LogsFrame *frame, const Mixture *start,
                                     Mixture *best) {
  const int tasks = self->logs.tasks;
  EmLogs all;
  double likelihood = -INFINITY, most = -INFINITY;
  TRY(em_logs_create(memory, &self->logs, frame, 0, tasks, self->most + 1, &all));
  if (self->now.components > 1) {
    TRY(mixture_copy(memory, &self->now, best));
    TRY(mixture_standardise(best, frame->shift, frame->scale));
    TRY(prior_online_run_em(self, &all, start, STEPS, self->tied, best, &likelihood));
    most = prior_online_score_mixture(best, self->tied, tasks, likelihood);
  }
  if (self->contest.components == 0 &&
      tasks >= fmin(GROWTH * self->fitted, self->fitted + prior_online_refit_interval(self->fitted))) {
    self->fitted = self->contest.tasks = tasks;
    self->contest.components = 1, self->contest.step = 0;
  }
  return self->contest.components > 0
             ? prior_online_run_contest(memory, self, frame, start, &all, best, &most)
             : STATUS_OK;
}

Status prior_online_learn(Online *self) {
  SCRATCH_ARENA(scratch);
  const double noise = self->logs.likelihood->noise;
  LogsFrame frame;
  Mixture start, best;
  if (self->logs.tasks < ONLINE_LEAST) return STATUS_OK;
  /* The frame in which the current belief has mean 0 and variances 1. */
  TRY(logs_frame_standard(&scratch, self->now.d, &frame));
  frame.variance = noise * noise;
  mixture_spread(&self->now, frame.shift, frame.scale);
  TRY(mixture_copy(&scratch, &self->start, &start));
  TRY(mixture_standardise(&start, frame.shift, frame.scale));
  TRY(prior_online_find_best(&scratch, self, &frame, &start, &best));
  TRY(prior_online_weigh_recent(&scratch, self, &frame, &best));
  TRY(mixture_transform(&best, frame.shift, frame.scale));
  if (best.components != self->now.components) return mixture_copy(self->memory, &best, &self->now);
  mixture_copy_parameters(&best, &self->now);
  return mixture_prepare(&self->now);
}
