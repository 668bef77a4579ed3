/* What B runs have observed so far, as a block; run last in every array.
 *
 * How observations are kept is the business of a form, one small file each (history_internal.h). With a
 * conjugate likelihood it is the evidence, the pair (Lambda, b) of a precision and a precision-weighted mean
 * (DiffTS paper, equation 3; never the marginal likelihood here): memory does not grow with rounds. With any
 * other likelihood the observations are kept row by row, and the evidence is taken at a point, in one pass
 * over them (network_rows.h where the mean reward is a network). Where the arms stay what they are from round
 * to round a row can stand for all observations of an arm, by their number and their mean reward, on which
 * alone the log likelihood depends: then there are no more rows than arms, however many rounds.
 *
 * Whichever the form, usually every run has an observation in every round. Where each of K arms has a
 * posterior of its own a run of the history is one arm of a run of the bandit, and one in K has one. */
#pragma once

#include "core/arena.h"
#include "core/tiling.h"
#include "model/history/likelihood.h"

typedef struct {
  Arena *memory; /* of whoever created it */
  int d, runs; /* entries of phi; B */
  int rounds; /* so far */
  int each_round; /* runs that have an observation in a round: B, or one in K */
  const Likelihood *likelihood; /* not owned */
  double temper; /* multiplies the log likelihood in every function that reads a history; 1 to begin with */
  int skipped; /* rows that passes leave out (history_since); else 0 */
  const struct HistoryOps *ops; /* of its form */
  struct HistoryContent *content; /* in `memory`; a copy of this struct is a view of the same */
} History;

/* Creates an empty history. The likelihood must outlive it; it lives as long as `memory`. */
Status history_create(Arena *memory, int d, int runs, const Likelihood *likelihood, History *out);
/* Creates a history for K arms that stay what they are: where rows are kept they are arms. Such a history
 * is for those who read it by the passes below, and not one observation at a time. */
Status history_create_by_arm(Arena *memory, int d, int runs, int arms, const Likelihood *likelihood,
                             History *out);
/* Creates a history for those who read it one observation at a time (history_observation), whatever the
 * likelihood: where that is conjugate there is no evidence, and memory grows with rounds. */
Status history_create_rows(Arena *memory, int d, int runs, const Likelihood *likelihood, History *out);
/* Creates a history of runs K runs, where each of K arms has a posterior of its own: arm k of run n is run
 * n K + k. */
Status history_create_per_arm(Arena *memory, int d, int runs, int arms, const Likelihood *likelihood,
                              History *out);
/* Makes room for `rounds` rounds in all: needed before the first history_record unless the likelihood is
 * conjugate, when there is nothing to do. Empties the history. Call it once: what was reserved before
 * stays in `memory`. */
Status history_reserve(History *history, int rounds);
void history_clear(History *history);
/* Records one round, whatever the form: arm[each_round], phi[d, each_round] of those arms and
 * y[each_round]. `arm` can be NULL where neither rows nor runs are arms. Where it is negative nothing was
 * observed, and phi and y are 0. */
void history_record(History *history, const int *arm, const double *phi, const double *y);
/* Multiplies what every observation so far says of theta, its log likelihood, by `factor`: the posterior goes
 * back towards the prior. Not where the mean reward is a network. What reads observations one by one
 * (history_observation, history_since) does not see it. */
void history_discount(History *history, double factor);
/* Copies runs run[B] of `from` to `to`, a history of B runs with room for as many rounds. */
void history_gather(const History *from, const int *run, History *to);

/* Returns the number of observations of a run so far. */
int history_observations(const History *history, int run);
/* Returns, for [each_round], the runs that the last round's observations belong to. */
const int *history_latest_runs(const History *history);
/* Returns the sum of |phi|^2 over the observations of a run. */
double history_squares(const History *history, int run);
/* Stores what a run has observed, by itself, where that has a fixed size: state[history_state(history)]; and
 * puts it in place of what a run had, of so many observations. Other forms have the size 0. A conjugate
 * likelihood has d (d + 1) / 2 entries of the precision, row by row from the diagonal on, the vector, d, and
 * the sum of (y / sigma)^2. Clear a history before its runs are loaded. */
size_t history_state(const History *history);
void history_store(const History *history, int run, double *state);
void history_load(History *history, int run, int observations, const double *state);
/* Reads phi[d] of observation l of a run, entries `stride` apart, and returns its reward. For a history
 * that keeps one row for each observation; a run can have fewer than rounds (history_observations). */
double history_observation(const History *history, int run, int l, size_t stride, double *phi);

