/* The exact posterior in the plane of a mixture prior and the evidence of Gaussian rewards, precision lambda
 * and vector b: products of two Gaussians, written out. For tests with more rows than sampler_fixture.h
 * allows. */
#pragma once

#include "sampler_fixture.h"

typedef struct {
  double weight[4], mean[4][2], covariance[4][4], total_mean[2], total_covariance[4];
} PlanePosterior;

/* Returns the posterior of `prior` given lambda[2, 2] and b[2]. */
PlanePosterior plane_posterior(const Mixture *prior, const double *lambda, const double *b);
