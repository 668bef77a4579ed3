/* How many blocks each setting gets, from the standard errors of its finished ones (src/study/runs.h). One
 * decision for a setting: all its policies keep the same runs, so that all are paired. A decision is taken
 * when a whole wave is finished, from its values in run order, so it is the same on any number of ranks and
 * after any interruption. */
#ifndef PARALLEL_ADAPTIVE_H
#define PARALLEL_ADAPTIVE_H

#include "parallel/finished.h"
#include "parallel/parallel.h"
#include "study/study.h"

/* Count, mean and sum of squared deviations of the values that are there. */
typedef struct {
  int64_t n;
  double mean, squares;
} Moments;

/* Moments of a and, behind them, b (Chan, Golub, LeVeque, Am. Stat. 37, 1983). */
Moments moments_join(Moments a, Moments b);
/* Standard error of the mean; infinite with fewer than two values. */
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
  signed char *damage; /* [task_count], files that could not be used */
} Adaptive;

/* Every setting at its first wave. `finished` is where tasks are read from; whoever has it may scan it again.
 */
Status adaptive_create(Finished *finished, Adaptive *out);
void adaptive_destroy(Adaptive *adaptive);

/* Look at the settings whose wanted blocks are all finished (state[task_count], RunStatus, the same on all
 * ranks), and ask for more where that is needed. *open says whether any setting wants more
 * blocks. The files are read by all ranks, each a part. A file that cannot be used is reported and set aside,
 * and its tasks count as not run: their setting stays open with the blocks it has asked for. STATUS_FILE when
 * that happens to a task twice. Collective. */
Status adaptive_look(const Parallel *parallel, signed char *state, Adaptive *adaptive, bool *open);

/* Look until there is nothing more to see in the folder: what `status` and the reducer need. A task whose
 * file cannot be used counts as not run. One rank. */
Status adaptive_replay(const signed char *state, Adaptive *adaptive);

/* Standard errors of what is there now, block by block: moments[policy_count] of one setting over all blocks
 * that are finished. Files that cannot be used are passed over. One rank. */
Status adaptive_present(Adaptive *adaptive, const signed char *state, int setting, Moments *moments);

#endif
