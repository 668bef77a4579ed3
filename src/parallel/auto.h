/* Chooses prior and sampler by held-out evidence: of each family a prior is fitted to most samples of theta,
 * tasks are simulated from the others, and posterior draws are scored by the energy score (Gneiting and
 * Raftery 2007), which is lowest in expectation for draws from the true posterior and needs no truth but the
 * theta that a task was simulated from. */
#pragma once

#include "model/history/likelihood.h"
#include "model/prior/prior.h"
#include "parallel/parallel.h"

#include <stdio.h>

enum { AUTO_CANDIDATES = 4, AUTO_SIZES = 2 };
extern const int auto_sizes[AUTO_SIZES]; /* observations of a task */

typedef struct {
  int tasks; /* held-out theta */
  bool judged[AUTO_CANDIDATES]; /* false: its sampler does not take the likelihood */
  double score[AUTO_CANDIDATES][AUTO_SIZES]; /* mean over tasks, in the unit of theta */
  double ratio[AUTO_CANDIDATES]; /* to the first candidate's score, mean over sizes */
  double error[AUTO_CANDIDATES]; /* standard error of its difference to the lowest ratio, task by task */
  int chosen; /* the least expensive within two such errors of the lowest */
} AutoChoice;

/* Fits and judges all candidates and fits the chosen one to all samples; prior and choice exist on rank 0
 * only. `fit` is before prior_settle; a mixture chooses its number of components. STATUS_INPUT with fewer
 * than 50 samples. Collective. */
Status auto_fit(Arena *memory, const Parallel *parallel, const PriorFit *fit, const Samples *samples,
                const Likelihood *likelihood, AutoChoice *choice, Prior *out);
/* Saves the prior, with the table of the choice. */
Status auto_save(const AutoChoice *choice, const Prior *prior, const char *path);
/* Reports one line for each candidate. */
void auto_report(const AutoChoice *choice, FILE *out);
