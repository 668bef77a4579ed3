/* The posterior of a linear model with Gaussian rewards of unknown variance s^2 (the normal-inverse-gamma
 * family; Gelman et al. 2013, Section 14.8; LinFullPost of Riquelme, Tucker and Snoek 2018):
 *
 *     s^2 ~ IG(a, b),   theta | s^2 ~ N(m, s^2 V0^-1),   y ~ N(phi' theta, s^2),   V0 = lambda S^-1,
 *
 * with m and S of the prior. After n observations, with V = V0 + X'X and mu = V^-1 (V0 m + X'y),
 *
 *     s^2 ~ IG(a + n / 2, b + (y'y + m' V0 m - mu' V mu) / 2),   theta | s^2 ~ N(mu, s^2 V^-1),
 *
 * so that theta alone has a Student t distribution. `temper` multiplies n and all three sums of
 * observations. */
#pragma once

#include "sampler/sampler.h"

/* Options of a sampler that can use it. */
#define UNKNOWN_NOISE_KEYS                                                                                   \
  {WORD("noise", "known",                                                                                    \
        "known: the noise of the problem; unknown: its variance is learned, with an inverse gamma prior, "   \
        "and "                                                                                               \
        "the covariance of theta's prior is in units of it"),                                                \
   .words = "known unknown"},                                                                                \
      {REAL("noise_shape", 1e-3, 1e9, "6", "for noise: unknown: shape of the variance's prior")}, {          \
    REAL("noise_scale", 1e-12, 1e12, "6", "for noise: unknown: scale of the variance's prior")               \
  }

typedef struct UnknownNoise UnknownNoise;

/* Returns whether the options say `noise: unknown`; false for a method without that option. */
bool unknown_noise_asked(const Config *options);
/* Returns STATUS_INPUT with one sentence if `noise: unknown` does not fit the likelihood or another option.
 */
Status unknown_noise_check(const Config *options, const Likelihood *likelihood);
/* Creates the posterior of a sampler with a Gaussian prior, in its memory; `lambda` as above. */
Status unknown_noise_create(const Sampler *sampler, const SamplerSetup *setup, double lambda,
                            UnknownNoise **out);
/* Does what SamplerOps.sample does: d normals of each lane's stream, then what one gamma variate takes. */
void unknown_noise_sample(UnknownNoise *self, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks);
/* Does what SamplerOps.moments does. The shape must be above 1 for a covariance; it is added as a fallback
 * of the run if it is not, and s^2 = scale / shape then takes the place of its mean. */
void unknown_noise_moments(UnknownNoise *self, const History *history, double *mean, double *covariance,
                           int64_t *fallbacks);
