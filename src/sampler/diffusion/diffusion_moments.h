/* The clean sample s_0 given the state s_t of a reverse chain, approximated by a Gaussian N(s0_hat, C_t),
 * which joint moments (joint_chain.h) condition on the history.
 *
 * The mean is the prior's estimate of s_0. C_t is its covariance, from the Jacobian of the noise predictor by
 * Tweedie's second-order formula (Boys et al. 2023, Tweedie moment projected diffusions),
 *
 *   C_t = (1 - alpha_bar_t) / alpha_bar_t (I - sqrt(1 - alpha_bar_t) d eps / d s),
 *
 * or a multiple of I, in which the training loss of the stage, the mean squared error of the predicted noise,
 * takes the place of the matrix in parentheses. Stage T + 1 carries no information: there s0_hat and C are
 * the prior's mean and covariance. C_t is given as Q diag(r^2) Q'. */
#pragma once

#include "model/prior/prior.h"

#include <stdbool.h>

/* All in the chain's coordinates. */
typedef struct {
  const Chain *chain;
  bool from_loss; /* C_t is a multiple of I, from the loss */
  double *mean, *basis, *deviation; /* [d], [d, d], [d]: s0_hat, Q, r of stage T + 1 */
} DenoisedMoments;

/* Creates the moments of `prior`, which has a chain. Returns STATUS_INPUT, with a sentence, if `from_loss` is
 * set and the chain has no loss. */
Status diffusion_moments_create(Arena *memory, const Prior *prior, bool from_loss, DenoisedMoments *out);

/* Computes mean[d] and variance[d] of the prior's coordinates, in those of its chain, without matrices. */
Status diffusion_moments_spread(const Prior *prior, double *mean, double *variance);

/* s0_hat, Q and r in n lanes, lane last. */
typedef struct {
  double *mean, *basis, *deviation; /* [d, n], [d, d, n], [d, n] */
} MomentLanes;

/* Computes the moments at stage t = T + 1 .. 1 and s[d, n]. Scratch: matrix[d, d, n], column[d, n]. */
void diffusion_moments_at(const DenoisedMoments *self, int t, int lanes, const double *s, MomentLanes out,
                          double *matrix, double *column);
/* Returns whether the Jacobian is due at stage t, after that of stage `known` (0: none so far). From one
 * stage to the next C_t changes mainly through the noise: C_t^-1 grows by the growth of the signal-to-noise
 * ratio alpha_bar / (1 - alpha_bar) times I, and for a Gaussian prior by exactly that. So the Jacobian, which
 * costs more than the mean, need not be computed at every stage. */
bool diffusion_moments_due(const DenoisedMoments *self, int known, int t);
/* Carries the moments from stage t + 1 to stage t, where no Jacobian is due: computes mean[d, n] and updates
 * deviation[d, n]; the basis stays. */
void diffusion_moments_carry(const DenoisedMoments *self, int t, int lanes, const double *s, double *mean,
                             double *deviation);
/* Computes mean[d, n], and C_t from the Jacobian as covariance[d, d, n], at stage t = T .. 1 and s[d, n]. C_t
 * is symmetric, but its eigenvalues are not bounded. Scratch: column[d, n]. */
void diffusion_moments_covariance(const DenoisedMoments *self, int t, int lanes, const double *s,
                                  double *mean, double *covariance, double *column);
