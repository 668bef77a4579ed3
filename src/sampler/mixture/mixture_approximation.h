/* The likelihood that is not conjugate, as each component of a mixture prior sees it: a Gaussian in its
 * place, by expectation propagation (model/history/ep.h) or Laplace's method (model/history/irls.h).
 *
 * An approximation is evidence that the component has for itself, and the logarithm of the factor at which it
 * stands for the likelihood, its offset: log p(y | theta) ~ offset + b' theta - theta' Lambda theta / 2.
 * Expectation propagation has the offset from its own evidence of the model; Laplace's makes the two sides
 * equal at the mode. With a history that forgets (model/history/history_filtered.h) it is for the rows that
 * are there; what is forgotten is the component's, as if it were its prior. */
#pragma once

#include "model/history/ep.h"
#include "model/history/irls.h"
#include "model/mixture/mixture.h"

/* C components, B runs; n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  const Mixture *prior; /* not owned */
  int runs; /* B */
  bool laplace;
  bool empty; /* there were no rows: value is 0 */
  Irls irls;
  Ep ep;
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: P_c and h_c, with what is forgotten */
  double *log_scale; /* [n]: log s_c of that */
  double *mode, *value; /* [d, n], [n]: the offset by Laplace, log evidence by expectation propagation */
  double *last_precision, *last_vector; /* [C, d, d, B], [C, d, B]: evidence in the last round with a draw */
  int last_rounds; /* rows then */
} MixtureApproximation;

Status mixture_approximation_create(Arena *memory, const Mixture *prior, int runs, bool laplace,
                                    MixtureApproximation *out);
/* Returns the rows of a history that are there; a view. */
History mixture_approximation_rows(const History *history);
/* Returns whether so little has changed since mixture_approximation_keep, one row for each run, that what it
 * kept is a start. */
bool mixture_approximation_is_warm(const MixtureApproximation *self, const History *history);
/* Computes precision[d, d, lanes] and vector[d, lanes], the evidence of component c for the runs of `view`,
 * draws = 1; leaves its prior in self, and what the next call needs. */
void mixture_approximation_find(MixtureApproximation *self, int c, const HistoryView *view, bool warm,
                                double *precision, double *vector, int64_t *fallbacks);
/* Turns log_weight[lanes] of the Gaussian evidence that was just found, with `constant` in it, into that of
 * the approximation, and computes offset[lanes]. */
void mixture_approximation_weigh(const MixtureApproximation *self, int lanes, double constant,
                                 double *log_weight, double *offset);
/* Keeps the evidence of component c for the runs of `view` to start from in the next round, and after all
 * components its rows. */
void mixture_approximation_keep(MixtureApproximation *self, int c, const HistoryView *view,
                                const double *precision, const double *vector);
void mixture_approximation_kept(MixtureApproximation *self, const History *history);
