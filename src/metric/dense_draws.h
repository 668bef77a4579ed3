/* Draws in thousands of dimensions, spread over ranks (core/dense.h): what the metrics of large settings take
 * of one set of draws, and of two. Covariances are d x d and are not formed: the product of those of two
 * centred sets, X of n draws and Y of m, is |X' Y|^2 / (n m). All functions are collective. */
#pragma once

#include "core/dense.h"
#include "model/denoiser/isotropic.h"

/* What draws are measured with. Nothing is owned. */
typedef struct {
  const Dense *dense;
  const Isotropic *modes; /* that theta* is from */
  const double *truth, *direction; /* [d], [d] */
  bool covariance; /* whether products of covariances are wanted */
} DenseMeasure;

typedef struct {
  DenseMatrix centred; /* [d, n], less their mean */
  double *mean; /* [d] */
  double trace,
      square; /* of the covariance: sum of its diagonal; of the squares of its elements, if wanted */
  double fraction[ISOTROPIC_COMPONENTS]; /* of the draws in each mode */
  double distance, rank; /* mean distance to the truth; its rank among the draws, along the direction */
} DenseDraws;

/* Measures theta[d, n], which is taken over, also by a failure. The caller ends with dense_draws_destroy. */
Status dense_draws_create(const DenseMeasure *measure, DenseMatrix *theta, DenseDraws *out);
void dense_draws_destroy(DenseDraws *draws);

/* Computes what metric_covariance_error (metric/draws.h) does, for x beside y. */
Status dense_draws_covariance_error(const DenseMeasure *measure, const DenseDraws *x, const DenseDraws *y,
                                    double *out);
