/* A distribution over linear models from labelled features (DiffTS paper, Appendix C.2). Each theta comes
 * from (1) a random positive label, uniform over the labels: its rewards are +1, those of all other labels
 * -1; (2) a random set of 20 rows: 10 of the positive label and 10 of the others, uniform without
 * replacement; (3) least squares on the set.
 *
 * What the paper leaves open, and is chosen here: the model has no intercept, since a bandit's mean reward is
 * x'theta. 20 points say little along directions in which the features hardly vary, so least squares has a
 * ridge: theta = (X'X + r m I)^-1 X'y, with m the mean squared length of all rows, which makes the fit
 * independent of their scale. */
#pragma once

#include "core/status.h"

#include <stdint.h>

enum { LINEAR_FIT_EACH = 10 /* rows of either sign */ };

typedef struct {
  int rows, d, labels; /* labels are 0 .. labels - 1 */
  const double *x; /* [rows, d] */
  const unsigned char *label; /* [rows] */
} LabelledRows;

/* Returns the mean squared length of the rows. */
double linear_fit_mean_square(const LabelledRows *rows);

/* Fits n models: theta[d, n], and the label that was positive[n]. Model i does not depend on n.
 * STATUS_INPUT when a label has fewer than LINEAR_FIT_EACH rows, or all rows are zero; `ridge` = r above
 * 0. */
Status linear_fit_sample(const LabelledRows *rows, double ridge, uint64_t seed, int n, double *theta,
                         signed char *positive);
