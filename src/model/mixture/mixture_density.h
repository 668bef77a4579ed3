/* Kernels for the density of a Gaussian mixture and its derivatives. They read only mean, precision and
 * log_norm; their result for a lane does not depend on the other lanes. */
#pragma once

#include "model/mixture/mixture.h"

/* Computes the log density, out[N]. */
void mixture_log_density(const Mixture *mixture, int lanes, const double *theta, double *out);
/* Computes out[d, N], the gradient of the log density; NaN if memory is short. */
void mixture_score(const Mixture *mixture, int lanes, const double *theta, double *out);
/* Computes both, with the same bits, in one pass; log_density may be NULL. Scratch: gradient[d,
 * VECTOR_LANES]. */
void mixture_density(const Mixture *mixture, int lanes, const double *theta, double *gradient,
                     double *log_density, double *score);
/* Computes out[d, N] = H(theta) v with H the Hessian of the log density; NaN if memory is short. out must not
 * overlap v. */
void mixture_hessian_product(const Mixture *mixture, int lanes, const double *theta, const double *v,
                             double *out);
/* Computes score[d, N] and hessian[d, d, N] of the log density, both triangles, in O(C d^2) per lane; NaN if
 * memory is short. */
void mixture_score_hessian(const Mixture *mixture, int lanes, const double *theta, double *score,
                           double *hessian);
