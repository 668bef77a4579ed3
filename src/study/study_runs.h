/* How many runs a setting gets, in which blocks, and which learned prior each block uses.
 *
 * A fixed number of runs is cut into contiguous parts, one for each replicate, and these into blocks. An
 * adaptive number is open, so blocks take the replicates in turn: block k has replicate k mod R, and after
 * every R blocks all replicates have the same number of runs. The number grows in waves: after the first wave
 * the variance tells how many runs the target needs, the next wave adds them, and so on (after the
 * multi-stage procedures of Stein, Ann. Math. Statist. 16, 1945, and Hall, Ann. Statist. 9, 1981). All runs
 * of a wave count, so none is wasted; and since decisions consider whole waves only, they do not depend on
 * ranks, time or interruptions. */
#pragma once

#include "io/config/config.h"

typedef struct {
  int64_t most; /* runs of a setting, at most; when not adaptive, all of them */
  int64_t least; /* before the first standard error is taken */
  int64_t block; /* runs that advance together, at most */
  int replicates;
  int blocks; /* in `most` runs */
  bool adaptive;
  double target; /* the standard error that is asked for */
} Runs;

typedef struct {
  uint32_t first_run, replicate;
  int runs;
} RunsBlock;

/* Creates the runs from the keys runs, runs.*, block and prior.replicates: STATUS_INPUT if they conflict.
 * `cases` is their number, if the runs are cases, which are run one by one; else 0. */
Status study_runs_create(const Config *config, int cases, Runs *out);
/* Lists the blocks, in run order, or only counts them if `out` is NULL; returns how many there are. A block
 * never spans two replicates. */
int64_t study_runs_list(const Runs *runs, RunsBlock *out);
uint32_t study_runs_replicate(const Runs *runs, int64_t run);
/* Returns the number of runs in the first blocks. */
int64_t study_runs_in_blocks(const Runs *runs, int blocks);

/* Returns the number of blocks in the first wave: enough for every replicate and `least` runs; all of them
 * when not adaptive. */
int study_runs_first_wave(const Runs *runs);
/* Returns the number of blocks after the next wave, if `blocks` gave this standard error (the largest over
 * policies); `blocks` itself if that is enough, there are no more, or there is no standard error (NaN). A
 * standard error falls as 1 / sqrt(runs), so (se / target)^2 times the runs are needed: at most 4 times at
 * once, since the variance is an estimate, and at least 1.1 times. */
int study_runs_next_wave(const Runs *runs, int blocks, double se);
