/* The gradient that guides DPS, in a separate header so that it can be tested. */
#pragma once

#include "model/denoiser/denoiser_chain.h"
#include "sampler/one_history.h"

/* What guides the chain of n lanes: the sum of squared residuals sum_l (y_l - phi_l' theta)^2 or, with a
 * likelihood that is not conjugate, the deviance, which is the same for a Gaussian likelihood of variance 1.
 * With a conjugate likelihood it is quadratic in s_0 in the chain's coordinates, sigma^2 (constant - 2 s_0' b
 * + s_0' Lambda s_0). Lane last. */
typedef struct {
  int d, lanes;
  const HistoryView *rows; /* where the deviance is taken from; NULL: the quadratic */
  const OneHistory *one; /* the same quadratic of all lanes, in place of `precision` and `vector`, or NULL */
  double variance; /* sigma^2; 1 with rows */
  double *precision; /* [d, d, n]: Lambda */
  double *vector; /* [d, n]: b */
  double *constant; /* [n]: the sum at s_0 = 0, over sigma^2 */
} DpsEvidence;

typedef enum {
  DPS_THROUGH_NETWORK, /* with respect to S_t (Algorithm 4) */
  DPS_AT_ESTIMATE /* half the gradient at S_0_hat over sigma^2, without its Jacobian (published code) */
} DpsGradient;

typedef struct {
  double *denoised; /* [d, n]: the estimate S_0_hat (line 5) */
  double *residual; /* [n]: the sum of squared residuals or the deviance there */
  double *gradient; /* [d, n] */
  double *scratch; /* [d, n] */
} DpsPoint;

/* Computes a point, with the gradient of this kind, for each lane at stage t, from s = S_t[d, n]. */
void dps_gradient(const Chain *chain, int t, const DpsEvidence *evidence, DpsGradient kind, const double *s,
                  const DpsPoint *out);
