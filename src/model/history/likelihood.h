/* Likelihoods: how a reward y depends on u = phi' theta (DiffTS paper, Assumption 2), or on the output u of a
 * network whose input is phi and whose weights are theta (VITS paper, Section 2). One constant descriptor for
 * each family; an instance adds the noise and the network.
 *
 * The functions of n observations take arrays of n numbers and are written for vector instructions. No
 * function raises a floating-point exception while |u| <= 1000. */
#pragma once

#include "core/rng.h"
#include "core/status.h"
#include "model/network/network.h"

#include <math.h>
#include <stdbool.h>

typedef struct Likelihood Likelihood;

typedef struct {
  const char *name, *summary, *reference;
  bool quadratic; /* log p(y | u) is quadratic in u; for theta see likelihood_is_conjugate */
  /* M with |third derivative of log p(y | u)| <= M |second derivative| everywhere (generalised
   * self-concordance, Bach 2010): how fast the curvature can change, on which the safeguard and the stopping
   * rule of IRLS rest (model/history/irls.h). INFINITY: log p need not be concave, and only its values and
   * slopes can be used (likelihood_is_concave). */
  double self_concordance;
  bool noisy; /* rewards have the parameter sigma */
  /* Rewards are 0 or 1: a single one tells the mean of theta but nothing about its spread. */
  bool binary;
  const char *rewards; /* what y can be, in words */
  bool (*admits)(double y);
  /* mean[n]: the mean rewards g(u). */
  void (*mean)(const Likelihood *likelihood, int n, const double *u, double *mean);
  /* OPTIONAL. Returns E g(u) for u ~ N(center, deviation^2), if there is a better way than a sum over points
   * of the Gaussian. */
  double (*average)(const Likelihood *likelihood, double center, double deviation);
  /* log p(y | u), with all constants. */
  double (*log_likelihood)(const Likelihood *likelihood, double y, double u);
  /* First and second derivative of log p(y | u) with respect to u: slope[n], curvature[n] <= 0. The latter
   * is something like it where log p is not concave. */
  void (*derivatives)(const Likelihood *likelihood, int n, const double *y, const double *u, double *slope,
                      double *curvature);
  /* deviance[n] >= 0: twice the difference between the largest log p(y | u) over u and the one at u. Here and
   * in `derivatives`, y can be the mean of several rewards (history.h), as log p is linear in y but for terms
   * without u. */
  void (*deviance)(const Likelihood *likelihood, int n, const double *y, const double *u, double *deviance);
  /* Draws a reward from one uniform and one normal number of the round's reward stream, so that every arm
   * would meet the same noise. */
  double (*sample)(const Likelihood *likelihood, double u, double uniform, double normal);
} LikelihoodOps;

/* Clicks, for which expectation propagation and passes have shorter ways; counts; and, not in the registry,
 * squares with noise (likelihood_squared.c). */
extern const LikelihoodOps likelihood_logistic, likelihood_poisson, likelihood_squared;

/* A likelihood that is known by a function of theta alone, whatever its forward map and its noise. */
typedef struct {
  /* Computes, at theta[d, n], lane last, n <= likelihood_most_points(d), value[n]: the logarithm of the
   * likelihood of what run `run` has observed, up to a constant of the run; unless it is NULL also its
   * gradient[d, n] there. -INFINITY stands for a theta that is impossible, whose gradient is 0. */
  void (*density)(void *context, int run, int n, const double *theta, double *value, double *gradient);
  void *context;
  bool has_gradient; /* otherwise `gradient` must be NULL */
} LikelihoodFunctions;

struct Likelihood {
  const LikelihoodOps *ops;
  double noise; /* sigma, standard deviation of Gaussian rewards */
  double log_exposure; /* of counts: their rate is e^(log_exposure + u) */
  NetworkShape network; /* with one output u; no layers: u = phi' theta */
  const LikelihoodFunctions *functions; /* not owned; NULL: `ops` says how y depends on u */
};

