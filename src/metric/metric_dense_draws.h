/* Draws in thousands of dimensions, spread over ranks (core/dense.h): what the metrics of large settings need
 * from one set of draws, and from two. Covariances are d x d and are not formed: the inner product of those
 * of two centred sets, X of n draws and Y of m, is |X' Y|^2 / (n m). All functions are collective. */
#pragma once

#include "core/dense.h"
#include "model/denoiser/denoiser_isotropic.h"

/* What draws are measured with. Nothing is owned. */
typedef struct {
  const Dense *dense;
  const Isotropic *modes; /* the mixture that theta* is from */
  const double *truth, *direction; /* [d], [d] */
  bool covariance; /* whether products of covariances are wanted */
} DenseMeasure;

typedef struct {
  DenseMatrix centred; /* [d, n], minus their mean */
  double *mean; /* [d] */
  double trace, square; /* of the covariance: its trace; the sum of its squared elements, if wanted */
  double fraction[ISOTROPIC_COMPONENTS]; /* of the draws in each mode */
  double distance, rank; /* mean distance to the truth; rank of the truth along the direction */
} DenseDraws;

/* Measures theta[d, n] and takes ownership of it, also after a failure. The caller must call
 * metric_dense_draws_destroy. */
Status metric_dense_draws_create(const DenseMeasure *measure, DenseMatrix *theta, DenseDraws *out);
void metric_dense_draws_destroy(DenseDraws *draws);

/* Computes the same as measure_covariance_error (metric/metrics.h), for x relative to y. */
Status metric_dense_draws_covariance_error(const DenseMeasure *measure, const DenseDraws *x,
                                           const DenseDraws *y, double *out);
