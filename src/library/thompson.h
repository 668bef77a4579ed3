/* libthompson: draw from posteriors under rich priors, from a program of your own.
 *
 *     thompson_prior *prior;
 *     thompson_posterior *posterior;
 *     if (thompson_prior_open("prior.nc", &prior)) return puts(thompson_error());
 *     thompson_posterior_new(prior, "localised", "gaussian", "noise=0.5", 1, &posterior);
 *     thompson_observe(posterior, n, x, y);
 *     thompson_draw(posterior, m, theta);
 *
 * Every function that can fail returns a thompson_status, 0 on success; thompson_error() is then a sentence
 * that says what was wrong, in the calling thread. Objects share no state: different ones may be used in
 * different threads at the same time, and so may one prior by several posteriors; one posterior belongs to
 * one thread at a time. Priors are read and written through HDF5, which is called by one thread at a time; a
 * program that calls HDF5 or NetCDF in threads of its own does not do so while it opens or saves a prior
 * here.
 *
 * Arrays are row-major. d entries of theta and of the features x; n observations, m draws, k arms. Draws are
 * the same, byte for byte, as those of the program `thompson` with the same seed, where BLAS runs on one
 * thread (OPENBLAS_NUM_THREADS=1), as it does there; matrices of a few dozen rows are multiplied on one
 * anyway. */
#ifndef LIBRARY_THOMPSON_H
#define LIBRARY_THOMPSON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define THOMPSON_API __attribute__((visibility("default")))
#else
#define THOMPSON_API
#endif

typedef enum {
  THOMPSON_OK = 0,
  THOMPSON_INTERNAL = 1, /* out of memory */
  THOMPSON_INPUT = 3, /* a wrong value, name or option, or a file with wrong content */
  THOMPSON_FILE = 4, /* a file that cannot be read or written */
  THOMPSON_STOPPED = 75 /* ended early, as the caller wished */
} thompson_status;

typedef struct thompson_prior thompson_prior;
typedef struct thompson_posterior thompson_posterior;
typedef struct thompson_agents thompson_agents;

/* What a posterior or agents were made with; the texts live as long as these. */
typedef struct {
  const char *sampler, *likelihood, *options;
  uint64_t seed;
} thompson_arguments;

/* Returns "0.1.0". */
THOMPSON_API const char *thompson_version(void);
/* Returns the sentence of the last failure in this thread; valid until the next one. */
THOMPSON_API const char *thompson_error(void);

/* ---- priors; each is ended by thompson_prior_close, after the posteriors that use it */

/* Opens a prior file: written by thompson_prior_save, by `thompson train`, or by yourself (docs/files.md). */
THOMPSON_API thompson_status thompson_prior_open(const char *path, thompson_prior **out);
/* Fits a prior of this family (gaussian, mixture, diffusion, denoiser) to samples theta[n, d]. `options`
 * are the keys of `thompson train --option`, and the seed: "seed=1,components=5"; NULL or "": the
 * defaults. */
THOMPSON_API thompson_status thompson_prior_from_theta(const double *theta, int n, int d, const char *family,
                                                       const char *options, thompson_prior **out);
/* Fits it unless *stop, which is asked between the steps, becomes other than 0 meanwhile: set in a handler of
 * signals or in another thread. The call returns THOMPSON_STOPPED then, and no prior. */
THOMPSON_API thompson_status thompson_prior_from_theta_until(const double *theta, int n, int d,
                                                             const char *family, const char *options,
                                                             const volatile int *stop, thompson_prior **out);
/* Makes a mixture of c Gaussians, or a single one: weight[c], mean[c, d], covariance[c, d, d]. */
THOMPSON_API thompson_status thompson_prior_from_mixture(int c, int d, const double *weight,
                                                         const double *mean, const double *covariance,
                                                         thompson_prior **out);
/* Returns 0 after computing, for m observations of theta, mean[m, d] and covariance[m, d, d] of the prior
 * times exp(b' theta - theta' M theta / 2), from b[m, d] and M[m, d, d]; anything else: it cannot. */
