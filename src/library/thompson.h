/* libthompson: draws from posteriors under rich priors, in your own program.
 *
 *     thompson_prior *prior;
 *     thompson_posterior *posterior;
 *     if (thompson_prior_open("prior.nc", &prior)) return puts(thompson_error());
 *     thompson_posterior_new(prior, "localised", "gaussian", "noise=0.5", 1, &posterior);
 *     thompson_observe(posterior, n, x, y);
 *     thompson_draw(posterior, m, theta);
 *
 * Every function that can fail returns a thompson_status, 0 on success; after a failure, thompson_error()
 * returns a sentence that says what was wrong in the calling thread. Objects share no state: different
 * threads may use different objects at the same time, and posteriors in different threads may share one
 * prior, but only one thread at a time may use a posterior. Threads whose draws need the networks, the
 * denoiser or the reverse chain of a shared prior take turns: to draw at the same time, open the prior once
 * per thread. Files are read and written through HDF5, which is called by one thread at a time; a program
 * that calls HDF5 or NetCDF in other threads must not do so while it opens or saves something here.
 *
 * Arrays are row-major. d is the length of theta and of the features x; there are n observations, m draws
 * and k arms. Draws are the same, byte for byte, as those of the program `thompson` with the same seed,
 * provided that BLAS runs on one thread (OPENBLAS_NUM_THREADS=1), as it does there; matrices of a few
 * dozen rows are multiplied on one thread anyway. */
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
  THOMPSON_STOPPED = 75 /* stopped early at the caller's request */
} thompson_status;

typedef struct thompson_prior thompson_prior;
typedef struct thompson_posterior thompson_posterior;
typedef struct thompson_agents thompson_agents;

/* What a posterior or a set of agents was created with; the texts live as long as it does. */
typedef struct {
  const char *sampler, *likelihood, *options;
  uint64_t seed;
} thompson_arguments;

/* Returns "0.1.0". */
THOMPSON_API const char *thompson_version(void);
/* Returns the sentence about the last failure in this thread; it is valid until the next one. */
THOMPSON_API const char *thompson_error(void);

/* ---- priors; close each with thompson_prior_close. Posteriors keep their prior, so that the order in which
 * they are freed and it is closed does not matter. */

/* Opens a prior file that was written by thompson_prior_save, by `thompson train`, or by yourself
 * (docs/files.md). */
THOMPSON_API thompson_status thompson_prior_open(const char *path, thompson_prior **out);
/* Fits a prior of this family (gaussian, mixture, diffusion, denoiser) to samples theta[n, d]. `options`
 * takes the keys of `thompson train --option` and the seed: "seed=1,components=5"; NULL or "" gives the
 * defaults. */
THOMPSON_API thompson_status thompson_prior_from_theta(const double *theta, int n, int d, const char *family,
                                                       const char *options, thompson_prior **out);
/* Fits a prior likewise, but can be stopped: between steps it reads *stop, and once a signal handler or
 * another thread has set that to a value other than 0, the call returns THOMPSON_STOPPED, and no prior. */
THOMPSON_API thompson_status thompson_prior_from_theta_until(const double *theta, int n, int d,
                                                             const char *family, const char *options,
                                                             const volatile int *stop, thompson_prior **out);
/* Makes a prior that is a mixture of c >= 1 Gaussians: weight[c], mean[c, d], covariance[c, d, d]. */
THOMPSON_API thompson_status thompson_prior_from_mixture(int c, int d, const double *weight,
                                                         const double *mean, const double *covariance,
                                                         thompson_prior **out);
/* Computes, for m observations of theta, mean[m, d] and covariance[m, d, d] of the prior times exp(b' theta -
 * theta' M theta / 2), from b[m, d] and M = precision[m, d, d]. Returns 0 on success, and any other value if
 * it cannot. */
typedef int thompson_denoiser(void *context, int m, int d, const double *b, const double *precision,
                              double *mean, double *covariance);
/* Makes a prior from your own denoiser, for samplers that need nothing else (localised). theta should be on
 * the scale of 1. thompson_fallbacks counts the draws for which the function failed or gave a value that is
 * not finite. There are no files for such a prior, and nothing that is created with it can be saved. */
THOMPSON_API thompson_status thompson_prior_from_denoiser(int d, thompson_denoiser *denoiser, void *context,
                                                          thompson_prior **out);
