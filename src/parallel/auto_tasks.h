/* Held-out tasks, which candidates for a prior are judged on: what each has observed, and what posterior
 * draws are scored against, by the energy score (Gneiting and Raftery 2007), which is lowest in expectation
 * for draws from the true posterior. Tasks that are simulated from a held-out theta are scored against that
 * theta. A task from logs, whose theta nobody has seen, is cut in halves: one is observed, and the rewards of
 * the other are predicted. */
#pragma once

#include "model/prior/prior.h"

typedef struct {
  int d, n; /* tasks: lanes */
  int draws; /* that each is scored by */
  Likelihood likelihood;
  uint64_t seed;
  uint32_t replicate;
  int sizes;
  const int *size; /* [sizes]: rounds after which draws are scored, rising; not owned */
  double *phi, *reward; /* [rounds, d, n], [rounds, n] */
  /* What draws are scored against: phi' theta of these, or with `predicted` a reward. phi is 0 where a task
   * has no more. */
  bool predicted;
  int tests;
  double *test, *outcome; /* [tests, d, n], [tests, n] */
} AutoTasks;

/* Simulates a task from each theta: features on the unit sphere. */
Status auto_tasks_of_theta(Arena *memory, const Samples *theta, const Likelihood *likelihood, int sizes,
                           const int *size, const PriorFit *fit, AutoTasks *out);
/* Cuts each task of the logs into halves. Where rows are kept they are every other one. Otherwise noise is
 * added to the evidence and taken away again, which makes two independent halves of it. `noise` is that of
 * Gaussian rewards. */
Status auto_tasks_of_logs(Arena *memory, const Logs *logs, double noise, const PriorFit *fit, AutoTasks *out);

/* Scores posterior draws of the sampler with this name: score[sizes, n]; *seconds of CPU time for each draw.
 * Not *judged where it does not take the likelihood. */
Status auto_tasks_score(const AutoTasks *self, const Prior *prior, const char *name, bool *judged,
                        double *seconds, double *score);
