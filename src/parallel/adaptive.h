/* How many blocks each setting gets, from the standard errors of its finished ones (src/study/runs.h). One
 * decision for a setting: all its policies keep the same runs, so that all are paired. A decision is taken
 * when a whole wave is finished, from its values in run order, so it is the same on any number of ranks and
 * after any interruption. */
#pragma once

#include "parallel/finished.h"
#include "study/study.h"

/* Count, mean and sum of squared deviations of the values that are there. */
typedef struct {
  int64_t n;
  double mean, squares;
} Moments;

/* Returns the moments of a and, behind them, b (Chan, Golub, LeVeque, Am. Stat. 37, 1983). */
Moments moments_join(Moments a, Moments b);
/* Returns the standard error of the mean; infinite with fewer than two values. */
double moments_se(Moments moments);

typedef struct {
  int wanted; /* blocks that are asked for at present */
  int seen; /* blocks in the standard errors */
  bool ended; /* `wanted` is the last word */
  double se; /* the largest of the policies, after `seen` blocks; NaN: none yet, or never */
  int policy; /* that has it */
} AdaptiveSetting;

typedef struct {
  const Study *study;
  Finished *finished; /* not owned */
  AdaptiveSetting *settings; /* [setting_count] */
  Moments *moments; /* [setting_count, policy_count], on rank 0 */
} Adaptive;

/* Begins every setting with its first wave. `finished` is where tasks are read from; whoever has it may look
 * again. */
Status adaptive_create(Arena *memory, Finished *finished, Adaptive *out);

/* Looks at the settings whose wanted blocks are all finished (state[task_count], RunStatus, the same on all
 * ranks), and asks for more where that is needed. *open says whether any setting wants more blocks. The tasks
 * are read by all ranks, each a part. STATUS_FILE when one of them cannot be read. Collective. */
Status adaptive_look(const Parallel *parallel, signed char *state, Adaptive *adaptive, bool *open);

/* Looks until there is nothing more to see in the folder: what `status` and the reducer need. A task that
 * cannot be read counts as not run. One rank. */
Status adaptive_replay(const signed char *state, Adaptive *adaptive);

/* Computes standard errors of what is there now, block by block: moments[policy_count] of one setting over
 * all blocks that are finished. Tasks that cannot be read are passed over, and count as not run from there
 * on. One rank. */
Status adaptive_present(Adaptive *adaptive, int setting, Moments *moments);