typedef int thompson_denoiser(void *context, int m, int d, const double *b, const double *precision,
                              double *mean, double *covariance);
/* Makes a prior of a denoiser of your own, for samplers that need nothing else (localised). theta should be
 * on the scale of 1. Where the function fails, or a result is not finite, thompson_fallbacks counts it. Such
 * a prior has no file, and what is made with it cannot be saved. */
THOMPSON_API thompson_status thompson_prior_from_denoiser(int d, thompson_denoiser *denoiser, void *context,
                                                          thompson_prior **out);
/* Returns 0 after computing, for m noisy samples x[m, d] of stage t = 1 .. T, mean[m, d] = E[x_0 | x_t = x],
 * where x_t = sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise; anything else: it cannot. The score is
 * (sqrt(alpha_bar_t) mean - x) / (1 - alpha_bar_t), so that a network of the score or the noise has this. */
typedef int thompson_score_network(void *context, int m, int d, const double *x, int t, double *mean);
/* Makes a prior of a diffusion model of your own, for samplers that walk its chain (diffts, tilted and the
 * like). alpha_bar[stages] falls from below 1 to above 0, and the last of it should be nearly 0. theta should
 * be on the scale of 1. Products with the Jacobian of the mean are central differences, two questions each.
 * Draws for which the function failed, or gave a value that is not finite, are counted by
 * thompson_fallbacks. Such a prior has no file, and what is made with it cannot be saved. */
THOMPSON_API thompson_status thompson_prior_from_score_network(int d, int stages, const double *alpha_bar,
                                                               thompson_score_network *network, void *context,
                                                               thompson_prior **out);
THOMPSON_API thompson_status thompson_prior_save(const thompson_prior *prior, const char *path);
/* Draws m samples from the prior itself: theta[m, d]. */
THOMPSON_API thompson_status thompson_prior_sample(const thompson_prior *prior, int m, uint64_t seed,
                                                   double *theta);
THOMPSON_API int thompson_prior_dimension(const thompson_prior *prior);
/* Returns a sentence where the prior's own check on held-out samples failed, so that draws under it are not
 * to be trusted; NULL where it did not, or where the family has no such check. */
THOMPSON_API const char *thompson_prior_doubt(const thompson_prior *prior);
/* Returns "gaussian", "mixture", "diffusion", "denoiser", or for what is your own "given" (a denoiser)
 * and "score_network". */
THOMPSON_API const char *thompson_prior_family(const thompson_prior *prior);
/* Frees a prior; NULL is allowed. */
THOMPSON_API void thompson_prior_close(thompson_prior *prior);

/* ---- posteriors; each is ended by thompson_posterior_free */

/* Creates a posterior without observations. `sampler` and `likelihood` are names of `thompson list`;
 * `options` are those of the sampler and the rule, and the standard deviation of Gaussian rewards:
 * "noise=0.5,particles=4"; NULL or "" gives the defaults. Without "noise" it is the one that the prior
 * learned from logs, or was given with them, or else 1. A sampler that does not fit the prior or the
 * likelihood is refused. `prior` is not copied and must outlive the posterior. */
THOMPSON_API thompson_status thompson_posterior_new(const thompson_prior *prior, const char *sampler,
                                                    const char *likelihood, const char *options,
                                                    uint64_t seed, thompson_posterior **out);
/* Adds n observations: features x[n, d] and rewards y[n]. A refused call leaves everything as it was. */
THOMPSON_API thompson_status thompson_observe(thompson_posterior *posterior, int n, const double *x,
                                              const double *y);
/* Returns the number of observations so far; and writes them into x[n, d] and y[n]. With the options
 * "memory=filtered" or "memory.keep=100" clicks are forgotten, and there are none. */
THOMPSON_API int thompson_observation_count(const thompson_posterior *posterior);
THOMPSON_API void thompson_observations(const thompson_posterior *posterior, double *x, double *y);
/* Creates another posterior of the same prior, which has observed the same and goes on with the same random
 * numbers: whatever is done with both, their draws are equal. For independent ones give each a seed. */
THOMPSON_API thompson_status thompson_posterior_copy(const thompson_posterior *posterior,
                                                     thompson_posterior **out);