/* Computes, for m noisy samples x[m, d] at stage t = 1 .. T, mean[m, d] = E[x_0 | x_t = x], where x_t =
 * sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise. Returns 0 on success, and any other value if it
 * cannot. The score is (sqrt(alpha_bar_t) mean - x) / (1 - alpha_bar_t), so a network that learned the score
 * or the noise gives the mean as well. */
typedef int thompson_score_network(void *context, int m, int d, const double *x, int t, double *mean);
/* Makes a prior from your own diffusion model, for samplers that walk its chain (diffts, tilted and the
 * like). alpha_bar[stages] falls from below 1 to above 0, and its last value should be nearly 0. theta should
 * be on the scale of 1. Products with the Jacobian of the mean are central differences, with two evaluations
 * each. thompson_fallbacks counts the draws for which the function failed or gave a value that is not finite.
 * There are no files for such a prior, and nothing that is created with it can be saved. */
THOMPSON_API thompson_status thompson_prior_from_score_network(int d, int stages, const double *alpha_bar,
                                                               thompson_score_network *network, void *context,
                                                               thompson_prior **out);
/* Computes, for m noisy samples x[m, d], mean[m, d] = E[theta | theta + sigma z = x], with z standard normal.
 * Returns 0 on success, and any other value if it cannot. */
typedef int thompson_oracle(void *context, int m, int d, const double *x, double sigma, double *mean);
/* Computes product[m, d]: the Jacobian of the mean at each row of x times that row of v[m, d]; returns
 * likewise. */
typedef int thompson_oracle_product(void *context, int m, int d, const double *x, double sigma,
                                    const double *v, double *product);
/* Makes a prior from a denoising oracle, for samplers that walk a reverse chain (twisted, joint, diffts and
 * the like), whose noises lie between sigma_min and sigma_max, 0 < sigma_min < sigma_max; it is asked at once
 * about draws of the prior itself, which tell where theta lies. `product` may be NULL: products are then
 * central differences. thompson_fallbacks counts the draws for which a function failed or gave a value that
 * is not finite. There are no files for such a prior, and nothing that is created with it can be saved. */
THOMPSON_API thompson_status thompson_prior_from_oracle(int d, double sigma_min, double sigma_max,
                                                        thompson_oracle *oracle,
                                                        thompson_oracle_product *product, void *context,
                                                        thompson_prior **out);
THOMPSON_API thompson_status thompson_prior_save(const thompson_prior *prior, const char *path);
/* Draws m samples from the prior itself: theta[m, d]. */
THOMPSON_API thompson_status thompson_prior_sample(const thompson_prior *prior, int m, uint64_t seed,
                                                   double *theta);
THOMPSON_API int thompson_prior_dimension(const thompson_prior *prior);
/* Returns a sentence if the prior failed its own check on held-out samples, so that draws under it cannot be
 * trusted; NULL if it did not, or if the family has no such check. */
THOMPSON_API const char *thompson_prior_doubt(const thompson_prior *prior);
/* Returns the name of the likelihood of the rewards in the logs that the prior was learned from, which its
 * posteriors should have too; NULL if there were no logs, or the prior file does not say. */
THOMPSON_API const char *thompson_prior_rewards(const thompson_prior *prior);
/* Returns "gaussian", "mixture", "diffusion" or "denoiser"; for your own models, "given" (a denoiser),
 * "score_network" or "oracle". */
THOMPSON_API const char *thompson_prior_family(const thompson_prior *prior);
/* Frees a prior; NULL is allowed. */
THOMPSON_API void thompson_prior_close(thompson_prior *prior);

/* ---- posteriors; free each with thompson_posterior_free */

/* Creates a posterior without observations. `sampler` and `likelihood` are names from `thompson list`.
 * `options` takes the options of the sampler and the rule, the standard deviation of Gaussian rewards, and
 * the discount of thompson_age: "noise=0.5,particles=4"; NULL or "" gives the defaults. The default of
 * "noise" is the value that the prior learned from logs, or was given with them, and otherwise 1. A sampler
 * that does not fit the prior or the likelihood is refused. `prior` is not copied. */
THOMPSON_API thompson_status thompson_posterior_new(const thompson_prior *prior, const char *sampler,
                                                    const char *likelihood, const char *options,
                                                    uint64_t seed, thompson_posterior **out);
/* Computes value[m], the logarithm of your likelihood at theta[m, d], up to a constant; -INFINITY where theta
 * is impossible. Returns 0 on success, and any other value if it cannot. */
