/* Chooses the prior and the sampler by held-out evidence. Each candidate (study/study_candidates.h) is fitted
 * to most of the data, which are samples of theta or logs of past tasks; its posterior draws are then scored
 * on tasks made from the rest (auto_tasks.h). No true posterior is needed. */
#pragma once

#include "core/core_tick.h"
#include "model/history/likelihood.h"
#include "model/prior/prior.h"
#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study_candidates.h"

#include <stdio.h>

typedef struct {
  const PriorFit *fit; /* before prior_settle; a mixture chooses its number of components */
  FitSource source; /* on all ranks; logs in random order */
  const Likelihood *likelihood; /* of the tasks simulated from samples */
  int sizes, size[CANDIDATE_SIZES]; /* observations per task, ascending */
  ProgressMode mode;
  Tick tick; /* as for fits_run, by fit */
} AutoJob;

typedef struct {
  int tasks; /* held out */
  bool logs; /* they are made from logs */
  bool kept; /* they are too few for the chosen candidate to be fitted again with them */
  int sizes, size[CANDIDATE_SIZES]; /* observations per task; for logs a single 0 */
  bool judged[CANDIDATES]; /* false: its sampler cannot use the likelihood */
  double score[CANDIDATES][CANDIDATE_SIZES]; /* mean over tasks */
  double ratio[CANDIDATES]; /* score over the first candidate's, mean over sizes */
  double error[CANDIDATES]; /* standard error of its difference from the lowest ratio, paired by task */
  /* CPU seconds per fit and per posterior draw, for the table only: no clock may influence the choice. */
  double seconds_fit[CANDIDATES], seconds_draw[CANDIDATES];
  double level; /* candidates within this many errors are equal: 2 if the mixture is one Gaussian, else 0.5 */
  int chosen; /* the cheapest to draw from, which is the first listed, among those as good as the lowest */
} AutoChoice;

/* Fits and judges all candidates. STATUS_INPUT with fewer than 50 samples or past tasks. Collective; all
 * ranks get the choice, with the seconds of rank 0. */
Status auto_choose(const AutoJob *job, AutoChoice *choice);
/* Records the chosen sampler, and the seconds of all fits, in the prior that was fitted after the choice. */
void auto_finish(const AutoChoice *choice, Prior *prior);
/* Chooses a candidate and, if more than a twentieth of the data was held out, fits it again to all of the
 * data. The prior exists on rank 0 only. Collective. */
Status auto_fit(Arena *memory, const AutoJob *job, AutoChoice *choice, Prior *out);
/* Saves the prior together with the table of candidates. */
Status auto_save(const AutoChoice *choice, const Prior *prior, const char *path);
/* Prints the choice, with one line per candidate. */
void auto_report(const AutoChoice *choice, FILE *out);