/* Lanes first .. first + lanes - 1 of a history, where lane n belongs to run n / draws, in coordinates z with
 * theta = shift + scale z (NULL: identity). */
typedef struct {
  const History *history;
  int draws, first, lanes;
  const double *shift, *scale;
} HistoryView;

/* Repeats the columns of x[rows, runs], which are of the runs from `first` on, for the lanes of the view:
 * x[rows, lanes]. Scratch: [rows, runs]. */
void history_repeat_runs(const HistoryView *view, int first, int runs, int rows, double *x, double *scratch);

/* ---- what is quadratic: the evidence of a conjugate likelihood */

/* Computes the evidence: precision[d, d, lanes], vector[d, lanes]; zeros where rows are kept. */
void history_evidence(const HistoryView *view, double *precision, double *vector);
/* Returns whether the evidence says all: the likelihood is conjugate, or nothing was observed. */
static inline bool history_is_quadratic(const History *history) {
  return history->rounds == 0 || likelihood_is_conjugate(history->likelihood);
}
/* Returns the trace of Lambda of a run. */
double history_precision_trace(const History *history, int run);
/* Computes root[d + 1, d + 1] of a run (square_root.h); returns false where none is kept: the evidence is far
 * from precise enough to need it, or was set. */
bool history_root(const History *history, int run, double *root);
/* Returns whether one is kept for any run. */
bool history_has_root(const History *history);
/* Computes residual[lanes] >= 0: the sum of ((y - phi' shift) / sigma)^2 over the observations of each
 * lane. */
void history_residual(const HistoryView *view, double *residual);
/* Makes a history of this many rounds, with the evidence factor precision[d, d, B] and factor vector[d, B]
 * in place of its own; its residual is not known. */
void history_set_evidence(History *history, int rounds, double factor, const double *precision,
                          const double *vector);

/* ---- any other: rows. One call is one pass over them. Lanes that share a run share its rows; the result for
 * a lane does not depend on the others. */

/* Returns the observations from `row` of each run on, of a history that keeps one row for each: a view that
 * owns nothing. */
History history_since(const History *history, int row);
/* Computes, at z[d, lanes], gradient[d, lanes] of the log likelihood with respect to z, and minus its
 * Hessian, precision[d, d, lanes]. Columns of tiles in which every settled[lanes] is true are left as they
 * are (NULL: none is). */
void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision);
/* Computes, at z[d, lanes], deviance[lanes], the sum over observations, and gradient[d, lanes] of the log
 * likelihood, unless that is NULL. */
void history_deviance(const HistoryView *view, const double *z, double *deviance, double *gradient);
/* Computes the log likelihood, up to a constant of the run: minus half of that deviance. */
void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient);
/* What the rows of a tile answer to u = phi' theta ~ N(mean, variance): of cells [n], the slope and minus the
 * curvature in u of a Gaussian log factor, about the mean. `lane` of the view is that of the first cell, cell
 * k is of lane + k % TILE_LANES, and lanes of the view end at `lanes`. Each cell has counts (0: no row) and
 * rewards as in a history, and numbers that it keeps from pass to pass, site[n / TILE_LANES, HISTORY_SITE,
 * TILE_LANES]. */
enum { HISTORY_SITE = 2 };
typedef struct {
  int n, lane, lanes;
  const double *y, *counts, *mean, *variance;
  double *site, *slope, *curvature;
} HistoryMarginals;
typedef void HistoryVisit(void *context, const HistoryMarginals *cells);
/* Makes one pass over all rows under theta ~ N(mean, covariance), in the coordinates of the view, draws = 1:
 * precision[d, d, lanes] = sum of curvature phi phi' and vector[d, lanes] = precision mean + sum of slope
 * phi. */
void history_visit_marginals(const HistoryView *view, const double *mean, const double *covariance,
                             HistoryVisit *visit, void *context, double *precision, double *vector);
/* Returns whether every row is one observation with its whole likelihood: neither an arm's nor tempered nor
 * discounted. */
bool history_rows_are_single(const History *history);
/* Returns what history_log_likelihood takes off every value of a lane, as rows that are arms do not show
 * it. */
double history_excess(const HistoryView *view, int lane);
/* Computes reach[lanes]: by how much a step[d, lanes] in z moves phi' theta, at most over all
 * observations. It is an upper bound, |phi| |theta step|, where that is below `enough` for all lanes of a
 * tile; the exact maximum, by a pass, elsewhere. */
void history_reach(const HistoryView *view, const double *step, double enough, double *reach);
