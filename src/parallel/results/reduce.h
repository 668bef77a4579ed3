/* Turns finished tasks into results.nc. They are gathered in task order and means are taken in run order, so
 * the bytes do not depend on ranks or interruptions. Rank 0 writes; the others, if there are any, read the
 * files for it. Memory: the runs of two policies in one setting. */
#pragma once

#include "parallel/parallel.h"
#include "parallel/results/leaderboard.h"

/* Writes DIR/results.nc and DIR/prior_samples.nc from the finished tasks; the runs of all others are NaN with
 * status not_run or failed. With an adaptive number of runs, the dimension run is the largest of any setting,
 * and a setting that ended earlier has not_run after its end. Records that cannot be read are reported on
 * stderr and count as missing. STATUS_RESUME when tasks or results belong to another configuration, or the
 * results in the folder have runs that the tasks lack; STATUS_FILE when they are not this program's. The
 * folder then stays as it is; with `overwrite`, results are replaced by fewer. `counts` and `board` are valid
 * on rank 0; the caller must call leaderboard_destroy, also after an error. Collective. */
Status reduce_study(const Study *study, const char *directory, bool overwrite, ReduceCounts *counts,
                    Leaderboard *board);

/* Checks that the name of each event log is short enough for a file: STATUS_INPUT otherwise. */
Status reduce_events_check(const Study *study);