typedef int thompson_log_density(void *context, int m, int d, const double *theta, double *value);
/* Computes its gradient[m, d] there; returns likewise. */
typedef int thompson_log_density_gradient(void *context, int m, int d, const double *theta, double *gradient);
/* A likelihood of your own: any forward map and noise, with all observations inside the functions. */
typedef struct {
  thompson_log_density *log_density;
  thompson_log_density_gradient *gradient; /* NULL: for samplers that need none */
  void *context;
} thompson_likelihood_functions;
typedef struct thompson_likelihood thompson_likelihood;
/* Makes such a likelihood; free it with thompson_likelihood_free, at any time after the last posterior was
 * made from it, while `context` must outlive these posteriors. m is at most 4096. */
THOMPSON_API thompson_status
thompson_likelihood_from_functions(const thompson_likelihood_functions *functions, thompson_likelihood **out);
THOMPSON_API void thompson_likelihood_free(thompson_likelihood *likelihood);
/* Creates a posterior under it, with all that it will ever know: for thompson_draw and thompson_log_evidence,
 * with smc_tempered, which needs values only, or twisted, mala or dps, which need the gradient (dps also
 * takes -2 log_density for a sum of squares, so that it must not be above 0). The call in which a function
 * fails, or gives NAN or INFINITY, returns THOMPSON_INPUT, and the posterior stays as it was. There are no
 * observations, arms or files. Otherwise as thompson_posterior_new. */
THOMPSON_API thompson_status thompson_posterior_from_likelihood(const thompson_prior *prior,
                                                                const char *sampler,
                                                                const thompson_likelihood *likelihood,
                                                                const char *options, uint64_t seed,
                                                                thompson_posterior **out);
/* Adds n observations: features x[n, d] and rewards y[n]. A call that is refused changes nothing. Refused are
 * rewards that the likelihood does not know, and values so large that what is kept of them could not be
 * saved: above 3.2e22 times the noise if rewards are Gaussian, else above 1e45, and with the option "memory"
 * those that its Gaussians cannot represent. */
THOMPSON_API thompson_status thompson_observe(thompson_posterior *posterior, int n, const double *x,
                                              const double *y);
/* Returns the number of observations so far; thompson_observations writes them to x[n, d] and y[n]. With the
 * option "memory=filtered" or "memory.keep=100" clicks are forgotten, and there are none. */
THOMPSON_API int thompson_observation_count(const thompson_posterior *posterior);
THOMPSON_API void thompson_observations(const thompson_posterior *posterior, double *x, double *y);
/* Creates a copy of a posterior, with the same prior and observations, which continues with the same random
 * numbers: the same calls give equal draws from both. For independent posteriors, use different seeds. */
THOMPSON_API thompson_status thompson_posterior_copy(const thompson_posterior *posterior,
                                                     thompson_posterior **out);
/* Drops all observations. The random numbers continue from where they are, so that what follows is
 * independent of what came before. */
THOMPSON_API thompson_status thompson_forget(thompson_posterior *posterior);
/* Multiplies the evidence of all observations so far by the option `discount` (1 by default) to the power of
 * `rounds`, so that the posterior moves towards the prior; thompson_observations then returns observations
 * with that evidence. Refused for samplers and likelihoods that keep more than evidence. */
THOMPSON_API thompson_status thompson_age(thompson_posterior *posterior, int rounds);
/* Makes m draws, theta[m, d]; 100 and more are made together, as `thompson sample` makes them. The i-th call
 * of this function or thompson_choose uses the random numbers of round i - 1, so the first call gives the
 * same draws as `thompson sample -n m`. */
THOMPSON_API thompson_status thompson_draw(thompson_posterior *posterior, int m, double *theta);
/* Chooses *arm (from 0) among arms[k, d] by the option `rule` (`thompson list rules`). The default, thompson,
 * makes one draw and takes the arm with the largest x' theta. bayes_ucb counts the choices since the last
 * thompson_forget, and needs to know how many there will be, "rule=bayes_ucb,horizon=200", or a constant
 * "quantile=0.95". */
THOMPSON_API thompson_status thompson_choose(thompson_posterior *posterior, int k, const double *arms,
                                             int *arm);
/* Writes to probability[k] the probabilities with which the next thompson_choose_propensity picks each of
 * arms[k, d]. With rule thompson they are the shares of "propensity_draws=1000" draws in which each arm is
 * the best one, in closed form for two arms under one Gaussian; any other rule is certain of its arm.
 * "floor=0.01" is the least probability of any arm, for all functions that choose: with probability 0.01 k,
 * the arm is drawn uniformly. The random numbers do not advance. */
