/* Kullback-Leibler divergence between Gaussians, N pairs at once, lane last (core/linalg/linalg.h). */
#pragma once

/* The target of the approximation: p = N(mean, precision^-1). */
typedef struct {
  int d, lanes; /* N */
  const double *mean, *precision; /* [d, N], [d, d, N] */
  const double *log_determinant; /* [N], of the precision */
} GaussianTarget;

/* Computes out[N] = log det of symmetric matrices a[d, d, N], which become their Cholesky factors; NAN if a
 * matrix is not positive definite. jitters[N] is scratch. */
void metric_gaussian_kl_log_determinant(int d, int lanes, double *a, int *jitters, double *out);

/* Computes out[N] = KL(N(mean, covariance) || p); NAN if a covariance is not positive definite. covariance[d,
 * d, N] becomes its Cholesky factor; work[N] and jitters[N] are scratch. */
void metric_gaussian_kl(const GaussianTarget *target, const double *mean, double *covariance, double *work,
                        int *jitters, double *out);
