/* Whether draws can have reached their target.
 *
 * With a Gaussian prior and Gaussian rewards the spread that they must have is known: in z, theta = A z with
 * A A' the covariance of the prior, the posterior's precision is P = I + A' Lambda A, Lambda the evidence.
 * With P = L L' the draws L' z should have the standard deviation 1 in every direction. With a mixture for a
 * prior their mean and covariance are in closed form (mixture_posterior.h), and with other than Gaussian
 * rewards those of expectation propagation are near: with S = L L', draws L^-1 (theta - m) should have the
 * mean 0 and the standard deviation 1. */
#pragma once

#include "sampler/sampler.h"

typedef struct {
  bool known; /* the prior is a mixture, the target the posterior, and enough draws to decide */
  double narrowest,
      widest; /* standard deviation of the draws over that of the posterior, over all directions */
  double least, most; /* what these may be for the method, its documented bias and the number of draws */
  double offset, farthest; /* of the means, in standard deviations of the posterior; what it may be */
  /* By how much the evidence outweighs what it leaves to the prior, and whether that is beyond the digits of
   * the method; with Gaussian rewards known for every prior with a mixture in its place. */
  double hidden;
  bool lost;
  bool replaced; /* or would be, but draws of the mixture have taken their place (stand_in_replace) */
} Spread;

/* Returns whether mean and spread of draws that are right are known: the prior is a mixture of Gaussians and
 * the target the posterior. */
bool spread_is_known(const Sampler *sampler);
/* Measures the draws theta[d, M] of `sampler`, for a history of one run. Allocates and frees. */
Status spread_measure(const Sampler *sampler, const History *history, int draws, const double *theta,
                      Spread *out);
/* Finds `hidden`, `lost` and `replaced` alone, at almost no cost while the evidence is far from it. */
Status spread_hidden(const Sampler *sampler, const History *history, Spread *out);
/* Writes in one sentence that the draws cannot have reached the target, with the number, and returns true;
 * false where nothing is known against them. */
bool spread_complaint(const Spread *spread, size_t size, char *sentence);