THOMPSON_API thompson_status thompson_probabilities(thompson_posterior *posterior, int k, const double *arms,
                                                    double *probability);
/* Picks an arm with these probabilities; use it in place of thompson_choose. *propensity is exactly the
 * probability with which *arm was chosen, for logs from which other policies are to be evaluated. */
THOMPSON_API thompson_status thompson_choose_propensity(thompson_posterior *posterior, int k,
                                                        const double *arms, int *arm, double *propensity);
/* Computes what is believed of the mean reward of each of arms[k, d], for an explanation or to watch a
 * service: mean[k], and the standard deviation sd[k] of the belief, from "propensity_draws=1000" draws, so
 * that their own error is about 3% of sd. The random numbers do not advance. */
THOMPSON_API thompson_status thompson_score(thompson_posterior *posterior, int k, const double *arms,
                                            double *mean, double *sd);
/* Returns the standard deviation of Gaussian rewards in use. */
THOMPSON_API double thompson_posterior_noise(const thompson_posterior *posterior);
/* Returns the number of numerical fallbacks so far, such as a draw that was not finite, a call whose draws
 * cannot have reached the posterior (their spread is not that of the posterior), or a draw under a mixture in
 * place of the prior, because the evidence is too precise for the sampler's arithmetic. If it is not 0, look
 * at the draws before you trust them. */
THOMPSON_API int64_t thompson_fallbacks(const thompson_posterior *posterior);
THOMPSON_API void thompson_posterior_arguments(const thompson_posterior *posterior, thompson_arguments *out);
/* Saves the posterior with its prior, its observations and the position of its random numbers
 * (docs/files.md), durably: the file is written under another name, synced, and renamed to `path` when it is
 * complete, so that a crash of the process or the machine leaves either the old file or the new one. */
THOMPSON_API thompson_status thompson_posterior_save(const thompson_posterior *posterior, const char *path);
/* Opens a posterior that was saved by this version or an earlier one; *out continues with the same random
 * numbers. Close *prior with thompson_prior_close. A damaged or foreign file is refused. */
THOMPSON_API thompson_status thompson_posterior_open(const char *path, thompson_prior **prior,
                                                     thompson_posterior **out);
/* Computes how surprising the observations are under the prior: the p-value that `thompson sample` prints,
 * which is small if the prior may be wrong. Needs at least one observation, and a prior that is a mixture or
 * has one to use in its place. Refused with the option "memory", which forgets observations. */
THOMPSON_API thompson_status thompson_p_value(const thompson_posterior *posterior, double *p_value);
/* Computes the log evidence of the observations, log p(y | x) under the prior, and its standard error: in
 * closed form or from 1024 draws, or a cloud, of its own, so that the next draws stay the same. Refused for
 * samplers that do not know it (localised, twisted and smc_tempered do, and with Gaussian rewards ts,
 * tuned_ts, mixts and exact), and with the option "memory". */
THOMPSON_API thompson_status thompson_log_evidence(thompson_posterior *posterior, double *value,
                                                   double *error);
/* Frees a posterior; NULL is allowed. */
THOMPSON_API void thompson_posterior_free(thompson_posterior *posterior);

/* ---- agents: many posteriors with the same prior; free each set with thompson_agents_free */

/* Creates n agents, numbered from 0: n posteriors with the same arguments (thompson_posterior_new), but each
 * with different random numbers; agent 0 is identical to the posterior with that seed. If rewards are
 * Gaussian, an agent stores d (d + 3) / 2 + 1 doubles, otherwise its observations. Samplers that carry a
 * state from observation to observation (smc, lmc, vts and others) are refused. */
THOMPSON_API thompson_status thompson_agents_new(const thompson_prior *prior, int n, const char *sampler,
                                                 const char *likelihood, const char *options, uint64_t seed,
                                                 thompson_agents **out);
/* The functions below serve m agents ids[m] at once, in any order. What happens to an agent does not depend
 * on the other agents in a call: a separate call for each gives the same numbers, and an agent that is listed
 * twice is served twice, in order. A call that is refused changes nothing. */

/* Adds one observation to each agent: features x[m, d], rewards y[m]. */
THOMPSON_API thompson_status thompson_agents_observe(thompson_agents *agents, int m, const int *ids,
                                                     const double *x, const double *y);
/* Chooses arm[m] as thompson_choose does: among arms[k, d] or, if `own_arms` is not 0, among arms[m, k, d].
 */
