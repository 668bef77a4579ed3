/* Checks whether draws can have reached their target.
 *
 * With a Gaussian prior and Gaussian rewards the right spread is known: where the posterior has the precision
 * P = L L', the draws L' theta should have standard deviation 1 in every direction. With a mixture prior
 * their mean and covariance are known in closed form (mixture_posterior.h), or approximately, by expectation
 * propagation, if rewards are not Gaussian: with S = L L', draws L^-1 (theta - m) should have mean 0 and
 * standard deviation 1. Where expectation propagation is not to be trusted, m and S are those of draws that
 * do not depend on how far off it is (sampler/mixture/slice.h); if these have not settled, nothing is known.
 */
#pragma once

#include "sampler/digits.h"

typedef struct {
  bool known; /* the prior is a mixture, the target is the posterior, and there are enough draws */
  double narrowest, widest; /* standard deviation of draws over posterior: least and most in any direction */
  double least, most; /* bounds on these: for the method, its documented bias and the number of draws */
  double offset, farthest; /* of the means, in standard deviations of the posterior; bound on it */
  /* By how much the evidence outweighs what it leaves to the prior, and what became of the draws. Known with
   * Gaussian rewards, for every prior that is or has a mixture. */
  double outweighs;
  DrawnFrom from;
  int strays; /* draws where the prior allows none (strays.h) */
} Spread;

/* Returns whether the right mean and spread of the draws are known: the prior is a mixture of Gaussians and
 * the target is the posterior. */
bool spread_is_known(const Sampler *sampler);
/* Measures the draws theta[d, M] of `sampler`, for a history of one run. Allocates and frees. */
Status spread_measure(const Sampler *sampler, const History *history, int draws, const double *theta,
                      Spread *out);
/* Writes one sentence, with the number, that says why the draws cannot have reached the target or had to be
 * replaced, and returns true; returns false if there is no complaint. */
bool spread_complaint(const Spread *spread, size_t size, char *sentence);
