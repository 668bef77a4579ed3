/* The forms of a history, internal to this layer: what each can do, and the arrays that the kernels read.
 *
 *     evidence  history_evidence.c  conjugate likelihoods: sums of a fixed size
 *     diagonal  history_diagonal.c  the same of one run, in coordinates where the precision is diagonal
 *     rows      history_rows.c      any other: one row per observation
 *     arms      history_rows.c      the same if the arms do not change: one row per arm
 *     inputs    network_rows.c      the mean reward is a network: rows as input for network.h
 *     functions history_functions.c a likelihood that is known by a function of theta
 *     filtered  history_filtered.c  a prior's Gaussians instead of rows, and the last rows */
#pragma once

#include "model/history/history.h"

/* What every form has: the first member of its content. */
struct HistoryContent {
  int arms; /* of the plan */
  int columns; /* runs that arrays are laid out for: the B below; a view has the first `runs` of them */
  int *observations; /* [B]: how many each run has so far */
  int *latest; /* [each_round]: runs of the last round's observations */
  int blocks; /* of evidence */
  double *evidence; /* [blocks, d d + d + 1, B]: precision[d, d, B], vector[d, B] and one more number[B] */
};

/* history.c checks arguments, counts rounds and observations, and clears, copies, discounts, stores and loads
 * the blocks of evidence; the rest is up to the form. */
typedef struct HistoryOps {
  size_t size; /* of the content */
  /* REQUIRED. */
  /* Adds one more observation to each of the runs latest[each_round]. */
  void (*append)(History *history, const int *arm, const double *phi, const double *y);
  void (*clear)(History *history);
  /* OPTIONAL. */
  /* Allocates memory for this many rounds. */
  Status (*reserve)(History *history, int rounds);
  /* Copies run m of `from`, a history of the same form, to run n of `to`, which is empty. */
  void (*copy_run)(const History *from, int m, History *to, int n);
  void (*discount)(History *history, double factor);
  /* Returns the sum of |phi|^2 over the observations of a run. */
  double (*squares)(const History *history, int run);
  /* For forms of a fixed size: the number of doubles that one run takes besides its evidence, storing them,
   * and loading them in place of what the run had. */
  size_t (*state)(const History *history);
  void (*store)(const History *history, int run, double *state);
  void (*load)(History *history, int run, const double *state);
  /* Returns whether finite numbers are such a state. */
  bool (*accepts)(const History *history, const double *state);
  /* Does the work of history_log_likelihood. */
  void (*log_likelihood)(const HistoryView *view, const double *z, double *value, double *gradient);
} HistoryOps;

extern const HistoryOps history_form_evidence, history_form_diagonal, history_form_rows, history_form_arms,
    history_form_inputs, history_form_functions, history_form_filtered;

typedef struct {
  const HistoryOps *form;
  int share; /* one in `share` runs gets an observation in a round */
  int blocks; /* of evidence */
} HistoryLayout;

/* Begins a history of B runs; reserves no room for rows yet. */
Status history_begin(Arena *memory, int d, int runs, HistoryLayout layout, const Likelihood *likelihood,
                     History *out);

/* Returns the number of rows of a block of evidence. */
static inline size_t history_evidence_entries(int d) { return (size_t)d * (size_t)d + (size_t)d + 1; }
/* Returns a block of evidence. */
static inline double *history_block(const History *history, int block) {
  return history->content->evidence +
         (size_t)block * history_evidence_entries(history->d) * (size_t)history->content->columns;
}

static inline void history_check_view(const HistoryView *view) {
  ASSERT(view->draws >= 1 && view->first >= 0);
  ASSERT(view->first + view->lanes <= view->history->runs * view->draws);
}

/* ---- diagonal */

/* Does the work of history_evidence, with matrices of zeros but for the diagonal. */
void history_diagonal_expand(const HistoryView *view, double *precision, double *vector);
/* Returns what history_residual computes for each lane. */
double history_diagonal_residual(const HistoryView *view);

/* ---- rows and arms: rows of neighbouring runs side by side */

/* Row l of run n is in lane n % TILE_LANES of column n / TILE_LANES, in its tile l / TILE_ROWS; tiles are
 * handed out as needed. Cells without an observation are 0. */
typedef struct {
  struct HistoryContent common;
  int capacity; /* most rows of a run */
  int column_tiles, tiles, used; /* most of one column; most of all columns; handed out */
  int *tile; /* [columns, column_tiles] */
  int *filled; /* [columns]: rows of the longest run */
  int *length; /* [B]: rows of each run */
  double *features; /* [tiles, TILE_ROWS, d, TILE_LANES]: phi */
  double *rewards; /* [tiles, TILE_ROWS, TILE_LANES]: y, or the mean over the observations of a row */
  double *counts; /* [tiles, TILE_ROWS, TILE_LANES]: observations of a row; 0: no row */
  double *lambda, *nu; /* [tiles, TILE_ROWS, TILE_LANES]: scratch of history_visit_marginals */
  double *longest; /* [B]: the largest |phi| of a run */
  bool discounted; /* counts include discount factors */
  double *excess; /* [B]: deviance of the observations minus that of the rows; it does not depend on theta */
} HistoryRows;

static inline HistoryRows *history_rows(const History *history) {
  ASSERT(history->ops == &history_form_rows || history->ops == &history_form_arms);
  return (HistoryRows *)history->content;
}

/* Returns the index of a column's row among the rows of features, rewards and counts. */
static inline size_t history_row(const HistoryRows *rows, int column, int row) {
  const int *tile = rows->tile + (size_t)column * (size_t)rows->column_tiles;
  return (size_t)tile[row / TILE_ROWS] * TILE_ROWS + (size_t)(row % TILE_ROWS);
}

/* Adds one row, whose phi[d] has entries `stride` apart. */
void history_rows_add(const History *history, int run, size_t stride, const double *phi, double y);
/* Reads phi[d] of a row. */
void history_rows_read(const History *history, int run, int l, double *phi);
/* Adds a row of a run to the one run of another history, with other features phi, and (below) completes that
 * history by what concerns all rows of the run. */
void history_rows_copy(const History *from, int run, int l, const double *phi, History *to);
void history_rows_finish(const History *from, int run, History *to);