/* Drops the observations. The random numbers go on where they are, so that what follows is independent of
 * what came before. */
THOMPSON_API thompson_status thompson_forget(thompson_posterior *posterior);
/* Multiplies the evidence of all observations so far by the option discount (1 without it) to the power of
 * `rounds`, so that the posterior moves towards the prior; the observations that are asked for are those with
 * that evidence. Refused for samplers and likelihoods that keep more than evidence. */
THOMPSON_API thompson_status thompson_age(thompson_posterior *posterior, int rounds);
/* Makes m draws, theta[m, d]. Call k (of this and of thompson_choose) uses the random numbers of round k -
 * 1, so the first call equals `thompson sample -n m`. */
THOMPSON_API thompson_status thompson_draw(thompson_posterior *posterior, int m, double *theta);
/* Chooses *arm, from 0, among arms[k, d], by the option `rule` (`thompson list rules`): thompson, the
 * default, makes one draw and takes the largest x' theta. bayes_ucb counts the choices since the last
 * thompson_forget and needs to know how many there will be, "rule=bayes_ucb,horizon=200", or a constant
 * "quantile=0.95". */
THOMPSON_API thompson_status thompson_choose(thompson_posterior *posterior, int k, const double *arms,
                                             int *arm);
/* Writes into probability[k] the probabilities by which the next thompson_choose_propensity picks one of
 * arms[k, d]. With rule thompson they are the shares of "propensity_draws=1000" draws in which each arm is
 * the best one, in closed form for two arms under one Gaussian; any other rule is certain of its arm.
 * "floor=0.01" is the least of any arm, for every way to choose: with probability 0.01 k any arm is taken.
 * The random numbers stay where they are. */
THOMPSON_API thompson_status thompson_probabilities(thompson_posterior *posterior, int k, const double *arms,
                                                    double *probability);
/* Picks an arm by these probabilities: *propensity is exactly the probability that *arm was chosen with, for
 * logs from which other policies are to be valued. Takes the place of thompson_choose. */
THOMPSON_API thompson_status thompson_choose_propensity(thompson_posterior *posterior, int k,
                                                        const double *arms, int *arm, double *propensity);
/* Returns the standard deviation of Gaussian rewards that is used. */
THOMPSON_API double thompson_posterior_noise(const thompson_posterior *posterior);
/* Returns the number of numerical fallbacks so far, such as a draw that was not finite, or a call whose draws
 * cannot have reached the posterior (their spread is not that of the posterior), or evidence that is too
 * precise for the digits of the sampler, where draws of the mixture in the place of the prior are used. If it
 * is not 0, look at the draws before you trust them. */
THOMPSON_API int64_t thompson_fallbacks(const thompson_posterior *posterior);
THOMPSON_API void thompson_posterior_arguments(const thompson_posterior *posterior, thompson_arguments *out);
/* Saves the posterior with its prior, its observations and the position of its random numbers, durably: in
 * another file, which is synced and takes the name `path` when it is whole, so that a process or a machine
 * that dies leaves the old file or the new one (docs/files.md). */
THOMPSON_API thompson_status thompson_posterior_save(const thompson_posterior *posterior, const char *path);
/* Opens what was saved, by this version or an earlier one: *out goes on with the same random numbers. *prior
 * is ended by thompson_prior_close after it. A damaged or foreign file is refused. */
THOMPSON_API thompson_status thompson_posterior_open(const char *path, thompson_prior **prior,
                                                     thompson_posterior **out);
/* Computes how surprising the observations are under the prior: the p-value that `thompson sample` prints,
 * small where the prior may be wrong. Needs a prior with a mixture in its place, and at least one
 * observation. */
THOMPSON_API thompson_status thompson_p_value(const thompson_posterior *posterior, double *p_value);
/* Frees a posterior; NULL is allowed. */
THOMPSON_API void thompson_posterior_free(thompson_posterior *posterior);

/* ---- agents: many posteriors of one prior; each set is ended by thompson_agents_free */

