/* The regularised maximum likelihood estimate, shared by the confidence bounds and epsilon-greedy: the mode
 * of N(0, I) times the likelihood. With Gaussian rewards it is ridge regression, (I + Lambda) theta = b with
 * Lambda, b of history.h, which is least squares with ridge lambda = sigma^2; with other rewards it is found
 * by IRLS. */
#pragma once

#include "model/history/irls.h"
#include "policy/policy.h"

typedef struct {
  double *cholesky; /* [d, d, B], of I + Lambda, Lambda at the estimate */
  double *theta; /* [d, B], the estimate */
  /* For a likelihood that is not conjugate: */
  Irls irls;
  double *prior_precision, *prior_vector; /* [d, d, B], [d, B]: I and 0 */
  double *precision, *vector; /* [d, d, B], [d, B]: the evidence, from which the next round's IRLS starts */
} Ridge;

/* Creates the estimate in the memory of a policy, for its problem and runs. */
Status ridge_create(Policy *policy, Ridge *out);
/* Updates the estimate; numerical fallbacks are added to fallbacks[B]. */
void ridge_update(Ridge *ridge, const History *history, int64_t *fallbacks);
