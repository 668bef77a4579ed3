/* The forms of a history, for this layer alone: what each can do, and the arrays that the kernels read.
 *
 *     evidence  history_evidence.c  conjugate likelihoods: sums of a fixed size
 *     rows      history_rows.c      any other: a row for each observation
 *     arms      history_arms.c      the same where arms stay what they are: a row for each arm
 *     inputs    history_inputs.c    the mean reward is a network: rows as network.h takes them
 *     filtered  history_filtered.c  a prior's Gaussians in place of rows, and the last rows */
#pragma once

#include "model/history/history.h"

/* What every form has; the content of each begins with it. */
struct HistoryContent {
  int arms; /* K of history_create_by_arm; else 0 */
  int *observations; /* [B]: of each run so far */
  int *latest; /* [each_round] */
};

/* history.c checks arguments, and counts rounds and observations. */
typedef struct HistoryOps {
  size_t size; /* of the content */
  /* REQUIRED. */
  /* Memory for this many rounds. */
  Status (*reserve)(History *history, int rounds);
  /* Adds one more observation to each of the runs latest[each_round]. */
  void (*append)(History *history, const int *arm, const double *phi, const double *y);
  void (*clear)(History *history);
  /* OPTIONAL. */
  /* Run m of `from`, of the same form, becomes run n of `to`, which was empty. */
  void (*copy_run)(const History *from, int m, History *to, int n);
  void (*discount)(History *history, double factor);
  /* Sum of |phi|^2. */
  double (*squares)(const History *history, int run);
  /* For forms of a fixed size: the doubles of a run by itself, which are stored and put in place of what the
   * run had. */
  size_t (*state)(const History *history);
  void (*store)(const History *history, int run, double *state);
  void (*load)(History *history, int run, const double *state);
} HistoryOps;

extern const HistoryOps history_form_evidence, history_form_rows, history_form_arms, history_form_inputs,
    history_form_filtered;

/* Begins a history of B runs of this form, one in `share` of which has an observation in a round, without
 * room. */
Status history_begin(Arena *memory, int d, int runs, int share, const HistoryOps *form,
                     const Likelihood *likelihood, History *out);

/* The doubles of an evidence by itself. */
#define HISTORY_EVIDENCE_SIZE(d) ((size_t)(d) * ((size_t)(d) + 3) / 2 + 1)

/* Stores what a run has of precision[d, d, B] and vector[d, B], as history_store says, and returns the end of
 * that. Loads it back. */
double *history_pack(const History *history, int run, const double *precision, const double *vector,
                     double *out);
const double *history_unpack(const History *history, int run, const double *from, double *precision,
                             double *vector);

static inline void history_check_view(const HistoryView *view) {
  ASSERT(view->draws >= 1 && view->first >= 0);
  ASSERT(view->first + view->lanes <= view->history->runs * view->draws);
}

/* ---- rows and arms: rows of neighbouring runs side by side */

/* Row l of run n is in lane n % TILE_LANES of column n / TILE_LANES, in its tile l / TILE_ROWS; tiles are
 * given out as they are needed. What no observation was written to is 0. */
typedef struct {
  struct HistoryContent common;
  int capacity; /* rows of a run, at most */
  int column_tiles, tiles, used; /* of one column at most; of all columns at most; given out */
  int *tile; /* [columns, column_tiles] */
  int *filled; /* [columns]: rows of the longest run */
  int *length; /* [B]: rows of each run */
  double *features; /* [tiles, TILE_ROWS, d, TILE_LANES]: phi */
  double *rewards; /* [tiles, TILE_ROWS, TILE_LANES]: y, or the mean over the observations of a row */
  double *counts; /* [tiles, TILE_ROWS, TILE_LANES]: observations of a row; 0 where there is none */
  double *sites; /* [tiles, TILE_ROWS, HISTORY_SITE, TILE_LANES]: scratch of history_visit_marginals */
  double *longest; /* [B]: the largest |phi| of a run */
  bool discounted; /* counts have factors */
  double *excess; /* [B]: the deviance of the observations beyond that of the rows, the same at every theta */
} HistoryRows;

static inline HistoryRows *history_rows(const History *history) {
  ASSERT(history->ops == &history_form_rows || history->ops == &history_form_arms);
  return (HistoryRows *)history->content;
}

/* Returns where a row of a column stands among rows of features and rewards. */
static inline size_t history_row(const HistoryRows *rows, int column, int row) {
  const int *tile = rows->tile + (size_t)column * (size_t)rows->column_tiles;
  return (size_t)tile[row / TILE_ROWS] * TILE_ROWS + (size_t)(row % TILE_ROWS);
}

/* Reserves what both forms of rows have in common. phi[d] has entries `stride` apart. */
Status history_rows_reserve(History *history, int rows);
void history_rows_clear(History *history);
void history_rows_discount(History *history, double factor);
void history_rows_add(const History *history, int run, size_t stride, const double *phi, double y);

/* ---- inputs: the rows of each run by themselves; 0 beyond the last */

typedef struct {
  struct HistoryContent common;
  int capacity, width; /* rows of a run, at most; rounded up to whole NETWORK_LANES */
  float *inputs; /* [B, d, width]: phi */
  double *responses; /* [B, width]: y */
} HistoryInputs;

static inline HistoryInputs *history_inputs(const History *history) {
  ASSERT(history->ops == &history_form_inputs);
  return (HistoryInputs *)history->content;
}
