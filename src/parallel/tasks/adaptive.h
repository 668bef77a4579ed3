/* Decides how many blocks each setting gets, from the standard errors of its finished blocks
 * (src/study/study_runs.h). The decision is made per setting, not per policy: all policies keep the same
 * runs, so that all are paired. It is made only when a whole wave is finished, from its values in run order,
 * so it is the same on any number of ranks and after any interruption. */
#pragma once

#include "core/moments.h"
#include "parallel/tasks/finished.h"
#include "study/study.h"

typedef struct {
  int wanted; /* blocks requested so far */
  int seen; /* blocks that the standard errors include */
  bool ended; /* `wanted` is final */
  double se; /* the largest of any policy, after `seen` blocks; NaN: none yet, or none possible */
} AdaptiveSetting;

typedef struct {
  const Study *study;
  Finished *finished; /* not owned */
  AdaptiveSetting *settings; /* [setting_count] */
  Moments *moments; /* [setting_count, policy_count], on rank 0 */
} Adaptive;

/* Begins every setting with its first wave. Tasks are read from `finished`, in which the caller may look for
 * new ones later. */
Status adaptive_create(Arena *memory, Finished *finished, Adaptive *out);

/* Examines the settings whose requested blocks are all finished (state[task_count], RunStatus, the same on
 * all ranks), and requests more where they are needed. *open says whether any setting still needs blocks.
 * Each rank reads a share of the tasks. STATUS_FILE when one of them cannot be read. Collective. */
Status adaptive_look(signed char *state, Adaptive *adaptive, bool *open);

/* Repeats the decisions for everything in the folder, wave after wave, as `status` and the reducer need. A
 * task that cannot be read counts as not run. Called on one rank. */
Status adaptive_replay(const signed char *state, Adaptive *adaptive);

/* Counts the blocks[setting_count] that belong to the results: those that were requested or, if there are
 * more and the setting is still open, all up to the last one present; and their runs, the most of any
 * setting. Called on one rank. */
Status adaptive_count_blocks(Finished *finished, int *blocks, int64_t *runs);

/* Computes the moments[policy_count] of one setting over all blocks that are finished now. Tasks that cannot
 * be read are skipped, and count as not run from then on. Called on one rank. */
Status adaptive_present(Adaptive *adaptive, int setting, Moments *moments);
