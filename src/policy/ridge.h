/* Ridge regression on the evidence, shared by LinUCB and epsilon-greedy: (I + Lambda) theta = b with Lambda,
 * b of history.h, which is least squares with ridge lambda = sigma^2. */
#ifndef POLICY_RIDGE_H
#define POLICY_RIDGE_H

#include "policy/policy.h"

typedef struct {
  double *cholesky; /* [d, d, B], of I + Lambda */
  double *theta; /* [d, B], the estimate */
} Ridge;

Status ridge_create(int d, int runs, Ridge *out);
void ridge_destroy(Ridge *ridge);
void ridge_update(Ridge *ridge, const History *history);

#endif
