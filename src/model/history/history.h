/* What B runs have observed so far, in one block; the run is the last index of every array.
 *
 * How observations are kept depends on the form of the history; each form has its own small file
 * (history_internal.h). A conjugate likelihood keeps the evidence, the pair (Lambda, b) of a precision and a
 * precision-weighted mean (DiffTS paper, equation 3; here the word never means the marginal likelihood), so
 * memory does not grow with the number of rounds. Any other likelihood keeps the observations row by row, and
 * one pass over the rows gives the evidence at a point (network_rows.h if the mean reward is a network). If
 * the arms do not change from round to round, one row can represent all observations of an arm by their
 * number and mean reward, which is all that the log likelihood depends on: then there are no more rows than
 * arms, however many rounds there are.
 *
 * In every form each run usually has one observation in every round. If each of K arms has its own posterior,
 * however, a run of the history is one arm of a run of the bandit, and only one run in K has an
 * observation. */
#pragma once

#include "core/arena.h"
#include "core/tiling.h"
#include "model/history/likelihood.h"
#include "model/mixture/mixture.h"

typedef struct {
  Arena *memory; /* the creator's arena */
  int d, runs; /* entries of phi; B */
  int rounds; /* so far */
  int each_round; /* runs that get an observation in a round: B, or B / K */
  const Likelihood *likelihood; /* not owned */
  double temper; /* multiplies the log likelihood in every function that reads a history; initially 1 */
  int skipped; /* leading rows that passes leave out (history_since); otherwise 0 */
  const struct HistoryOps *ops; /* operations of its form */
  struct HistoryContent *content; /* in `memory`; a copy of this struct is a view of the same content */
} History;

/* The largest number in the state of a run: as many observations as can be counted, with evidence of 1e45
 * each. */
#define HISTORY_MOST (1e45 * 0x1p32)

/* Creates an empty history. The likelihood must outlive it; the history lives as long as `memory`. */
Status history_create(Arena *memory, int d, int runs, const Likelihood *likelihood, History *out);
/* What a history is made for; all zeros: for passes over the observations of `runs` runs. */
typedef struct {
  int arms; /* K, if the arms do not change: if rows are kept, there is one per arm, which only passes read */
  int share; /* K, if each arm has its own posterior: there are K times as many runs, and arm k of run n is
              * run n K + k */
  /* It can be read one observation at a time (history_observation), whatever the likelihood, has no evidence
   * even if that is conjugate, and its memory grows with the number of rounds. */
  bool by_observation;
} HistoryPlan;
/* Creates an empty history as history_create does, for this plan. */
Status history_create_planned(Arena *memory, int d, int runs, HistoryPlan plan, const Likelihood *likelihood,
                              History *out);
/* Makes room for a total of `rounds` rounds and empties the history. Required before the first history_record
 * unless the likelihood is conjugate, when there is nothing to do. Call it once: what was reserved before
 * stays in `memory`. */
Status history_reserve(History *history, int rounds);
void history_clear(History *history);
/* Returns a view, which owns nothing, of the first `runs` runs, which all get an observation in a round. */
History history_first_runs(const History *history, int runs);
/* Records one round, whatever the form: arm[each_round], phi[d, each_round] of those arms and y[each_round].
 * `arm` may be NULL if neither rows nor runs are arms. If an arm is negative nothing was observed, and its
 * phi and y are 0. */
void history_record(History *history, const int *arm, const double *phi, const double *y);
/* Multiplies the log likelihood of every observation so far by `factor` from 0 to 1, which moves the
 * posterior back towards the prior. Not available if the mean reward is a network. Readers of single
 * observations (history_observation, history_since) do not see the factor. */
void history_discount(History *history, double factor);
/* Copies runs run[B] of `from` to `to`, a history of B runs that has room for all rounds of `from`. */
void history_gather(const History *from, const int *run, History *to);

/* Returns the number of observations of a run so far. */
int history_observations(const History *history, int run);
/* Returns the runs that the last round's observations belong to, [each_round]. */
const int *history_latest_runs(const History *history);
/* Returns the sum of |phi|^2 over the observations of a run. */
double history_squares(const History *history, int run);
/* Returns the size of the state of a run, 0 for forms without a fixed size. history_store copies what a run
 * has observed to state[history_state(history)]; history_load puts it in place of what a run had, with its
 * number of observations. The state of a conjugate likelihood is the upper triangle of the precision, row by
 * row (d (d + 1) / 2 numbers), the vector (d numbers), and the sum of (y / sigma)^2. Clear a history before
 * loading its runs. */
