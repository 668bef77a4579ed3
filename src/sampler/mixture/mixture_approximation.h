/* A Gaussian approximation of a likelihood that is not conjugate, separately for each component of a mixture
 * prior: by expectation propagation (model/history/ep.h) or Laplace's method (model/history/irls.h).
 *
 * An approximation consists of evidence that belongs to one component, and an offset, the logarithm of the
 * factor between it and the likelihood: log p(y | theta) ~ offset + b' theta - theta' Lambda theta / 2.
 * Expectation propagation gets the offset from its estimate of the model evidence; Laplace's method makes the
 * two sides equal at the mode. With a history that forgets (model/history/history_filtered.c) it covers the
 * rows that are left; what was forgotten belongs to the component, as if it were part of its prior. */
#pragma once

#include "model/history/ep_doubt.h"
#include "model/history/irls.h"
#include "model/mixture/mixture.h"

typedef struct MixtureApproximation MixtureApproximation;

/* Finds evidence[d + d d, n], and doubt[n] unless it is 0, of the rows of a view under the component whose
 * prior is in self; the evidence holds what to start from, which is `warm` if it is that of the last round.
 */
typedef void MixtureApproximationFind(MixtureApproximation *self, const HistoryView *rows, bool warm,
                                      double *evidence, int *doubt, int64_t *fallbacks);

/* C components, B runs; n <= most lanes, lane last. */
struct MixtureApproximation {
  const Mixture *prior; /* not owned */
  int runs; /* B */
  MixtureApproximationFind *find; /* by Laplace's method or by expectation propagation */
  bool *at_mode; /* [n]: the offset is known, not the log evidence: by Laplace's method, or without rows */
  double *offset, *log_evidence; /* [n]: the one that is known */
  int64_t *ignored; /* [B] */
  Irls irls;
  Ep ep;
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: P_c and h_c, with what is forgotten */
  double *log_scale; /* [n]: log s_c of what is forgotten */
  double *mode, *image; /* [d, n]: m, Lambda m */
  double *again; /* [d + d d, n]: evidence at the mode, where expectation propagation failed */
  double *last; /* [C, d + d d, B]: evidence in the last round with a draw */
  int last_rounds; /* the number of rows at that time */
};

/* Creates the approximation for B runs, at most `most` of them in a call. */
Status mixture_approximation_create(Arena *memory, const Mixture *prior, int runs, int most, bool laplace,
                                    MixtureApproximation *out);
/* Returns a view of the rows that the history still has. */
History mixture_approximation_rows(const History *history);
/* Returns whether so little has changed since mixture_approximation_keep, at most one row in each run, that
 * what it kept is a good start. */
bool mixture_approximation_is_warm(const MixtureApproximation *self, const History *history);
/* Computes evidence[d + d d, lanes], first b and then Lambda of component c for the runs of `view`, draws
 * = 1, and doubt[lanes] as ep_widen does; lanes in which expectation
 * propagation failed get Laplace's evidence and are EP_NARROW. Leaves the component's prior in self, and
 * what mixture_approximation_weigh needs. */
void mixture_approximation_find(MixtureApproximation *self, int c, const HistoryView *view, bool warm,
                                double *evidence, int *doubt, int64_t *fallbacks);
/* Turns log_weight[lanes] of the Gaussian evidence that was just found, which includes `constant`, into that
 * of the approximation, and computes offset[lanes]. */
void mixture_approximation_weigh(const MixtureApproximation *self, int lanes, double constant,
                                 double *log_weight, double *offset);
/* Keeps the evidence of component c for the runs of `view`, and the number of rows, as a start for the next
 * round. */
void mixture_approximation_keep(MixtureApproximation *self, int c, const HistoryView *view,
                                const double *evidence);