/* Returns the most points that such a function is asked about at once. */
static inline int likelihood_most_points(int d) {
  enum { ENTRIES = 1 << 20, LEAST = 64, MOST = 4096 };
  const int fit = ENTRIES / d;
  return fit > MOST ? MOST : fit > LEAST ? fit : LEAST;
}
static inline bool likelihood_has_functions(const Likelihood *likelihood) { return likelihood->functions; }
static inline bool likelihood_has_network(const Likelihood *likelihood) {
  return likelihood->network.layers > 0;
}
/* Returns whether log p(y | u) is quadratic in theta, so that the evidence is a precision and a vector
 * (history.h). */
static inline bool likelihood_is_conjugate(const Likelihood *likelihood) {
  return likelihood->ops->quadratic && !likelihood_has_network(likelihood);
}
/* Returns n if a history keeps observations as rows, and 0 if it keeps the evidence: of n observations the
 * number of rows, of n lanes those that need room for a Gaussian in the likelihood's place (irls.h). */
static inline int likelihood_rows(const Likelihood *likelihood, int n) {
  return likelihood_is_conjugate(likelihood) ? 0 : n;
}
/* Returns the number of entries of the evidence that a history keeps for each run: 0 if it keeps rows. */
static inline int likelihood_evidence(const Likelihood *likelihood, int d) {
  return likelihood_is_conjugate(likelihood) ? d * d + d : 0;
}
/* Returns whether rewards have the parameter sigma, as Gaussian ones do. */
static inline bool likelihood_has_noise(const Likelihood *likelihood) { return likelihood->ops->noisy; }
/* Returns whether log p is concave in u, as approximations by a Gaussian at the mode need. Otherwise samplers
 * can only use its values and their gradient (SamplerFunctions). */
static inline bool likelihood_is_concave(const Likelihood *likelihood) {
  return likelihood->ops->self_concordance < INFINITY;
}
/* Returns whether the log likelihood has a gradient. */
static inline bool likelihood_has_gradient(const Likelihood *likelihood) {
  return !likelihood->functions || likelihood->functions->has_gradient;
}
/* Returns the standard deviation of the rewards in units of u: sigma, or 1 where there is no such parameter
 * (the root of the dispersion; McCullagh and Nelder 1989, Section 2.2) or it has other units. */
static inline double likelihood_noise(const Likelihood *likelihood) {
  return likelihood_has_noise(likelihood) && likelihood_is_concave(likelihood) ? likelihood->noise : 1;
}
/* Returns whether rewards are counts, whose rate log_exposure raises. */
static inline bool likelihood_has_exposure(const Likelihood *likelihood) {
  return likelihood->ops == &likelihood_poisson;
}
/* Returns whether the mean reward is phi' theta itself, so that its average is that at the mean of theta. */
static inline bool likelihood_is_linear(const Likelihood *likelihood) {
  return likelihood_is_conjugate(likelihood);
}
/* Computes average[n], the mean reward E g(u) under u ~ N(center, deviation^2), with a relative error below
 * 1e-9. `average` may be `center` or `deviation`. */
void likelihood_average(const Likelihood *likelihood, int n, const double *center, const double *deviation,
                        double *average);
/* Returns the largest log p(y | u) over u, which a deviance leaves out. */
double likelihood_best(const Likelihood *likelihood, double y);
/* Returns the number of entries of theta if phi has d. */
static inline int likelihood_parameters(const Likelihood *likelihood, int d) {
  return likelihood_has_network(likelihood) ? (int)network_parameters(&likelihood->network) : d;
}

/* The family of likelihoods with functions, which has none of the functions above; not in the registry. */
extern const LikelihoodOps likelihood_functions;

const LikelihoodOps *likelihood_family(int index); /* registry; NULL after the last */
const LikelihoodOps *likelihood_find(const char *name);
const char *likelihood_name(int index);