size_t history_state(const History *history);
void history_store(const History *history, int run, double *state);
void history_load(History *history, int run, int observations, const double *state);
/* Returns whether history_load takes a state: its numbers are finite and at most HISTORY_MOST in size, and
 * what it says about its own layout is true. */
bool history_accepts(const History *history, const double *state);
/* Reads phi[d] of observation l of a run, with entries `stride` apart, and returns its reward. Only for a
 * history that keeps one row per observation; a run can have fewer observations than rounds
 * (history_observations). */
double history_observation(const History *history, int run, int l, size_t stride, double *phi);

/* Lanes first .. first + lanes - 1 of a history, where lane n belongs to run n / draws, in coordinates z with
 * theta = shift + scale z (NULL: identity). */
typedef struct {
  const History *history;
  int draws, first, lanes;
  const double *shift, *scale;
} HistoryView;

/* Returns a view in theta: of these lanes, or (below) of `points` lanes of one run. */
static inline HistoryView history_view(const History *history, int draws, int first, int lanes) {
  return (HistoryView){.history = history, .draws = draws, .first = first, .lanes = lanes};
}
static inline HistoryView history_points(const History *history, int run, int points) {
  return history_view(history, points, run * points, points);
}
/* Returns the view in coordinates z. */
static inline HistoryView history_view_in(HistoryView view, const double *shift, const double *scale) {
  view.shift = shift;
  view.scale = scale;
  return view;
}

/* Expands x[rows, runs], whose columns belong to the runs from `first` on, to the lanes of the view: x[rows,
 * lanes]. Scratch: [rows, runs]. */
void history_repeat_runs(const HistoryView *view, int first, int runs, int rows, double *x, double *scratch);

/* ---- the evidence of a conjugate likelihood */

/* Evidence of n lanes: the likelihood is taken for exp(b' z - z' Lambda z / 2). */
typedef struct {
  double *precision, *vector; /* Lambda[d, d, n], b[d, n] */
} EvidenceLanes;

/* Computes the evidence: precision[d, d, lanes], vector[d, lanes]; zeros if rows are kept. Returns whether it
 * is the whole log likelihood, up to a constant: the likelihood is conjugate, or nothing was observed. */
bool history_evidence(const HistoryView *view, double *precision, double *vector);
/* Computes residual[lanes] >= 0: the sum of ((y - phi' shift) / sigma)^2 over the observations of each lane;
 * zeros if rows are kept, which contain it. */
void history_residual(const HistoryView *view, double *residual);
/* Replaces the content by this many rounds with the evidence factor precision[d, d, B] and factor vector[d,
 * B]; the residual is then unknown. */
void history_set_evidence(History *history, int rounds, double factor, const double *precision,
                          const double *vector);

/* ---- the same in coordinates where the precision is diagonal, of one run */

typedef struct {
  int d, observations;
  const double *q, *b; /* [d]: the likelihood is taken for exp(b' x - sum q x^2 / 2) */
  double reward_squares; /* sum of (y / sigma)^2 */
} DiagonalEvidence;

/* Creates a history of one run with this evidence, without any matrix; history_set_diagonal replaces it. */
Status history_create_diagonal(Arena *memory, const DiagonalEvidence *evidence, const Likelihood *likelihood,
                               History *out);
void history_set_diagonal(History *history, const DiagonalEvidence *evidence);
bool history_is_diagonal(const History *history);
/* Computes q[d, lanes] and b[d, lanes] in the coordinates of the view. */
void history_diagonal(const HistoryView *view, double *q, double *b);

/* ---- a mixture given the evidence of a conjugate likelihood */

/* The posterior of runs under one component, N(P^-1 h, P^-1) with P = S^-1 + Lambda = L L' and h = S^-1 m +
 * b; n lanes, lane last. */
typedef struct {
  double *factor; /* [d, d, n]: L */
  double *whitened; /* [d, n]: L^-1 h */
  double *log_weight; /* [n]: the logarithm of its weight (mixture_evidence.h), less `common` */
  double *common; /* [n]: the same for all components of a mixture; 0 unless the evidence is very precise */
  int *jitters; /* [n]: pivots of L that were not positive are added */
} Conditioned;

/* Computes this for component c and the runs of a view (draws = 1, no shift or scale), at most CHUNK_LANES.
 * `evidence` is that of the view (history_evidence), and `constant` that of the component
 * (mixture_evidence_constants). However precise the evidence, the prior keeps its digits, as far as
 * history_digits says; nothing is then jittered. */
