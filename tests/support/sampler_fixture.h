/* Shared by the sampler tests: priors, linear-Gaussian data, draws, and the exact posterior by formulas that
 * the program does not use (in the space of observations, with a plain dense inverse). */
#pragma once

#include "core/arena.h"
#include "harness.h"

#include "core/status.h"
#include "sampler/sampler.h"

#include <stdlib.h>
#include <string.h>

enum { FIXTURE_SEED = 20240517, FIXTURE_DIMENSION = 8, FIXTURE_OBSERVATIONS = 8 };

/* Returns the random numbers of a test for this run and round. */
Rng fixture_rng(uint32_t run, uint32_t round);

/* Returns zeros; the caller frees them. */
void *fixture_new(size_t count, size_t size);

/* ---- dense algebra */

/* Computes inverse[n, n] of a[n, n] by Gauss-Jordan elimination with pivoting; returns log |det a|. */
double fixture_invert(int n, const double *a, double *inverse);

/* ---- data */

/* Linear-Gaussian data of one run: y = phi' theta + noise, with some theta. */
typedef struct {
  int d, n;
  double noise;
  double phi[FIXTURE_OBSERVATIONS][FIXTURE_DIMENSION], y[FIXTURE_OBSERVATIONS];
} FixtureData;

/* Returns the data of run `run`, which do not depend on how many runs there are. */
FixtureData fixture_data(int d, int n, double noise, uint32_t run);

/* Returns Gaussian rewards of this noise. */
Likelihood fixture_likelihood(double noise);

/* Returns a reward that the likelihood admits: y if it does, else the median at u = y, which is kept
 * small. */
double fixture_reward(const Likelihood *likelihood, double y);

/* Returns runs first_run .. first_run + runs - 1 of fixture_data as one block. */
History fixture_history(Arena *memory, int d, int runs, uint32_t first_run, int n,
                        const Likelihood *likelihood);

/* ---- priors */

/* Returns settings of a short training. */
PriorFit fixture_fit(int stages, double alpha, LastStage last_stage);

/* Returns a mixture with correlated covariances, unequal weights and means of size `spread`. */
Mixture fixture_mixture(Arena *memory, int d, int components, double spread);

/* Returns 1/2 N(0, [1, 0.99; 0.99, 1]) + 1/2 N(0, [1, -0.9; -0.9, 1]): the prior `cross`. */
Mixture fixture_cross(Arena *memory);

/* Returns the law of stage t of the chain for theta from the mixture, by its definition: z = (theta - shift)
 * / scale, then sqrt(abar) z + sqrt(1 - abar) noise. */
Mixture fixture_noised(Arena *memory, const Mixture *mixture, const Chain *chain, int t);

/* Fits a prior of the family to samples of a mixture in R^d, with a chain of either schedule. */
Prior fixture_fitted_prior(Arena *memory, const PriorOps *family, int d, bool log_snr);

/* Returns a prior with that mixture and its exact chain. */
Prior fixture_exact_prior(Arena *memory, const Mixture *mixture, const PriorFit *fit);

/* ---- exact posterior of a mixture prior */

typedef struct {
  double weight[4], mean[4][FIXTURE_DIMENSION], covariance[4][FIXTURE_DIMENSION * FIXTURE_DIMENSION];
  double total_mean[FIXTURE_DIMENSION], total_covariance[FIXTURE_DIMENSION * FIXTURE_DIMENSION];
} FixturePosterior;

/* Conditions N(mu, Sigma) on the data, by the gain Sigma Phi' (Phi Sigma Phi' + sigma^2 I)^-1; returns the
 * log density of y. */
double fixture_condition(const FixtureData *data, const double *mu, const double *sigma, double *mean,
                         double *covariance);

/* Returns the posterior of a mixture of at most four components. */
FixturePosterior fixture_posterior(const Mixture *prior, const FixtureData *data);

/* Computes theta[d], the draw from `components` Gaussians that a uniform number and d normal ones of the
 * stream give (mixture_posterior.c): the component by inverse cumulative weights, then mean + L^-T z with L
 * L' the precision. Returns the component, or -1 when the uniform is within 1e-6 of a boundary. */
int fixture_component_draw(int d, int components, const FixturePosterior *posterior, Rng rng, double *theta);

/* ---- draws */

/* Returns theta[d, runs * draws] of a fresh sampler with default options or "key=value" sets; fallbacks[runs]
 * may be NULL. The caller frees it. */
double *fixture_draw(const SamplerOps *method, const Prior *prior, const History *history, uint32_t first_run,
                     int draws, int set_count, const char *const *sets, int64_t *fallbacks);

/* Computes sampler_moments of a fresh sampler, from this number of draws where they are not in closed form:
 * mean[d, runs] and covariance[d, d, runs]. Adds numerical fallbacks to fallbacks[runs]. */
void fixture_moments(const SamplerOps *method, const Prior *prior, const History *history, int draws,
                     int set_count, const char *const *sets, double *mean, double *covariance,
                     int64_t *fallbacks);

/* Checks that `method` with the option `set` is refused for this number of draws, with a sentence that
 * contains `part`. */
void fixture_refused(const char *method, const Prior *prior, const Likelihood *likelihood, int runs,
                     int draws, const char *set, const char *part);

/* Checks that the draws of one run have this mean and covariance, within `deviations` standard errors
 * (estimated from the draws). */
void fixture_check_moments(int d, int runs, int draws, int run, const double *theta, const double *mean,
                           const double *covariance, double deviations);

/* Checks a Gaussian prior with its exact chain: mean and covariance are those of the exact posterior given
 * these numbers of observations (0: those of the prior), within 5 standard errors, for any number of stages
 * and both schedules. */
void fixture_check_gaussian_prior(const SamplerOps *method, int draws, int set_count, const char *const *sets,
                                  int count, const int *observations);
