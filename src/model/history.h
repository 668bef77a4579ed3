/* What B runs have observed so far, as a block; run last in every array.
 *
 * With a conjugate likelihood the evidence is a precision and a precision-weighted mean (DiffTS paper,
 * equation 3), so memory does not grow with rounds; its covariance need not exist. */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include "model/likelihood.h"

typedef struct {
  int d, runs; /* B */
  int rounds; /* observations so far, the same for all runs */
  const Likelihood *likelihood; /* not owned */
  double *precision; /* [d, d, B]: sum phi phi' / sigma^2 */
  double *vector; /* [d, B]: sum phi y / sigma^2 */
  double *reward_squares; /* [B]: sum y^2 / sigma^2 */
} History;

Status history_create(int d, int runs, const Likelihood *likelihood, History *out);
void history_destroy(History *history);
void history_clear(History *history);
/* One observation for every run: phi[d, B], y[B]. */
void history_append(History *history, const double *phi, const double *y);

/* The evidence of lanes first .. first + lanes - 1 where lane n belongs to run n / draws, in coordinates z
 * with theta = shift + scale z (NULL: identity): precision[d, d, lanes], vector[d, lanes]. */
void history_evidence(const History *history, int draws, int first, int lanes, const double *shift,
                      const double *scale, double *precision, double *vector);

#endif