void history_condition(const HistoryView *view, EvidenceLanes evidence, const Mixture *mixture, int c,
                       double constant, const Conditioned *out);

/* How precise the evidence of a run is in some direction, compared with what it leaves to a prior in
 * another. */
typedef enum {
  DIGITS_KEPT, /* the sum of the two precisions has digits of both */
  DIGITS_BEYOND_SUMS, /* it has not, but history_condition keeps them */
  DIGITS_LOST /* nothing keeps them */
} PriorDigits;

/* Returns whether the evidence of any run is so precise that the sum has not kept the digits of a mixture;
 * then computes digits[B] for its components, the worst of each run, and outweighs[B], that ratio. Takes next
 * to no time if no evidence is very precise. */
bool history_digits(const History *history, const Mixture *mixture, PriorDigits *digits, double *outweighs);

/* ---- the evidence in the eigenbasis of its precision, Lambda = U diag(q) U' */

/* U of n lanes. */
typedef struct {
  double *u; /* [d, d, n], or [d, d] if shared; NULL: there is room for none */
  bool shared; /* all lanes are draws of one run */
  bool identity; /* U = I: the history is diagonal already */
} EvidenceBasis;

/* Computes y[d, n] = U x, or U' x; the bits are the same whether U is shared or not. */
void evidence_basis_apply(const EvidenceBasis *basis, int d, int lanes, bool transpose, const double *x,
                          double *y);

/* Decomposes the evidence in x, theta = A x with root[d, d] = A (NULL: identity), where Lambda becomes A'
 * Lambda A and b becomes A' b. Returns false, and computes nothing, if it is not the whole log likelihood.
 * For n lanes, lane last: basis = U, q[d, n] >= 0 and b[d, n] = U' b. Each run is decomposed once for all its
 * draws, and if all lanes belong to one run the basis stays a single matrix. basis->u has room for [d, d, n].
 * Scratch: matrix[d, d, n], column[d, n]. Without a root, a history that is diagonal needs no matrices: they
 * may be NULL, and the basis is the identity. */
bool evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        EvidenceBasis *basis, double *q, double *b);
/* Does the same without a root, for all lanes: u[d, d, n] = U. */
bool evidence_decompose_lanes(const HistoryView *view, double *matrix, double *column, double *u, double *q,
                              double *b);

/* ---- any other likelihood: its values at points */

/* Computes, at z[d, lanes], log_likelihood[lanes] up to a constant per run, minus half the deviance of the
 * observations if they are rows, and its gradient[d, lanes] unless that is NULL. */
void history_log_likelihood(const HistoryView *view, const double *z, double *log_likelihood,
                            double *gradient);

/* ---- rows (history_passes.h makes passes over them) */

/* Returns a view, which owns nothing, of the observations from `row` on of each run. Only for a history that
 * keeps one row per observation. */
History history_since(const History *history, int row);
/* Returns whether every row is one observation with its whole likelihood: no arms, temper or discount. */
bool history_rows_are_single(const History *history);
/* Returns what history_log_likelihood subtracts from every value of a lane because rows that are arms do not
 * contain it. */
double history_excess(const HistoryView *view, int lane);

/* ---- a history that forgets rows */

/* Creates a history that forgets (history_filtered.c), for a likelihood that is not conjugate. The prior is
 * that of the sampler and is copied. One in `share` runs gets an observation in a round, as in a HistoryPlan;
 * keep > 0 requires share = 1. There is room for any number of rounds. */
Status history_create_filtered(Arena *memory, const Mixture *prior, int keep, int runs, int share,
                               const Likelihood *likelihood, History *out);
bool history_is_filtered(const History *history);
/* Returns the mixture, to whose components what was forgotten belongs. */
const Mixture *history_filtered_prior(const History *history);
/* Returns the rows that are not forgotten, as a view that is a history of rows; empty with keep = 0. */
History history_retained(const History *history);
/* Finds what was forgotten, for component c and the runs of `view` (draws = 1, no shift or scale): adds
 * Lambda_c to precision[d, d, lanes] and b_c to vector[d, lanes], and sets log_scale[lanes] to log s_c. */
void history_forgotten(const HistoryView *view, int c, double *precision, double *vector, double *log_scale);
/* Adds the numerical fallbacks of the runs that forgot rows in the last round to fallbacks[B]. */
void history_filtered_fallbacks(const History *history, int64_t *fallbacks);
