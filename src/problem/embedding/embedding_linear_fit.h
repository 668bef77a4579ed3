/* A distribution over linear models from labelled features (DiffTS paper, Appendix C.2). Each theta comes
 * from (1) a random positive label, uniform over the labels, whose rewards are +1, and those of all other
 * labels -1; (2) a random set of 20 rows, 10 with the positive label and 10 with others, uniform without
 * replacement; (3) least squares on the set.
 *
 * The paper leaves two things open, which are chosen here. The model has no intercept, since a bandit's mean
 * reward is x'theta. And 20 points say little along directions in which the features hardly vary, so least
 * squares has a ridge: theta = (X'X + r m I)^-1 X'y, where m is the mean squared length of all rows, which
 * makes the fit independent of their scale. */
#pragma once

#include "core/status.h"

#include <stdint.h>

enum { LINEAR_FIT_EACH = 10 /* rows for each sign */ };

typedef struct {
  int rows, d, labels; /* labels are 0 .. labels - 1 */
  const double *x; /* [rows, d] */
  const unsigned char *label; /* [rows] */
} LabelledRows;

/* Returns STATUS_INPUT if a label has fewer than LINEAR_FIT_EACH rows; looks only at the labels. */
Status embedding_linear_fit_check(const LabelledRows *rows);
/* Returns the mean squared length of the rows. */
double embedding_linear_fit_mean_square(const LabelledRows *rows);

/* Fits n models: theta[d, n], with the positive label of each in positive[n]. Model i does not depend on n.
 * STATUS_INPUT if a label has fewer than LINEAR_FIT_EACH rows, or if all rows are zero; `ridge` = r must be
 * above 0. */
Status embedding_linear_fit_sample(const LabelledRows *rows, double ridge, uint64_t seed, int n,
                                   double *theta, signed char *positive);
