/* Alternating least squares (problem/embedding/factorisation.h) on all ranks: each updates a share of the
 * rows, and all get all rows after each half-sweep. The result is the same for any number of ranks. */
#ifndef PARALLEL_FACTORISE_H
#define PARALLEL_FACTORISE_H

#include "parallel/parallel.h"
#include "problem/embedding/factorisation.h"

typedef struct {
  int d, sweeps;
  double mean; /* of all ratings, subtracted */
  double *user, *item; /* [users, d], [items, d] */
  double *rmse; /* [sweeps], root mean squared residual after each sweep */
} Factorisation;

/* Rank 0's ratings to all ranks; the others' `ratings` are made here and ended with ratings_free.
 * Collective. */
Status factorise_share(const Parallel *parallel, Ratings *ratings);

/* report(sweep, rmse) is called on every rank after each sweep, from 1; may be NULL. All ranks have the
 * ratings and all get the result, which is ended with factorise_free. Collective. */
Status factorise(const Parallel *parallel, const Ratings *ratings, const FactorisationSetup *setup,
                 void (*report)(int sweep, double rmse), Factorisation *out);
void factorise_free(Factorisation *factorisation);

#endif
