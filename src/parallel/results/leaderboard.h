/* The leaderboard of a study: what its tables show of every policy in every setting. It is computed from
 * cells, so that a study that still runs and one that is reduced have the same table. */
#pragma once

#include "core/moments.h"
#include "parallel/results/reduce_cell.h"

/* The first curve of the study at one point, over the runs that have a value there. Standard errors are over
 * runs or, where that is larger, over the means of replicates. */
typedef struct {
  double mean, se;
  double difference, difference_se; /* paired with the first policy */
  double runs;
} BoardPoint;

/* A number of every run that says where its draws are (sampler/check/draws_check.h). */
typedef struct {
  Moments moments; /* over the runs that have it, limited to what a run counts for at most */
  int far; /* runs where it is further away than any draw of a posterior */
} BoardDraws;

/* One policy in one setting. */
typedef struct {
  int64_t runs; /* that have ended, also by failing */
  int64_t fallbacks, runs_with_fallbacks;
  BoardDraws offset, spread;
} BoardCell;

enum { BOARD_POINTS = 8 /* with more points only the last one of a setting is shown, not all of them */ };

typedef struct {
  Arena memory;
  int shown; /* the most points that are shown of a setting; 0 in studies of estimates */
  BoardCell *cells; /* [settings, policies] */
  BoardPoint *points; /* [settings, policies, shown] */
  CellEstimate *estimates; /* [settings, policies, curves] in studies of estimates */
} Leaderboard;

/* Creates a leaderboard on which nothing has ended. The caller must call leaderboard_destroy. */
Status leaderboard_create(const Study *study, Leaderboard *out);
void leaderboard_destroy(Leaderboard *board);

/* Enters a cell, whose statistics of the first curve begin at `summary` (reduce_cell_summarise). */
void leaderboard_enter(const Study *study, int setting, int policy, const Cell *cell, double *summary,
                       Leaderboard *board);
/* Reads all cells of a folder. Records that cannot be read are reported on stderr. Memory: the runs of two
 * policies in one setting. The caller must call leaderboard_destroy, also after an error. */
Status leaderboard_read(Finished *finished, Leaderboard *out);

/* Returns what the leaderboard has of a policy in a setting: its first point, its first estimate. */
static inline const BoardPoint *leaderboard_points(const Leaderboard *board, const Study *study, int setting,
                                                   int policy) {
  return board->points + (setting * study->file->policy_count + policy) * board->shown;
}
static inline const CellEstimate *leaderboard_estimates(const Leaderboard *board, const Study *study,
                                                        int setting, int policy) {
  return board->estimates + (setting * study->file->policy_count + policy) * study->curve_count;
}
