/* What the parts that samplers are made of cost: for the op `cost` of sampler.h, of one lane, in its
 * floating-point operations (2e10 a second).
 *
 * The constants are fitted to `thompson bench`, and to small studies, of 2 to 20 dimensions on one core of an
 * AMD EPYC (Zen 4) with AVX-512. They are times, not counts: a network's products run at several times the
 * nominal speed, a logarithm far below it. */
#pragma once

#include "sampler/sampler.h"

/* Returns B M: the draws of a call. */
double cost_drawn_lanes(const SamplerWork *work);
/* Returns how many lanes are worked on for each that is asked for, where they go in groups of `width`. */
double cost_padding(double lanes, double width);
/* Returns how much more a lane costs in a call of so few, 1 for 64. */
double cost_share(double lanes);
/* Returns the cost of a draw from a Gaussian that is known by its precision: a Cholesky factor, two
 * solves, d normals. */
double cost_gaussian(const SamplerWork *work);
/* Returns the cost of a solve with a triangular matrix. */
double cost_solve(double d);
/* Returns the cost of a likelihood that is not conjugate: one pass over the rows, for the gradient and, if
 * asked for, the Hessian. Returns the cost of the mode of a posterior with a Gaussian prior by IRLS. A
 * conjugate one has no rows, and its mode is at hand: 0. */
double cost_rows(const SamplerWork *work, double lanes, bool hessian);
double cost_mode(const SamplerWork *work, double lanes);
/* Returns the cost of a mixture prior's log density and its score, or of a learned prior's score. */
double cost_density(const SamplerWork *work);
double cost_score(const SamplerWork *work, double lanes);
/* Returns the cost of the noise predictor of a stage of the chain, or of one product with its Jacobian. */
double cost_noise(const SamplerWork *work, double lanes);
/* Returns the cost of a stage of the chain by the mean and the covariance of the clean sample, from the
 * whole Jacobian. */
double cost_stage_moments(const SamplerWork *work, double lanes);
/* Returns the cost of the sweeps of expectation propagation, 0 with a conjugate likelihood: for each row a
 * rule of 21 nodes, whose logarithms and exponentials are most of it, and the matrices of a few sweeps.
 * Fitted to runs in d = 2, 6 and 10. */
double cost_sweeps(const SamplerWork *work);
/* Returns the cost of a posterior that is a mixture of so many Gaussians, and of its draws. With a closed
 * form the draws of a run share the factors. */
double cost_mixture(const SamplerWork *work, double components);
/* Returns the cost of a cloud of particles of one run, led from the prior to the posterior by tempering,
 * with so many Metropolis steps at each exponent. */
double cost_tempering(const SamplerWork *work, double particles, double steps);

/* Returns what a round costs: that of the method, and of the guard around it. */
double cost_round(const SamplerOps *method, const SamplerWork *work);
