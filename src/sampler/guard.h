/* A guard against a prior that is wrong: what is believed is (1 - g) times the prior plus g times a wide
 * Gaussian about the prior's mean, whose coordinates are independent and have `width` times the prior's
 * standard deviations (those of its training samples). The data decide: the posterior is that of the prior
 * and that of the wide Gaussian, weighted by their marginal likelihoods (Berger 1985, Section 4.7:
 * epsilon-contamination), and every draw is from one of the two.
 *
 * It is put around any sampler, which does not notice: the sampler draws for all lanes, and those lanes that
 * belong to the wide Gaussian are replaced. The marginal likelihoods are closed forms, or Laplace
 * approximations of all components alike: of a prior that is a mixture its own, and otherwise that of the
 * mixture that was fitted beside it to the same samples (prior_stand_in). */
#pragma once

#include "sampler/sampler.h"

/* What `guard: auto` stands for, the weight and the factor of the wide Gaussian's draws: the best of four
 * designs by the worst of 36 pairs of world and prior (docs/results/guard.md). */
static const double GUARD_AUTO = 0.3, GUARD_AUTO_SHRINK = 0.4;

/* Returns the weight that the option `guard` asks for, which is not `study`. */
double guard_asked(const Config *options);
/* Returns g: the option `guard`, or what the prior brings; 0 without options. */
double guard_of(const SamplerSetup *setup);

/* Mixes the components of `prior`, with their weights times 1 - g, and last the wide Gaussian. */
Status guard_mixture(Arena *memory, const Prior *beside, double g, Mixture *out);
/* Creates a guard for g > 0. Returns STATUS_INPUT where the prior has no mixture to stand in for it. */
Status guard_create(Arena *memory, const SamplerSetup *setup, double g, Guard **out);

/* Draws of the wide Gaussian's posterior take the place of those in theta[d, N] whose lanes are its. The
 * streams are of their own, named as `rng`. */
void guard_replace(Guard *self, const History *history, RngLanes rng, int draws, double *theta,
                   int64_t *fallbacks);

/* Turns mean[d, B] and covariance[d, d, B] under the prior into those under both. */
void guard_moments(Guard *self, const History *history, double *mean, double *covariance, int64_t *fallbacks);

/* Computes weight[B]: the posterior probability of the wide Gaussian. */
void guard_weight(Guard *self, const History *history, double *weight, int64_t *fallbacks);

/* Turns value[B], the logarithm of the marginal likelihood under the prior, into that under both. */
void guard_marginal_likelihood(Guard *self, const History *history, double *value, int64_t *fallbacks);