/* Creates n agents, numbered from 0, as n posteriors with the same arguments (thompson_posterior_new), each
 * with random numbers of its own; agent 0 is identical to the posterior with that seed. If rewards are
 * Gaussian, an agent stores d (d + 3) / 2 doubles, otherwise its observations. Samplers that carry a state
 * from observation to observation (smc, lmc, vts and others) are refused. */
THOMPSON_API thompson_status thompson_agents_new(const thompson_prior *prior, int n, const char *sampler,
                                                 const char *likelihood, const char *options, uint64_t seed,
                                                 thompson_agents **out);
/* In what follows m agents ids[m] are asked at once, in any order. What happens to an agent does not depend
 * on the others in a call: one that is there twice is served twice, in order, and a call for each gives the
 * same numbers. A refused call leaves everything as it was. */

/* Adds one observation to each: features x[m, d], rewards y[m]. */
THOMPSON_API thompson_status thompson_agents_observe(thompson_agents *agents, int m, const int *ids,
                                                     const double *x, const double *y);
/* Chooses arm[m] as thompson_choose does: among arms[k, d] or, with `apart` not 0, among arms[m, k, d]. */
THOMPSON_API thompson_status thompson_agents_choose(thompson_agents *agents, int m, const int *ids, int k,
                                                    const double *arms, int apart, int *arm);
/* Writes probability[m, k], as thompson_probabilities; and picks arm[m] by them, with propensity[m]. */
THOMPSON_API thompson_status thompson_agents_probabilities(thompson_agents *agents, int m, const int *ids,
                                                           int k, const double *arms, int apart,
                                                           double *probability);
THOMPSON_API thompson_status thompson_agents_choose_propensity(thompson_agents *agents, int m, const int *ids,
                                                               int k, const double *arms, int apart, int *arm,
                                                               double *propensity);
/* Draws theta[m, draws, d]. */
THOMPSON_API thompson_status thompson_agents_draw(thompson_agents *agents, int m, const int *ids, int draws,
                                                  double *theta);
/* Drops the observations of these agents, as thompson_forget does. */
THOMPSON_API thompson_status thompson_agents_forget(thompson_agents *agents, int m, const int *ids);
/* Ages these agents, as thompson_age does; one that is there twice, twice. */
THOMPSON_API thompson_status thompson_agents_age(thompson_agents *agents, int m, const int *ids, int rounds);
/* Learns a prior from what all agents have observed, each of them a task, by expectation maximisation (Kveton
 * et al. 2021 learn one Gaussian in this way): a mixture, of which one component has the mean and the
 * variances of the present prior. All agents go on with it, and nothing that they observed is lost. *out is
 * the caller's, who ends it by thompson_prior_close after the agents, as the prior before it. Errors:
 * THOMPSON_INPUT with fewer than four agents that have observed something, with memory = filtered or keep,
 * where the present prior has no mixture, or the sampler cannot take one; everything then stays as it was. */
THOMPSON_API thompson_status thompson_agents_learn_prior(thompson_agents *agents, thompson_prior **out);
/* Adds n agents, numbered from thompson_agents_count on. */
THOMPSON_API thompson_status thompson_agents_add(thompson_agents *agents, int n);
THOMPSON_API int thompson_agents_count(const thompson_agents *agents);
/* Returns, for all agents together, what thompson_posterior_noise and thompson_fallbacks return for one. */
THOMPSON_API double thompson_agents_noise(const thompson_agents *agents);
THOMPSON_API int64_t thompson_agents_fallbacks(const thompson_agents *agents);
/* Does for agents what thompson_posterior_arguments, _save and _open do for a posterior. */
THOMPSON_API void thompson_agents_arguments(const thompson_agents *agents, thompson_arguments *out);
THOMPSON_API thompson_status thompson_agents_save(const thompson_agents *agents, const char *path);
THOMPSON_API thompson_status thompson_agents_open(const char *path, thompson_prior **prior,
                                                  thompson_agents **out);
/* Frees agents; NULL is allowed. */
THOMPSON_API void thompson_agents_free(thompson_agents *agents);

#ifdef __cplusplus
}
#endif

#endif
