/* The log likelihood of what runs have observed, at any points, for every form of a history: whoever needs
 * only its values and gradients uses this, and never asks how the observations are kept.
 *
 * Of evidence the value is b' y - y' Lambda y / 2 with y = z - c: the centre c of a run is close to the peak,
 * so that nothing cancels however precise the evidence is. Rows are passed over (history_passes.h,
 * network_rows.h). A history that forgets has one likelihood for each component of its prior
 * (history_forgotten) and no density.
 *
 * What does not depend on the points is computed once for each view. The result for a lane does not depend on
 * the others. */
#pragma once

#include "model/history/network_rows.h"

typedef struct {
  HistoryView view; /* lane last: N = view.lanes points */
  bool whole; /* the evidence is the whole log likelihood; there are no rows */
  bool diagonal; /* the precision of its one run is: [d] */
  double most; /* no value is above it */
  int first_run, runs; /* the first run of the view, and m: how many it has */
  double *precision, *vector, *centre; /* [d, d, m], [d, m], [d, m]: Lambda, b of y, c */
  double *peak; /* [m]: b' c - c' Lambda c / 2 */
  double *root; /* [d, d, m]: scratch */
  int *jitters; /* [m]: scratch */
  History recent; /* the history of the view after history_density_since, if it keeps rows */
  NetworkRows network; /* if the mean reward is a network */
} HistoryDensity;

/* Creates a density for views of at most `runs` runs and any number of lanes. */
Status history_density_create(Arena *memory, int d, int runs, const Likelihood *likelihood,
                              HistoryDensity *out);
/* Moves the density to the lanes of a view, whose history must stay where it is. Pivots that were jittered on
 * the way to a centre are added to fallbacks[B] unless that is NULL; the values are right with any centre. */
void history_density_at(HistoryDensity *self, const HistoryView *view, int64_t *fallbacks);
/* Changes the number of lanes; only if they all belong to one run. */
void history_density_set_points(HistoryDensity *self, int points);
/* Returns the constant of the density's one run, which history_density leaves out and history_log_likelihood
 * of the same observations, if they were rows, would not: the value at the centre. */
double history_density_constant(const HistoryDensity *self);
/* Computes, at z[d, N] in the coordinates of the view, value[N] of the tempered log likelihood, up to a
 * constant of the run, and its gradient[d, N] unless that is NULL. For a network z[p, N] are its weights. */
void history_density(HistoryDensity *self, const double *z, double *value, double *gradient);

/* ---- what is new: what each of B runs had observed when it was marked */

typedef struct {
  int entries; /* d d + d */
  int *rows; /* [B] */
  double *evidence; /* [B, d d + d]: Lambda and b */
} HistoryMarks;

Status history_marks_create(Arena *memory, int d, int runs, HistoryMarks *out);
/* Marks what this many runs have observed as nothing. */
void history_marks_clear(HistoryMarks *marks, int runs);
/* Moves the density to `points` lanes of a run and to what the run has observed since it was marked, and
 * marks it. The history keeps evidence or one row per observation. */
void history_density_since(HistoryDensity *self, const History *history, int run, int points,
                           HistoryMarks *marks);
