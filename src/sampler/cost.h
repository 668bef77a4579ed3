/* Costs of the parts that samplers are made of, for the op `cost` of sampler.h: per lane, in floating-point
 * operations (2e10 per second).
 *
 * The constants were fitted to `thompson bench` and to small studies in 2 to 20 dimensions, on one core of an
 * AMD EPYC (Zen 4) with AVX-512. They measure time and are not counts: a network's products run at several
 * times the nominal speed, a logarithm far below it. */
#pragma once

#include "sampler/sampler.h"

#include <math.h>

/* Returns B M: the draws of a call. */
static inline double cost_drawn_lanes(const SamplerWork *work) { return work->runs * work->draws; }
/* Returns the ratio of lanes computed to lanes asked for, when they are processed in groups of `width`. */
static inline double cost_padding(double lanes, double width) { return ceil(lanes / width) * width / lanes; }
/* Returns how much more a lane costs in a call with so few lanes; 1 for 64. */
static inline double cost_share(double lanes) { return 0.72 * (1 + 25 / lanes); }
/* Returns the cost of a draw from a Gaussian that is given by its precision: a Cholesky factor, two solves, d
 * normals. */
double cost_gaussian(const SamplerWork *work);
/* Returns the cost of a solve with a triangular matrix; above LINALG_BATCH_DIMENSION each is a separate
 * LAPACK call. */
double cost_solve(double d);
/* Returns the cost of a likelihood that is not conjugate: of one pass over the rows, for the gradient and
 * optionally the Hessian; and (cost_mode) of the mode of a posterior with a Gaussian prior by IRLS. Both are
 * 0 for a conjugate likelihood, which has no rows and whose mode is known. */
double cost_rows(const SamplerWork *work, double lanes, bool hessian);
double cost_mode(const SamplerWork *work, double lanes);
/* Returns the cost of a mixture prior's log density; and that of the score of a mixture or learned prior. */
double cost_density(const SamplerWork *work);
double cost_score(const SamplerWork *work, double lanes);
/* Returns the cost of the noise predictor of one stage of the chain, or of one product with its Jacobian. */
double cost_noise(const SamplerWork *work, double lanes);
/* Returns the cost of a stage of the chain that uses the mean and the covariance of the clean sample, from
 * the whole Jacobian. */
double cost_stage_moments(const SamplerWork *work, double lanes);
/* Returns the cost of the sweeps of expectation propagation, 0 with a conjugate likelihood: a quadrature rule
 * of 21 nodes for each row, mostly its logarithms and exponentials, and the matrices of a few sweeps. Fitted
 * to runs in d = 2, 6 and 10. */
double cost_sweeps(const SamplerWork *work);
/* Returns the cost of a posterior that is a mixture of this many Gaussians, and of its draws. In closed form
 * the draws of a run share the factors. */
double cost_mixture(const SamplerWork *work, double components);
/* Returns the cost of carrying the particles of one run from the prior to the posterior by tempering, with
 * this many Metropolis steps at each exponent. */
double cost_tempering(const SamplerWork *work, double particles, double steps);

/* Returns the cost of a round: that of the method, and of the guard around it. */
double cost_round(const SamplerOps *method, const SamplerWork *work);
