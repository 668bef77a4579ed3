/* Chooses prior and sampler by held-out evidence: each candidate (study/candidates.h) is fitted to most of
 * what there is to learn from, samples of theta or logs of past tasks, and its posterior draws are scored on
 * tasks of the rest (auto_tasks.h), which needs no truth. */
#pragma once

#include "model/history/likelihood.h"
#include "model/prior/fit_source.h"
#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/candidates.h"

#include <stdio.h>

typedef struct {
  const PriorFit *fit; /* before prior_settle; a mixture chooses its number of components */
  FitSource source; /* on all ranks; logs in random order */
  const Likelihood *likelihood; /* of tasks that are simulated from samples */
  int sizes, size[CANDIDATE_SIZES]; /* their observations, rising */
  ProgressMode mode;
  bool (*stop)(void); /* as for prepare_study; may be NULL */
} AutoJob;

typedef struct {
  int tasks; /* held out */
  bool logs; /* they are of logs */
  bool kept; /* they are so small a share that the chosen candidate is not fitted again with them */
  int sizes, size[CANDIDATE_SIZES]; /* observations of a task; of logs one, 0 */
  bool judged[CANDIDATES]; /* false: its sampler does not take the likelihood */
  double score[CANDIDATES][CANDIDATE_SIZES]; /* mean over tasks */
  double ratio[CANDIDATES]; /* to the first candidate's score, mean over sizes */
  double error[CANDIDATES]; /* standard error of its difference to the lowest ratio, task by task */
  /* CPU seconds of the fit, and of a posterior draw: for the table alone, so that no clock chooses. */
  double seconds_fit[CANDIDATES], seconds_draw[CANDIDATES];
  double level; /* such errors within which candidates are equal: 2 if the mixture is one Gaussian, or 0.5 */
  int chosen; /* the first in the list, by what draws take, of those that are as good as the lowest */
} AutoChoice;

/* Fits and judges all candidates. STATUS_INPUT with fewer than 50 samples or past tasks. Collective; the
 * choice, and rank 0's seconds, are on all ranks. */
Status auto_choose(const Parallel *parallel, const AutoJob *job, AutoChoice *choice);
/* Enters the sampler of the choice, and the seconds of all fits, into the prior that was fitted after it. */
void auto_finish(const AutoChoice *choice, Prior *prior);
/* Chooses, and fits the chosen candidate to all that there is, where what was held out is more than a
 * twentieth of it. The prior exists on rank 0 only. Collective. */
Status auto_fit(Arena *memory, const Parallel *parallel, const AutoJob *job, AutoChoice *choice, Prior *out);
/* Saves the prior, with the table of the choice. */
Status auto_save(const AutoChoice *choice, const Prior *prior, const char *path);
/* Reports one line for each candidate. */
void auto_report(const AutoChoice *choice, FILE *out);