THOMPSON_API thompson_status thompson_agents_choose(thompson_agents *agents, int m, const int *ids, int k,
                                                    const double *arms, int own_arms, int *arm);
/* Writes probability[m, k] as thompson_probabilities does; thompson_agents_choose_propensity picks arm[m]
 * with these probabilities, and writes that of each to propensity[m]. */
THOMPSON_API thompson_status thompson_agents_probabilities(thompson_agents *agents, int m, const int *ids,
                                                           int k, const double *arms, int own_arms,
                                                           double *probability);
THOMPSON_API thompson_status thompson_agents_choose_propensity(thompson_agents *agents, int m, const int *ids,
                                                               int k, const double *arms, int own_arms,
                                                               int *arm, double *propensity);
/* Arms of m agents, which may come and go. */
typedef struct {
  int k; /* columns of `available`: all arms that anybody has */
  const double *features; /* [k, d], or [m, k, d] */
  int own; /* not 0: each agent has features of its own */
  const unsigned char *available; /* [m, k], 0 for arms that an agent does not have now; NULL: all are */
} thompson_arms;
/* Chooses as the functions above do, among the arms that are available, at least one for each agent. The
 * others are not chosen, have probability 0 and scores NAN, and their features are not read; random numbers
 * and `floor` are those of a call that lists only the available arms. propensity[m] may be NULL. */
THOMPSON_API thompson_status thompson_agents_choose_among(thompson_agents *agents, int m, const int *ids,
                                                          const thompson_arms *arms, int *arm,
                                                          double *propensity);
/* Writes the probability[m, k] of these choices. */
THOMPSON_API thompson_status thompson_agents_probabilities_among(thompson_agents *agents, int m,
                                                                 const int *ids, const thompson_arms *arms,
                                                                 double *probability);
/* Writes mean[m, k] and sd[m, k] as thompson_score does. */
THOMPSON_API thompson_status thompson_agents_score(thompson_agents *agents, int m, const int *ids,
                                                   const thompson_arms *arms, double *mean, double *sd);
/* Writes p_value[m] as thompson_p_value does; agents that have observed nothing are refused, and so is the
 * option `discount`. */
THOMPSON_API thompson_status thompson_agents_p_value(thompson_agents *agents, int m, const int *ids,
                                                     double *p_value);
/* Makes `draws` draws per agent: theta[m, draws, d]. */
THOMPSON_API thompson_status thompson_agents_draw(thompson_agents *agents, int m, const int *ids, int draws,
                                                  double *theta);
/* Drops the observations of these agents, as thompson_forget does. */
THOMPSON_API thompson_status thompson_agents_forget(thompson_agents *agents, int m, const int *ids);
/* Ages these agents as thompson_age does; an agent that is listed twice ages twice. */
THOMPSON_API thompson_status thompson_agents_age(thompson_agents *agents, int m, const int *ids, int rounds);
/* Learns a prior from what all agents have observed, each agent being a task, by expectation maximisation
 * (Kveton et al. 2021 learn one Gaussian in this way): a mixture, one component of which has the mean and the
 * variances of the present prior. All agents continue with it, and nothing that they observed is lost. *out
 * belongs to the caller, who closes it with thompson_prior_close, like the prior before it. Errors:
 * THOMPSON_INPUT if fewer than four agents have observed something, if the present prior has no mixture, or
 * if the sampler cannot use one; everything then stays as it was. */
THOMPSON_API thompson_status thompson_agents_learn_prior(thompson_agents *agents, thompson_prior **out);
/* Does the same, but can be stopped as thompson_prior_from_theta_until can; everything then stays as it was.
 */
THOMPSON_API thompson_status thompson_agents_learn_prior_until(thompson_agents *agents,
                                                               const volatile int *stop,
                                                               thompson_prior **out);
/* Adds n agents, numbered from thompson_agents_count upwards. */
THOMPSON_API thompson_status thompson_agents_add(thompson_agents *agents, int n);
THOMPSON_API int thompson_agents_count(const thompson_agents *agents);
/* Keeps a copy of a text of yours with the agents, such as your names for them, in files too; NULL or
 * "" removes it. thompson_agents_note returns it, NULL if there is none; it lives until the next change. */
THOMPSON_API thompson_status thompson_agents_set_note(thompson_agents *agents, const char *note);
THOMPSON_API const char *thompson_agents_note(const thompson_agents *agents);
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
