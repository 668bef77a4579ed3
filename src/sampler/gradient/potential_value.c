/* The value of the potential (potential.h), for what weighs points by their density. */
#include "sampler/gradient/potential.h"

#include "core/linalg.h"
#include "core/simd.h"

/* Computes value[n] = x' (y / 2 - b). */
SIMD_CLONES
static void half_form(int d, int lanes, const double *restrict x, const double *restrict y,
                      const double *restrict b, double *restrict value) {
  for (int n = 0; n < lanes; n++) value[n] = 0;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      value[n] += x[i * lanes + n] * (0.5 * y[i * lanes + n] - b[i * lanes + n]);
}

void potential_value(Potential *potential, const double *theta, const double *log_prior, double *value) {
  const int d = potential->d, lanes = potential->view.lanes;
  double *log_likelihood = potential->column;
  linalg_multiply_lanes(d, lanes, potential->precision, theta, potential->image);
  half_form(d, lanes, theta, potential->image, potential->vector, value);
  if (!potential->closed_prior)
    for (int n = 0; n < lanes; n++) value[n] -= potential->prior_weight * log_prior[n];
  if (potential->conjugate || potential->view.history->rounds == 0) return;
  history_log_likelihood(&potential->view, potential_theta(potential, lanes, theta), log_likelihood, NULL);
  for (int n = 0; n < lanes; n++) value[n] -= potential->likelihood_weight * log_likelihood[n];
}
