/* Held-out tasks, on which candidates for a prior are judged: what each task has observed, and what posterior
 * draws are scored against. The score is the energy score (Gneiting and Raftery 2007), whose expectation is
 * lowest for draws from the true posterior. A task simulated from a held-out theta is scored against that
 * theta. A task from logs, whose theta is unknown, is split into halves: one is observed, and the rewards of
 * the other are predicted. */
#pragma once

#include "model/prior/prior.h"

typedef struct {
  int d, n; /* dimension; tasks, which are lanes */
  int draws; /* posterior draws that each task is scored by */
  Likelihood likelihood;
  uint64_t seed;
  uint32_t replicate;
  int sizes;
  const int *size; /* [sizes]: rounds after which draws are scored, ascending; not owned */
  double *phi, *reward; /* [rounds, d, n], [rounds, n] */
  /* What draws are scored against: phi' theta for each test phi or, if `predicted`, a reward. phi is 0 after
   * the last test of a task. */
  bool predicted;
  int tests;
  double *test, *outcome; /* [tests, d, n], [tests, n] */
} AutoTasks;

/* Simulates one task from each theta, with features on the unit sphere. */
Status auto_tasks_of_theta(Arena *memory, const Samples *theta, const Likelihood *likelihood, int sizes,
                           const int *size, const PriorFit *fit, AutoTasks *out);
/* Splits each task of the logs into halves. If rows are kept, they go to the two halves in turn. Otherwise
 * noise is added to the evidence for one half and subtracted for the other, which makes the halves
 * independent. `noise` is the standard deviation of Gaussian rewards. */
Status auto_tasks_of_logs(Arena *memory, const Logs *logs, double noise, const PriorFit *fit, AutoTasks *out);

/* Scores posterior draws of the sampler with this name: score[sizes, n]; adds the CPU seconds per draw to
 * *seconds. *judged is false if the sampler cannot use this prior and likelihood. */
Status auto_tasks_score(const AutoTasks *self, const Prior *prior, const char *name, bool *judged,
                        double *seconds, double *score);
