/* What B runs have observed so far, as a block; run last in every array.
 *
 * Usually every run has an observation in every round. Of an uneven history only some have, `each_round` of
 * them: where each arm has a posterior of its own, a run of the history is one arm of a run of the bandit.
 *
 * With a conjugate likelihood the evidence is a precision and a precision-weighted mean (DiffTS paper,
 * equation 3), so memory does not grow with rounds; its covariance need not exist. With any other likelihood
 * the observations are kept row by row, and the evidence is taken at a point, in one pass over them
 * (history_passes.c; network_rows.h where the mean reward is a network). Where the arms stay what they are
 * from round to round a row can stand for all observations of an arm, by their number and their mean reward,
 * on which alone the log likelihood depends: then there are no more rows than arms, however many rounds. */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include "model/likelihood.h"

#include <stddef.h>

/* Lanes that a pass over the rows takes at once: a whole number of vectors for every instruction level. Rows
 * are kept in pages. */
enum { HISTORY_STRIP = 16, HISTORY_PAGE = 16 };

typedef struct {
  int d, runs; /* entries of phi; B */
  int rounds; /* so far; unless the history is uneven, the observations of every run */
  int each_round; /* runs that have an observation in a round; B, unless the history is uneven */
  /* Of an uneven history; NULL otherwise. */
  int *observations; /* [B]: of each run so far */
  int *latest; /* [each_round]: the runs that the last round's observations belong to */
  const Likelihood *likelihood; /* not owned */
  double temper; /* multiplies the log likelihood in every function that reads a history; 1 to begin with */
  /* Of a conjugate likelihood; NULL otherwise. */
  double *precision; /* [d, d, B]: sum phi phi' / sigma^2 */
  double *vector; /* [d, B]: sum phi y / sigma^2 */
  double *reward_squares; /* [B]: sum y^2 / sigma^2 */
  /* Of any other: rows of neighbouring runs side by side. Row l of run n is in lane n % STRIP of strip n /
   * STRIP, on its page l / PAGE; pages are given out as they are needed. What no observation was written to
   * is 0. */
  int capacity; /* rows of a run, at most */
  int strip_pages, pages, used; /* of one strip at most; of all strips at most; given out */
  int *page; /* [strips, strip_pages] */
  int *filled; /* [strips]: rows of the longest run */
  int skipped; /* rows that passes leave out (history_since); else 0 */
  double *features; /* [pages, PAGE, d, STRIP]: phi */
  double *rewards; /* [pages, PAGE, STRIP]: y, or the mean over the observations of a row */
  double *counts; /* [pages, PAGE, STRIP]: observations of a row; 0 where there is none */
  double *longest; /* [B]: the largest |phi| of a run */
  /* Where rows are arms: */
  int arms; /* of a run; 0: every observation has a row */
  int *arm_rows; /* [B]: arms with a row so far */
  int *arm_row; /* [B, arms]: 1 + the row of an arm; 0: none */
  double *excess; /* [B]: the deviance of the observations beyond that of the rows, the same at every theta */
  /* In place of all these where the mean reward is a network: the rows of each run by themselves, as
   * network.h takes them; 0 beyond the last. */
  int width; /* capacity rounded up to whole NETWORK_LANES */
  float *inputs; /* [B, d, width]: phi */
  double *responses; /* [B, width]: y */
} History;

Status history_create(int d, int runs, const Likelihood *likelihood, History *out);
Status history_create_uneven(int d, int runs, int each_round, const Likelihood *likelihood, History *out);
/* For arms that stay what they are: where rows are kept they are arms. Such a history is for those who read
 * it by the passes below, and not one observation at a time. */
Status history_create_by_arm(int d, int runs, int arms, const Likelihood *likelihood, History *out);
/* Room for `rounds` rounds in all: needed before the first history_append unless the likelihood is conjugate,
 * when there is nothing to do. Empties the history. */
Status history_reserve(History *history, int rounds);
void history_destroy(History *history);
void history_clear(History *history);
/* One observation for every run: phi[d, B], y[B]. */
void history_append(History *history, const double *phi, const double *y);
/* Of an uneven history: one for each of run[each_round], all different; phi[d, each_round], y[each_round]. */
void history_append_to(History *history, const int *run, const double *phi, const double *y);
/* Where rows are arms: one for every run, of arm[B]; phi[d, B] is that of the arm in every round. */
void history_append_arms(History *history, const int *arm, const double *phi, const double *y);
/* The runs run[B] of `from` become those of `to`, an uneven history of B runs with room for as many rounds.
 */
void history_gather(const History *from, const int *run, History *to);

/* Observations of a run so far. */
static inline int history_observations(const History *history, int run) {
  return history->observations ? history->observations[run] : history->rounds;
}

/* Rows of a run so far. */
static inline int history_rows(const History *history, int run) {
  return history->arms ? history->arm_rows[run] : history_observations(history, run);
}

/* Where a row of a strip is, in rows of features and rewards. */
static inline size_t history_row(const History *history, int strip, int row) {
  const int *page = history->page + (size_t)strip * (size_t)history->strip_pages;
  return (size_t)page[row / HISTORY_PAGE] * HISTORY_PAGE + (size_t)(row % HISTORY_PAGE);
}

/* The evidence of lanes first .. first + lanes - 1 where lane n belongs to run n / draws, in coordinates z
 * with theta = shift + scale z (NULL: identity): precision[d, d, lanes], vector[d, lanes]. Conjugate
 * likelihoods. */
void history_evidence(const History *history, int draws, int first, int lanes, const double *shift,
                      const double *scale, double *precision, double *vector);

/* The same lanes and coordinates, for a history that keeps rows (history_passes.c). One call is one pass over
 * the rows. Lanes that share a run share its rows; the result for a lane does not depend on the others. */
typedef struct {
  const History *history;
  int draws, first, lanes;
  const double *shift, *scale;
} HistoryView;

/* The observations from `row` on, of a history that keeps one row for each: a view that owns nothing. */
History history_since(const History *history, int row);

/* At z[d, lanes]: gradient[d, lanes] of the log likelihood with respect to z, and minus its Hessian,
 * precision[d, d, lanes]. Strips in which every settled[lanes] is true are left as they are (NULL: none is).
 */
void history_derivatives(const HistoryView *view, const double *z, const bool *settled, double *gradient,
                         double *precision);
/* At z[d, lanes]: deviance[lanes], the sum over observations; and gradient[d, lanes] of the log likelihood,
 * unless that is NULL. */
void history_deviance(const HistoryView *view, const double *z, double *deviance, double *gradient);
/* The log likelihood, up to a constant of the run: minus half of that deviance. */
void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient);
/* reach[lanes]: by how much a step[d, lanes] in z moves phi' theta, at most over all observations. An upper
 * bound, |phi| |theta step|, where that is below `enough` for all lanes of a strip; the exact maximum, by a
 * pass, elsewhere. */
void history_reach(const HistoryView *view, const double *step, double enough, double *reach);

#endif
