/* The clean sample s_0 given the state s_t of a reverse chain, taken as a Gaussian N(s0_hat, C_t): the
 * moments that joint moments (joint_chain.h) condition on the history.
 *
 * The mean is the prior's estimate of s_0. C_t is its covariance from the Jacobian of the noise predictor by
 * Tweedie's second-order formula (Boys et al. 2023, Tweedie moment projected diffusions),
 *
 *   C_t = (1 - alpha_bar_t) / alpha_bar_t (I - sqrt(1 - alpha_bar_t) d eps / d s),
 *
 * or a number, with the training loss of the stage, the mean square of what is left of the noise, in place of
 * the matrix. A stage T + 1 knows nothing: there s0_hat and C are the prior's mean and covariance. C_t is
 * given as Q diag(r^2) Q'. */
#pragma once

#include "model/prior/prior.h"

#include <stdbool.h>

/* All in the chain's coordinates. */
typedef struct {
  const Chain *chain;
  bool from_loss; /* C_t is a number */
  double *mean, *basis, *deviation; /* [d], [d, d], [d]: s0_hat, Q, r of stage T + 1 */
} DenoisedMoments;

/* Creates the moments of `prior`, which has a chain. Refuses, with a sentence, `from_loss` where the chain
 * has no loss. */
Status denoised_moments_create(Arena *memory, const Prior *prior, bool from_loss, DenoisedMoments *out);

/* Computes, at stage t = T + 1 .. 1 and s[d, n], lane last: mean[d, n], basis[d, d, n], deviation[d, n].
 * Scratch: matrix[d, d, n], column[d, n]. */
void denoised_moments_at(const DenoisedMoments *self, int t, int lanes, const double *s, double *mean,
                         double *basis, double *deviation, double *matrix, double *column);
/* Returns whether the Jacobian is due after that of stage `known` (0: none so far). Between two stages C_t
 * changes little but for the noise: C_t^-1 by what the signal-to-noise ratio alpha_bar / (1 - alpha_bar)
 * grows by, times I, exactly so for a Gaussian prior. So the Jacobian, which costs more than the mean,
 * need not be taken at every stage. */
bool denoised_moments_due(const DenoisedMoments *self, int known, int t);
/* Carries the moments to a stage where it is not due, from the basis and deviation[d, n] of stage t + 1:
 * mean[d, n], deviation[d, n]; the basis stays. */
void denoised_moments_carry(const DenoisedMoments *self, int t, int lanes, const double *s, double *mean,
                            double *deviation);
/* Computes, at stage t = T .. 1 and s[d, n], mean[d, n], and C_t from the Jacobian as covariance[d, d, n],
 * symmetric but with eigenvalues as they come. Scratch: column[d, n]. */
void denoised_moments_covariance(const DenoisedMoments *self, int t, int lanes, const double *s, double *mean,
                                 double *covariance, double *column);
