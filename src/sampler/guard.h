/* A guard against a wrong prior: the prior becomes a mixture of 1 - g times the given prior and g times a
 * wide Gaussian about its mean, whose coordinates are independent and have `width` times the prior's standard
 * deviations (those of its training samples). The data decide: the posterior is a mixture of the posteriors
 * under the prior and under the wide Gaussian, weighted by their marginal likelihoods (Berger 1985, Section
 * 4.7: epsilon-contamination), and every draw is from one of the two.
 *
 * A guard can be put around any sampler, which does not know about it: the sampler draws for all lanes, and
 * the lanes that belong to the wide Gaussian are then replaced. The marginal likelihoods are in closed form,
 * or approximated in the same way for all components (mixture_approximation.h). For a prior that is a mixture
 * they are its own; for any other they are those of the mixture that was fitted to the same samples
 * (prior_stand_in). */
#pragma once

#include "sampler/sampler.h"

/* The meaning of `guard: auto`: the weight, and the factor on the spread of the wide Gaussian's draws. The
 * best of four designs, by the worst of 36 pairs of world and prior (docs/results/guard.md). */
static const double GUARD_AUTO = 0.3, GUARD_AUTO_SHRINK = 0.4;

/* Returns the weight that the option `guard` sets; the option must not be `study`. */
double guard_asked(const Config *options);
/* Returns g: from the option `guard`, or from the prior; 0 without options. */
double guard_of(const SamplerSetup *setup);

/* Returns STATUS_INPUT with one sentence if a guard of weight g > 0 does not fit the likelihood or an option.
 */
Status guard_check(const Config *options, const Likelihood *likelihood, double g);

/* Creates the mixture of the prior's components, with weights times 1 - g, and last the wide Gaussian. */
Status guard_mixture(Arena *memory, const Prior *prior, double g, Mixture *out);
/* Creates a guard for g > 0. `together`: all draws are of one history (sampler/observed.h), so that it works
 * in the few directions that are seen (guard_seen.h). Returns STATUS_INPUT if the prior has no mixture to
 * stand in for it. */
Status guard_create(Arena *memory, const SamplerSetup *setup, double g, bool together, Guard **out);

/* Replaces the lanes of theta[d, N] that belong to the wide Gaussian by draws from its posterior. The streams
 * are separate from the sampler's, but named like `rng`. */
void guard_replace(Guard *self, const History *history, RngLanes rng, int draws, double *theta,
                   int64_t *fallbacks);

/* Turns mean[d, B] and covariance[d, d, B] under the prior into those under both. */
void guard_moments(Guard *self, const History *history, double *mean, double *covariance, int64_t *fallbacks);

/* Computes weight[B], the posterior probability of the wide Gaussian. */
void guard_weight(Guard *self, const History *history, double *weight, int64_t *fallbacks);

/* Turns value[B], the log marginal likelihood under the prior, into that under both. */
void guard_marginal_likelihood(Guard *self, const History *history, double *value, int64_t *fallbacks);
