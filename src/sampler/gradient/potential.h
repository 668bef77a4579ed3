/* The potential U of VITS, Langevin and their rivals, whose target is exp(-U) (VITS paper, Section 2;
 * equations 14 and 15 for the linear model).
 *
 * With `eta: auto` the target is the posterior: U = -lambda log p(theta) - log likelihood. A number is the
 * inverse temperature eta of the VITS paper: U = eta (lambda (-log p(theta)) + loss), where the loss is sum
 * (y - phi' theta)^2 / 2 for Gaussian rewards, not divided by their variance, and minus the log likelihood
 * for all others. So under the prior N(0, I) the linear target has precision eta (lambda I + X'X). In both
 * cases `temper` multiplies the log likelihood, and so the loss.
 *
 * The quadratic parts of U, from a Gaussian prior and from Gaussian rewards, are kept as a precision and a
 * vector: theta' P theta / 2 - theta' b. The scores of other priors, and passes over the rows of other
 * rewards, are added at each point.
 *
 * A chain is slow if its target is badly conditioned. What a Gaussian prior contributes to that is known
 * beforehand and can be removed: a whitened potential is a function of z, where theta = A z, A A' is the
 * covariance of the prior, and the prior of z is N(A^-1 m, I). Under the prior N(0, I) nothing changes. In a
 * whitened potential `theta` below means z.
 *
 * If the mean reward is a network, the loss is sum (y - f(phi; theta))^2 / 2, the prior on the weights is
 * N(0, I), nothing is quadratic, and the Hessian is that of Gauss and Newton (model/history/network_rows.h).
 *
 * N lanes, lane last: theta[d, N]. */
#pragma once

#include "io/config/config_rows.h"
#include "model/history/network_rows.h"
#include "sampler/sampler.h"

/* The keys `eta` and `lambda`, for a table of options. */
#define POTENTIAL_KEYS                                                                                       \
  {REAL("eta", 1e-9, 1e9, "auto",                                                                            \
        "inverse temperature of prior and loss, with rewards not divided by their variance; auto: the "      \
        "posterior's"),                                                                                      \
   .words = "auto"},                                                                                         \
  {                                                                                                          \
    REAL("lambda", 1e-9, 1e9, "1", "multiplies the log prior")                                               \
  }

typedef struct {
  int d, capacity;
  const Prior *prior;
  double prior_weight, likelihood_weight; /* of -log p and of the tempered log likelihood in U */
  double eta; /* 1 for auto */
  double unit; /* eta, or the precision of a reward: what an observation with |phi| = 1 adds to the Hessian */
  bool closed_prior,
      conjugate; /* whether prior and rewards are in the quadratic part, whatever is observed */
  double self_concordance; /* of the likelihood, see LikelihoodOps */
  /* An upper bound on the curvature of prior_weight times -log p; 0 for a Gaussian, whose Hessian is known.
   * For a mixture it is the largest precision of a component; for a learned prior, that of the noise of its
   * first stage, which smooths its score. */
  double stiffest;
  /* Where updates start: a Gaussian with the prior's moments, its covariance divided by prior_weight. If the
   * prior is Gaussian, this is the tempered prior itself; if it has several modes, it covers all of them. */
  double *start_mean, *start_deviation; /* [d] */
  /* [d, d]: a lower triangular root of the covariance, its inverse; NULL with a network, whose weights start
   * independent. */
  double *start_root, *start_inverse;
  double *root, *inverse_root; /* [d, d]: A and A^-1, lower triangular; NULL: the identity */
  /* For a Gaussian prior: precision and precision times mean, in z if the potential is whitened. Not
   * owned. */
  const double *prior_precision, *prior_information; /* [d, d], [d] */
  bool network; /* the mean reward is a network; then `precision` and `vector` are NULL, and so is the
                 * scratch */
  NetworkRows rows;
  /* For the lanes of the view, until the next potential_at. */
  HistoryView view;
  bool whole; /* all rewards are in the quadratic part */
  double *precision, *vector; /* [d, d, n], [d, n] */
  double *slope, *score, *curvature; /* scratch: [d, n], [d, n], [d, d, n] */
  double *point, *half; /* [d, n], [d, d, n]; NULL unless whitened */
} Potential;

/* Returns whether exp(-U) is the posterior with these options, for SamplerOps.targets_posterior. */
bool potential_targets_posterior(const Config *options);
/* Creates a potential for up to `capacity` lanes at once. */
Status potential_create(Arena *memory, const SamplerSetup *setup, int capacity, Potential *out);

/* Makes the potential a function of z, before the first potential_at. Does nothing with
 * a network, or if the prior is not Gaussian or is N(m, I) already. */
Status potential_whiten(Arena *memory, Potential *potential);
/* Returns theta[d, n] for z[d, n]: z itself, or scratch of the potential. */
const double *potential_theta(Potential *potential, int lanes, const double *z);
/* Transforms, in place: theta[d, n] to z; the gradient with respect to theta to that with respect to z, A' g;
 * the covariance[d, d, n] of z to that of theta. */
void potential_from_theta(const Potential *potential, int lanes, double *theta);
void potential_to_gradient(const Potential *potential, int lanes, double *gradient);
void potential_covariance(Potential *potential, int lanes, double *covariance);

/* Moves U to the lanes of this view, which is in theta: without shift or scale. */
void potential_at(Potential *potential, const HistoryView *view);
/* Draws theta[d, lanes of the streams] from the prior, shrunk towards its mean by the factor 1 /
 * sqrt(prior_weight). */
void potential_start(const Potential *potential, RngLanes *rng, double *theta);
/* Returns whether the Hessian is always independent of theta; it is then `precision`. */
static inline bool potential_has_fixed_hessian(const Potential *potential) {
  return potential->closed_prior && potential->conjugate;
}
/* Computes gradient[d, n] of U, and its Hessian[d, d, n] unless that is NULL. */
void potential_derivatives(Potential *potential, const double *theta, double *gradient, double *hessian);
/* Computes gradient[count, d, n] at each of `count` points theta[count, d, n]. */
void potential_gradients(Potential *potential, int count, const double *theta, double *gradient);
/* Computes value[n] of U, up to a constant of the run. log_prior[n] is the log density of the prior at theta,
 * up to a constant; it is not read for a Gaussian prior. */
void potential_value(Potential *potential, const double *theta, const double *log_prior, double *value);
/* Computes bound[n], an upper bound on the largest eigenvalue of the Hessian of U, with the curvature of
 * rewards that are not Gaussian, or of a network, taken at reference[d, n]. With scratch[2, d, d, n] the
 * bound is close; with NULL it is up to d^1/2 times as large. With a network, whose bound is a trace, scratch
 * is not used. */
void potential_ceiling(Potential *potential, const double *reference, double *bound, double *scratch);
/* Computes factor[n] <= 1: the share of a step[d, n] that moves no phi' theta by more than 1 /
 * self_concordance, so that the curvature along it changes by at most a factor of e. */
void potential_trust(Potential *potential, const double *step, double *factor);
